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
_COORDINATORS_WITHIN: Final = timedelta(minutes=30)

# A record is written before its round, by another clock.
_SLACK: Final = timedelta(minutes=2)

_MOST_CAUSES: Final = 4
_EVIDENCE_LENGTH: Final = 80

_NEWEST: Final = """
SELECT group_id, max(decision) AS decision, arg_max(record_time, decision) AS record_time,
  arg_max(causes, decision) AS causes
FROM churn
WHERE cluster = $cluster AND group_id IN (SELECT unnest($groups::VARCHAR[])) AND record_time <= $until
GROUP BY group_id
"""

_MOVED: Final = """
SELECT count(DISTINCT group_id) FROM churn
WHERE cluster = $cluster AND record_time BETWEEN $since AND $until
  AND list_contains([c.cause for c in causes], 'coordinator_moved')
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
        until = max(one.since if one.time is None else one.time for one in firing)
        newest, moved = self._rebalances({one.group_id for one in firing if one.group_id is not None}, until)
        return [
            one
            if one.state != FIRING
            else replace(one, circumstances=Circumstances(newest.get(one.group_id or ""), moved, _of(one, marks)))
            for one in decided
        ]

    def _rebalances(self, groups: set[str], until: int) -> tuple[Mapping[str, Rebalance], int]:
        if self._churn is None:
            try:
                self._churn = DeltaTable(self._lake.path("rebalance_churn"))
            except TableNotFoundError:
                return {}, 0
        self._churn.update_incremental()
        end = datetime.fromtimestamp(until / 1000, UTC) + _SLACK
        first = (end - timedelta(days=_DAYS)).date()

        def wanted(file: Mapping[str, Any]) -> bool:
            day = file.get(f"partition.{DAY}")
            return day is None or first <= day <= end.date()

        table = table_named("rebalance_churn")
        with in_memory() as connection:
            connection.register("churn", all_rows(table, self._churn, self._lake.path(table.name), wanted))
            asked = {"cluster": self._cluster, "until": end}
            rows = connection.execute(_NEWEST, {**asked, "groups": sorted(groups)}).fetchall() if groups else []
            counted = connection.execute(_MOVED, {**asked, "since": end - _COORDINATORS_WITHIN}).fetchone()
        newest = {
            group: Rebalance(decision, round(time.timestamp() * 1000), _causes(causes))
            for group, decision, time, causes in rows
            if decision is not None and time is not None
        }
        return newest, int(counted[0]) if counted else 0


def _causes(causes: Sequence[Mapping[str, Any]] | None) -> tuple[str, ...]:
    named = []
    for one in (causes or ())[:_MOST_CAUSES]:
        evidence = visible(one["evidence"] or "", _EVIDENCE_LENGTH)
        named.append(f"{visible(one['cause'] or '', 40)}{f': {evidence}' if evidence else ''}")
    return tuple(named)


def _of(decided: Decided, marks: Sequence[Mark]) -> tuple[Mark, ...]:
    at = decided.since if decided.time is None else decided.time
    return tuple(
        mark
        for mark in marks
        if at - MARKS_WITHIN_MS <= mark.time <= at + MARKS_WITHIN_MS // 60
        and (mark.group_id is None or decided.group_id is None or mark.group_id == decided.group_id)
    )
