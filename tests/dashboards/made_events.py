"""What happens beside the rounds, for a made lake: alerts and their deliveries, blocked logs, gaps, advice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tests.dashboards.made_lake import CLUSTER, HOSTILE, MadeLake

_HEARTBEAT_MS = 600_000

BUSY, NOBODYS = "telemetry-raw", "nobodys"
"""Topics that no group of the made lakes reads: of the first it is not known whether somebody does."""


def add_load(lake: MadeLake, windows: int = 3, untold: Sequence[str] = ()) -> None:
    """Write windows of the rates up to the lake's newest round, and as many looks at each topic.

    Args:
        lake: The lake.
        windows: How many.
        untold: Topics that the probe does not look at.
    """
    ms = int(lake.end.timestamp() * 1000)
    member_load: list[dict[str, Any]] = []
    looks: list[dict[str, Any]] = []
    readers: dict[str, set[str]] = {}
    rates: dict[str, list[float]] = {}
    for group in lake.groups:
        for topic, count in group.topics.items():
            readers.setdefault(topic, set()).add(group.name[:1000])
            rates[topic] = [group.rate(partition) for partition in range(count)]
    for ago in range(windows - 1, -1, -1):
        at = ms - ago * _HEARTBEAT_MS
        seen = {"cluster": CLUSTER, "round": lake.last - 60 * ago, "round_time": at, "event_date": at // 86_400_000,
                "ended": False}  # fmt: skip
        for group in lake.groups:
            actual = group.actual(drifted=group.verdict == "drifted") if group.members else {}
            total = sum(group.rate(partition) for _, partition in group.places)
            for place, client in enumerate(group.members):
                own = [group.rate(p) for (_, p), owner in actual.items() if owner == place]
                member_load.append(
                    {**seen, "group_id": group.name, "member_id": group.member_id(place), "source": "log",
                     "client_id": client, "client_host": f"/10.0.3.{17 + place}", "partitions": len(own),
                     "produced_per_second": sum(own), "consumed_per_second": sum(own),
                     "share": sum(own) / total if total else None}
                )  # fmt: skip
        for topic, found in rates.items():
            if topic in untold:
                continue
            looks.append(
                {**seen, "topic": topic, "topic_id": "kqzX0l5mT5uM8Qb1f0aQ2g", "partitions": len(found),
                 "offline_partitions": 0, "records_max": 10_000 * len(found), "groups": len(readers[topic]),
                 "readers": sorted(readers[topic]), "read_by_nobody": False, "rates_over_seconds": 600.0,
                 **_grown(sum(found), first=ago == windows - 1)}
            )  # fmt: skip
        for topic, unread in ((NOBODYS, {"read_by_nobody": True, "read_by_nobody_since": ms - 7_200_000}),
                              (BUSY, {"read_by_nobody_reason": "no_right"}),
                              (HOSTILE[0], {"read_by_nobody": True, "read_by_nobody_since": ms})):  # fmt: skip
            looks.append(
                {**seen, "topic": topic, "partitions": 24, "offline_partitions": 2 if topic == BUSY else 0,
                 "records_max": 4_000_000, "groups": 0, "readers": [], "rates_over_seconds": 600.0, **unread,
                 **_grown(900.0 if topic == BUSY else 0.0, first=ago == windows - 1)}
            )  # fmt: skip
    lake.add("member_load", *member_load)
    lake.add("topics", *looks)


def _grown(rate: float, *, first: bool) -> dict[str, Any]:
    if first:
        return {"produced_reason": "first_look", "log_bytes": round(1e6 * rate), "bytes_reason": "first_look"}
    return {
        "produced_per_second": rate,
        "log_bytes": round(1.1e6 * rate),
        "produced_bytes_per_second_min": 160 * rate,
    }


OTHER = "other"
"""A second cluster, whose rounds ended an hour before the newest of the first."""

TARGET = "oncall"


def add_events(lake: MadeLake) -> None:
    """Write events up to the lake's newest round: six alerts, two targets, a blocked partition, advice of two kinds."""
    ms = int(lake.end.timestamp() * 1000)
    day = ms // 86_400_000

    def alert(name: str, rule: str, state: str, group: str | None, ago_s: int, **more: object) -> dict[str, object]:
        at = ms - ago_s * 1000
        ended = state in {"resolved", "gone"}
        return {
            "cluster": CLUSTER, "transition_id": f"{name}-{state}", "alert_id": name, "rule": rule, "group_id": group,
            "severity": "critical", "entity": json.dumps({"group_id": name}), "state": state, "ended": ended,
            "from_state": "firing" if ended else None, "since": at - 30_000, "round": lake.last, "round_time": at,
            "event_date": at // 86_400_000, "decided_time": at + 2_000, "decision": 1 + ended, "late": False,
            "message": f"{group} has trouble", **more,
        }  # fmt: skip

    lake.add(
        "alerts",
        alert("a", "drift", "firing", "payments-audit", 300),
        alert("b", "lag", "firing", "billing-stuck", 900, severity="warning"),
        alert("b", "lag", "resolved", "billing-stuck", 240, severity="warning", since=ms - 930_000),
        alert("c", "lag", "pending", "search-indexer", 20, severity="warning"),
        alert("d", "silence", "firing", None, 60, severity="info", message=HOSTILE[0], late=True),
        alert("e", "lag", "firing", HOSTILE[1], 120, topic=HOSTILE[3], partition=4, severity="warning"),
        alert("f", "of_yesterday", "firing", "checkout", 100, severity="warning"),
    )

    def sent(name: str, target: str, outcome: str, ago_s: int, **more: object) -> dict[str, object]:
        at = ms - ago_s * 1000
        return {
            "cluster": CLUSTER, "transition_id": name, "alert_id": name.partition("-")[0], "target": target,
            "rule": "drift", "state": "firing", "attempt": 1, "outcome": outcome, "duration_ms": 240,
            "attempt_time": at, "event_date": at // 86_400_000, **more,
        }  # fmt: skip

    def noted(ago_s: int, **more: object) -> dict[str, object]:
        at = ms - ago_s * 1000
        return {"cluster": CLUSTER, "made_by": "ann@host", "written_time": at, "event_date": at // 86_400_000, **more}

    hour = 3_600_000
    muted = {"from_time": ms - 60_000, "until_time": ms + hour, "ended": False, "reason": HOSTILE[0]}
    lake.add(
        "mutes",
        noted(60, mute_id="m1", kind="group", name="billing-stuck", **muted),
        noted(50, mute_id="m2", kind="rule", name="drift", **muted),
        noted(50, mute_id="m3", kind="owner", name=HOSTILE[2], **muted),
        noted(40, mute_id="m2", kind="rule", name="drift", **muted | {"ended": True}),
        noted(30, mute_id="m4", kind="group", name=f"/{HOSTILE[1]}(/", **muted | {"until_time": ms - 10_000}),
    )
    lake.add(
        "marks",
        noted(100, mark_id="k1", text="deploy of billing", group_id="billing-stuck", mark_time=ms - 100_000),
        noted(90, mark_id="k2", text=HOSTILE[0], group_id=None, mark_time=ms - 90_000),
        noted(80, mark_id="k2", text=HOSTILE[0], group_id=None, mark_time=ms - 90_000),
        noted(80, mark_id="k4", text="new release", group_id=None, mark_time=ms - 3 * hour),
        noted(70, mark_id="k3", text="rack 2 moved", group_id=None, mark_time=ms - 500_000),
    )

    added = {"transition_id": None, "alert_id": None, "rule": None, "state": None, "attempt": None}
    lake.add(
        "alert_deliveries",
        sent("", TARGET, "added", 3_000, **added),
        sent("", "team", "added", 3_000, **added),
        sent("a-firing", TARGET, "delivered", 296),
        sent("a-firing", "team", "failed", 296, reason="the server answered 503"),
        sent("a-firing", "team", "failed", 200, attempt=2, reason="the server answered 503"),
        sent("b-firing", TARGET, "delivered", 890, rule="lag"),
        sent("b-firing", "team", "given_up", 880, rule="lag", reason="it was refused"),
        sent("e-firing", "team", "held", 118, rule="lag", attempt=None, duration_ms=None, reason="group x is muted"),
        sent("b-resolved", TARGET, "delivered", 230, rule="lag", state="resolved"),
    )
    lake.add(
        "open_transactions",
        {"cluster": CLUSTER, "log_partition": 7, "round": lake.last, "round_time": ms, "event_date": day, "held": True,
         "held_since": ms - 600_000, "held_offset": 12_345, "waiting": 871, "groups": 2, "producer_id": 4_011,
         "transactional_id": HOSTILE[2]},
        {"cluster": CLUSTER, "log_partition": 8, "round": lake.last, "round_time": ms, "event_date": day, "held": False,
         "held_since": ms - 600_000, "held_offset": 1, "waiting": 0, "groups": 0},
    )  # fmt: skip
    lake.add(
        "quarantine",
        {"cluster": CLUSTER, "topic": "__consumer_offsets", "partition": 0, "record_offset": 7, "records": 3,
         "kind": "undecodable", "key_type": 2, "value_version": 3, "reason": "too short", "record_time": ms - 9_000},
    )  # fmt: skip
    lake.add(
        "gaps",
        {"cluster": CLUSTER, "kind": "log", "topic": "__consumer_offsets", "partition": 3, "from_offset": 1,
         "to_offset": 900, "reason": "compacted before it was read"},
        {"cluster": CLUSTER, "kind": "rounds", "from_time": ms - 800_000, "to_time": ms - 500_000, "reason": "a pause"},
    )  # fmt: skip
    # The maintenance would replace advice of the lake's own day: this is two days older, and recent enough to hold.
    then = day - 2
    advice = {
        "cluster": CLUSTER, "kind": "cooperative", "event_date": then, "since": then - 1, "ended": False,
        "period_days": 7, "events": 3, "saved": 1.5, "unit": "partition-seconds", "advice": "use cooperative-sticky",
        "evidence": "3 rebalances stopped 24 partitions", "cost": "two rolling restarts",
        "details": [("rebalances", "3")],
    }  # fmt: skip
    lake.add(
        "advice",
        advice | {"group_id": "payments-audit"},
        advice | {"group_id": HOSTILE[1]},
        advice | {"group_id": "mailer", "kind": "strategy", "saved": None, "unit": None},
    )
    lake.add(
        "advice_days",
        # It belongs to the other cluster: maintenance of the first would carry the advice on from this day, and end it.
        {"cluster": OTHER, "event_date": then, "first_day": then - 6, "period_days": 7, "groups": 30, "advices": 3},
    )
    early = ms - int(timedelta(hours=1).total_seconds() * 1000)
    lake.add(
        "rounds",
        {"cluster": OTHER, "round": 10, "round_time": early, "closed_time": early + 50, "interval_ms": 10_000,
         "event_date": early // 86_400_000, "groups": 0, "events": 0, "log_partitions": 50, "held_partitions": 0},
    )  # fmt: skip
