"""Groups for the tests of advice."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from streaming.advice.period import GroupDay, MemberChange, Period, Produced, Rebalance, Tried

DAY = date(2026, 3, 14)
MINUTE_MS = 60_000


def days(count: int = 7, **changes: Any) -> tuple[GroupDay, ...]:
    """So many days up to `DAY`, all observed and alike."""
    fields: dict[str, Any] = {
        "observed": 86_400.0, "commits": 100, "members_max": 4, "members_mean": 4.0, "members_known": 86_400.0,
        "beyond": 0.0, "beyond_max": 0, "lag_total_max": 5,
    }  # fmt: skip
    return tuple(GroupDay(DAY - timedelta(days=ago), **(fields | changes)) for ago in reversed(range(count)))


def period(**changes: Any) -> Period:
    """An eager group of consumers of the classic protocol."""
    fields: dict[str, Any] = {
        "group_id": "g", "day": DAY, "days": days(), "group_type": "classic", "protocol_type": "consumer",
        "strategy": "range", "partitions": 8, "static_members": 0, "library": "java:3.4",
    }  # fmt: skip
    return Period(**(fields | changes))


def rebalance(decision: int, minute: float = 0, *causes: str, **changes: Any) -> Rebalance:
    return Rebalance(decision, int(minute * MINUTE_MS), "range", "eager", frozenset(causes), **changes)


def member(client_id: str = "app", **changes: Any) -> MemberChange:
    fields: dict[str, Any] = {"is_static": False, "client_id": client_id, "client_host": "/10.0.0.1"}
    return MemberChange(**({"session_timeout_ms": 45_000} | fields | changes))


def restarts(count: int, left: str = "member_left", away_minutes: float = 0.5, every: int = 60) -> dict[str, Any]:
    """Fields of a period in which one member restarts so often: it leaves, and is back, in a rebalance each."""
    told, members = [], {"m0": member()}
    for number in range(count):
        start = number * every
        told.append(rebalance(10 * number, start, left, left=(f"m{number}",)))
        told.append(rebalance(10 * number + 5, start + away_minutes, "member_joined", joined=(f"m{number + 1}",)))
        members[f"m{number + 1}"] = member()
    return {"rebalances": tuple(told), "members": members}


def tried(decisions: int, runs: tuple[str, int, float], *others: tuple[str, int, float]) -> tuple[Tried, ...]:
    """What strategies would have done at each of so many decisions: (strategy, moved, imbalance)."""
    return tuple(
        Tried(number, name, name == runs[0], "java", moved, imbalance)
        for number in range(decisions)
        for name, moved, imbalance in (runs, *others)
    )


def produced(most: int = 60_000, total: int = 100_000, hours: int = 24) -> Produced:
    return Produced(total, "orders", None, 3, most, hours)
