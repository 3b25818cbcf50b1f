"""What had happened before an alert, from the tables: the group's newest rebalance, moved coordinators, marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from streaming.alerts.decisions import Decided
from streaming.alerts.delivery.wording import MARKS_WITHIN_MS, Circumstances, Rebalance
from streaming.alerts.firing import FIRING
from streaming.notes import Mark
from streaming.tables import DAY, DeltaLake, all_rows, in_memory, table_named
from streaming.terminal import visible

# A rebalance from before yesterday has nothing to do with what fires now; reading further back reads more files.
_DAYS: Final = 1
_COORDINATORS_WITHIN_MS: Final = 30 * 60_000

# A record is written before its round, by the clock of another broker.
_SLACK_MS: Final = 5_000

# Clocks of those who mark differ from the brokers'.
_MARKS_AHEAD_MS: Final = 60_000

_MOST_CAUSES: Final = 4
_EVIDENCE_LENGTH: Final = 80

_NEWEST: Final = """
SELECT a.place, max(c.decision) AS decision, arg_max(c.record_time, c.decision) AS record_time,
  arg_max(c.causes, c.decision) AS causes
FROM (
  SELECT unnest(range(len($groups))) AS place, unnest($groups::VARCHAR[]) AS group_id,
    unnest($untils::BIGINT[]) AS until
) AS a
JOIN churn AS c ON c.group_id = a.group_id AND c.cluster = $cluster AND epoch_ms(c.record_time) <= a.until
GROUP BY a.place
"""

_MOVED: Final = """
SELECT a.place, count(DISTINCT c.group_id) AS moved
FROM (SELECT unnest(range(len($untils))) AS place, unnest($untils::BIGINT[]) AS until) AS a
JOIN churn AS c ON c.cluster = $cluster AND epoch_ms(c.record_time) BETWEEN a.until - $within AND a.until
  AND list_contains([one.cause for one in c.causes], 'coordinator_moved')
GROUP BY a.place
"""


class Happened:
    """Finds the circumstances of alerts. For one thread."""

    def __init__(self, lake: str, cluster: str) -> None:
        """Prepare; nothing is read yet."""
        self._lake = DeltaLake(lake)
        self._cluster = cluster
        self._churn: DeltaTable | None = None

    def with_circumstances(self, decided: Sequence[Decided], marks: Sequence[Mark]) -> list[Decided]:
        """The same transitions; those that fire with what had happened before them.

        Raises:
            DeltaError, OSError, duckdb.Error, LakeUnreadableError: The table cannot be read now.
        """
        firing = [one for one in decided if one.state == FIRING]
        if not firing:
            return list(decided)
        newest, moved = self._rebalances([one.group_id or "" for one in firing], [_at(one) for one in firing])
        found = {
            one.transition_id: Circumstances(newest.get(place), moved.get(place, 0), _of(one, marks))
            for place, one in enumerate(firing)
        }
        return [replace(one, circumstances=found[one.transition_id]) if one.state == FIRING else one for one in decided]

    def _rebalances(
        self, groups: Sequence[str], times: Sequence[int]
    ) -> tuple[Mapping[int, Rebalance], Mapping[int, int]]:
        """The newest rebalance of each group at a time (ms), and how many coordinators moved; both by place."""
        if self._churn is None:
            try:
                self._churn = DeltaTable(self._lake.path("rebalance_churn"))
            except TableNotFoundError:
                return {}, {}
        self._churn.update_incremental()
        untils = [time + _SLACK_MS for time in times]
        first = (datetime.fromtimestamp(min(untils) / 1000, UTC) - timedelta(days=_DAYS)).date()
        last = datetime.fromtimestamp(max(untils) / 1000, UTC).date()

        def wanted(file: Mapping[str, Any]) -> bool:
            day = file.get(f"partition.{DAY}")
            return day is None or first <= day <= last

        table = table_named("rebalance_churn")
        with in_memory() as connection:
            connection.register("churn", all_rows(table, self._churn, self._lake.path(table.name), wanted))
            asked = {"cluster": self._cluster, "untils": untils}
            rows = connection.execute(_NEWEST, asked | {"groups": [*groups]}).fetchall()
            moved = connection.execute(_MOVED, asked | {"within": _COORDINATORS_WITHIN_MS}).fetchall()
        newest = {
            place: Rebalance(decision, round(time.timestamp() * 1000), _causes(causes))
            for place, decision, time, causes in rows
            if decision is not None and time is not None
        }
        return newest, dict(moved)


def _causes(causes: Sequence[Mapping[str, Any]] | None) -> tuple[str, ...]:
    named = []
    for one in (causes or ())[:_MOST_CAUSES]:
        evidence = visible(one["evidence"] or "", _EVIDENCE_LENGTH)
        named.append(f"{visible(one['cause'] or '', 40)}{f': {evidence}' if evidence else ''}")
    return tuple(named)


def _at(decided: Decided) -> int:
    return decided.since if decided.time is None else decided.time


def _of(decided: Decided, marks: Sequence[Mark]) -> tuple[Mark, ...]:
    at = _at(decided)
    return tuple(
        mark
        for mark in marks
        if at - MARKS_WITHIN_MS <= mark.time <= at + _MARKS_AHEAD_MS
        and (mark.group_id is None or decided.group_id is None or mark.group_id == decided.group_id)
    )
