"""The same groups read from the log and seen in rounds, side by side: which columns may differ, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from streaming.groups.rows import ChurnRow, DriftRow
from tests.real_groups.followed import Followed

ONLY_THE_LOG: Final[Mapping[str, frozenset[str]]] = {
    "rebalance_churn": frozenset(
        {
            *("log_partition", "generation", "previous_generation", "generations_skipped", "leader", "follows"),
            *("join_completed_time", "unassigned_partition_seconds_min", "unassigned_partition_seconds_max"),
            "partitions_stopped_unmoved",
        }
    ),
    "drift": frozenset({"log_partition", "generation"}),
    "members": frozenset({"log_partition", "generation", "leader", "session_timeout_ms", "rebalance_timeout_ms"}),
    "lag": frozenset({"commits", "last_commit_time"}),
    "group_health": frozenset({"log_partition", "generation", "commits"}),
}
"""Columns that are NULL where a classic group is only seen (docs/admin-mode.md explains each)."""

_OWN: Final[Mapping[str, frozenset[str]]] = {
    # What numbers and times the decision: a record, or the round that showed it. Between two looks several decisions
    # are one, so its causes and its cost are those of all.
    "rebalance_churn": frozenset(
        {
            *("cluster", "decision", "source", "record_time", "event_date", "revision", "incarnation", "causes"),
            *("decided_time_min", "decided_time_max", "partitions_moved_optimal"),
        }
    ),
    "drift": frozenset(
        {
            *("cluster", "decision", "source", "record_time", "event_date", "incarnation", "round", "round_time"),
            # Any member may have led, so there may be more candidates; the line names members in the answer's order.
            *("candidates", "inputs"),
        }
    ),
    "members": frozenset({"cluster", "decision", "source", "record_time", "event_date", "incarnation"}),
    # Two probes have their own rounds: their numbers, times, and what is bounded by them.
    "lag": frozenset(
        {
            *("cluster", "source", "round", "round_time", "event_date"),
            *("oldest_unread_time_min", "oldest_unread_time_max"),
            *("produced_per_second", "consumed_per_second"),
        }
    ),
    "group_health": frozenset(
        {
            *("cluster", "source", "round", "round_time", "event_date", "incarnation", "last_decision_time"),
            *("time_behind_seconds_min", "time_behind_seconds_max"),
            *("produced_per_second", "consumed_per_second"),
        }
    ),
}

# The coordinator reports the assignor in use, the log only what members ask for; it does not report their timeouts.
_OF_BROKER: Final[Mapping[str, frozenset[str]]] = {
    "rebalance_churn": frozenset({"strategy", "generations_skipped", "previous_generation"}),
    "drift": frozenset({"strategy"}),
    "members": frozenset(),
    "lag": frozenset(),
    "group_health": frozenset({"strategy"}),
}

_BROKER_TYPES: Final = frozenset({"consumer", "share", "streams"})

# Only the topic `__share_group_state` tells them, and it is read with the log.
_DELIVERIES: Final = frozenset(
    {
        *("done_records", "archived_records", "released_records", "delivery_count_max"),
        *("given_up_records", "rejected_records"),
    }
)

BOTH_KNOW: Final = ("rebalance_churn", "drift", "members", "lag", "group_health")
"""Tables of groups that both modes fill."""


class BothModes:
    """Two followers of the same groups. A context manager."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.log = Followed(bootstrap, prefix)
        self.admin = Followed(bootstrap, prefix, offsets_log="admin")
        self._compared: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.log.__exit__(kind, raised, trace)
        self.admin.__exit__(kind, raised, trace)

    def round(self) -> None:
        """A round of each, one after the other; nothing may happen meanwhile."""
        self.log.round()
        self.admin.round()

    def differing(self, group: str, *, decided: bool) -> dict[str, Any]:
        """Everything that differs in the newest rows of a group at rest, except where it may.

        Args:
            group: The group.
            decided: It has decided since the previous look at it, so that the newest decisions are the same ones.
        """
        log, admin = self.log, self.admin
        found: dict[str, Any] = {}
        pairs: list[tuple[str, object, Any, Any]] = [
            ("group_health", group, log.health(group), admin.health(group)),
            *_pairs("lag", log.lag(group), admin.lag(group)),
            *_pairs("members", log.members(group), admin.members(group)),
        ]
        if decided:
            pairs.append(("rebalance_churn", group, self._net(group), admin.churn(group)[-1]))
            pairs.append(("drift", group, _newest(log.drift(group).values()), _newest(admin.drift(group).values())))
        self._compared[group] = len(log.churn(group))
        for table, key, one, other in pairs:
            if one is None or other is None:
                if one is not other:
                    found[f"{table} {key}"] = (one, other)
                continue
            of_broker = log.health(group).group_type in _BROKER_TYPES
            free = _OWN[table] | ONLY_THE_LOG[table] | (_OF_BROKER[table] if of_broker else frozenset()) | _DELIVERIES
            columns = msgspec.structs.asdict(one).keys() - free
            different = {
                name: (getattr(one, name), getattr(other, name))
                for name in columns
                if _plain(getattr(one, name)) != _plain(getattr(other, name))
            }
            if table in {"drift", "group_health"} and admin.churn(group) and admin.churn(group)[-1].generations_skipped:
                # Epochs passed between two looks: then the target before is not known, and the verdict says so.
                for name in ("verdict", "verdict_reason", "reason", "matching_library"):
                    different.pop(name, None)
            if different:
                found[f"{table} {key}"] = different
        return found

    def _net(self, group: str) -> ChurnRow:
        """The log's decisions since the last comparison as one: who joined and left in the end, and all moves."""
        rows = self.log.churn(group)[self._compared.get(group, 0) :]
        last = rows[-1]
        here = {name for row in rows for name in row.joined or ()}
        gone = {name for row in rows for name in row.left}
        moves = [row.partitions_moved for row in rows]
        return msgspec.structs.replace(
            last,
            joined=tuple(here - gone) if last.joined is not None else None,
            left=tuple(gone - here),
            partitions_moved=None if None in moves else sum(move or 0 for move in moves),
        )


def _pairs(table: str, one: Mapping[Any, Any], other: Mapping[Any, Any]) -> Iterable[tuple[str, object, Any, Any]]:
    return [(table, key, one.get(key), other.get(key)) for key in sorted(one.keys() | other.keys())]


def _newest(rows: Iterable[DriftRow | ChurnRow]) -> Any:
    return max(rows, key=lambda row: row.decision, default=None)


def _plain(value: object) -> object:
    """A value without the order of lists, which are sets: answers have an order of their own."""
    if isinstance(value, tuple):
        return sorted(repr(_plain(one)) for one in value)
    if isinstance(value, msgspec.Struct):
        # When a finding began is a time of the round that found it.
        parts = msgspec.structs.asdict(value)
        return {name: _plain(part) for name, part in parts.items() if name != "since"}
    return value
