"""The job without Spark: the source's plan and tasks, the core, and the newest rows, in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from streaming.groups import GroupConfig, Rows
from streaming.groups.rows import DriftRow, GroupHealthRow, LagRow, MemberRow
from streaming.job.operator import advance_key
from streaming.job.source.connection import Readers
from streaming.job.source.planner import Planner
from streaming.job.source.positions import INITIAL
from streaming.job.source.read import task_rows
from streaming.job.source.settings import SourceSettings

Row = TypeVar("Row", LagRow, GroupHealthRow, MemberRow, DriftRow)

# Columns about the time before the row's round or record. A late start cannot know them:
# - which rounds wrote a row: a row is written when something has changed since the previous one;
# - counts since that row, and events since: commits, steps back, deletions;
# - the incarnation of a group: it is named by its first readable record;
# - the judgement of lag, which uses the last ten rounds; the beginning of a finding;
# - since when something is unread, which earlier rounds have bounded, and the pace of the last minutes;
# - the inputs of a verdict beyond `unverified`: the previous target, if the broker assigns.
PAST = {
    "lag": {
        *("round", "round_time", "event_date", "commits", "rewound_by", "offset_deleted", "lag_status"),
        *("oldest_unread_time_min", "oldest_unread_time_max", "oldest_unread_method", "oldest_unread_reason"),
    },
    "group_health": {
        *("round", "round_time", "event_date", "commits", "incarnation", "lag_status", "findings"),
        *("verdict", "verdict_reason", "time_behind_seconds_min", "time_behind_seconds_max", "time_behind_reason"),
        *("time_behind_topic", "time_behind_partition"),
        *("loses_data_in_seconds_min", "loses_data_in_seconds_max", "loses_data_reason", "loses_data_topic"),
        *("loses_data_partition", "loses_data_retention_seconds", "loses_data_by"),
    },
    "members": {"incarnation", "decision", "record_time", "event_date"},
}


@dataclass
class PlainJob:
    """One job; `run` continues where it stopped.

    Attributes:
        settings: Settings of the job.
        connect: Returns the readers.
        rows: Rows of all runs.
        rounds_per_batch: Rounds per batch.
        config: Settings of the core; None for the defaults.
        offsets: Where it stands, as the source's offsets.
    """

    settings: SourceSettings
    connect: Callable[[SourceSettings, float], Readers]
    rounds_per_batch: int = 60
    rows: Rows = field(default_factory=Rows)
    config: GroupConfig | None = None
    offsets: dict[str, Any] = field(default_factory=lambda: dict(INITIAL))
    _states: dict[str, tuple[int, bytes]] = field(default_factory=dict)

    def run(self, rounds: int | None = None) -> None:
        """Process everything that is there, or at most `rounds` rounds."""
        planner = Planner(self.settings, self.connect)
        planner.available_now()
        left = rounds
        while left is None or left > 0:
            most = self.rounds_per_batch if left is None else min(left, self.rounds_per_batch)
            end = planner.latest(self.offsets, most)
            if end == self.offsets:
                break
            before = len(self.rows.rounds)
            self._batch(planner, end)
            left = None if left is None else left - (len(self.rows.rounds) - before)

    def _batch(self, planner: Planner, end: dict[str, Any]) -> None:
        payloads: dict[str, list[bytes]] = {}
        for task in planner.tasks(self.offsets, end):
            for key, payload in task_rows(task, self.settings, self.connect(self.settings, 60.0)):
                payloads.setdefault(key, []).append(payload)
        for key, of_key in payloads.items():
            state, rows = advance_key(
                key, of_key, self._states.pop(key, None), self.config or GroupConfig(self.settings.cluster)
            )
            if state is not None:
                self._states[key] = state
            for table in Rows.__struct_fields__:
                getattr(self.rows, table).extend(getattr(rows, table))
        self.offsets = end


def present(rows: Rows) -> dict[str, dict[tuple[object, ...], dict[str, Any]]]:
    """The `_current` views of lag, health and members by key, without the columns of `PAST`."""
    newest = {
        "lag": _newest(rows.lag, lambda r: (r.group_id, r.topic, r.partition), lambda r: r.round),
        "group_health": _newest(rows.group_health, lambda r: (r.group_id,), lambda r: r.round),
        "members": _newest(rows.members, lambda r: (r.group_id, r.member_id), lambda r: r.decision),
    }
    return {
        table: {
            key: {name: value for name, value in msgspec.structs.asdict(row).items() if name not in PAST[table]}
            for key, row in of_table.items()
            if not row.ended
        }
        for table, of_table in newest.items()
    }


def _newest(
    rows: Iterable[Row], key: Callable[[Row], tuple[object, ...]], order: Callable[[Row], int]
) -> dict[tuple[object, ...], Any]:
    found: dict[tuple[object, ...], Row] = {}
    for row in rows:
        before = found.get(key(row))
        if before is None or order(row) >= order(before):
            found[key(row)] = row
    return found
