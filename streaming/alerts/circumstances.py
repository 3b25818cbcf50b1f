"""What had happened before an alert, from the tables: the group's newest rebalance, brokers, coordinators, marks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import duckdb
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from streaming.alerts.delivery.wording import MARKS_WITHIN_MS
from streaming.alerts.transitions import FIRING, BrokerDown, Circumstances, DecisionBefore, TransitionRow
from streaming.notes import Mark
from streaming.tables import DAY, DeltaLake, all_rows, in_memory, table_named
from streaming.terminal import visible
from streaming.times import epoch_ms

# A rebalance from before yesterday has nothing to do with what fires now; reading further back reads more files.
_DAYS: Final = 1
# What a broker that goes down does to groups is over by then.
_BROKERS_WITHIN_MS: Final = 30 * 60_000

# A record is written before its round, by the clock of another broker.
_SLACK_MS: Final = 5_000

# Clocks of those who mark differ from the brokers'.
_MARKS_AHEAD_MS: Final = 60_000

_MOST_CAUSES: Final = 4
_EVIDENCE_LENGTH: Final = 80

_NEWEST: Final = """
SELECT a.position, max(c.decision) AS decision, arg_max_null(c.record_time, c.decision) AS record_time,
  arg_max_null(c.causes, c.decision) AS causes
FROM (
  SELECT unnest(range(len($groups))) AS position, unnest($groups::VARCHAR[]) AS group_id,
    unnest($untils::BIGINT[]) AS until
) AS a
JOIN churn AS c ON c.group_id = a.group_id AND c.cluster = $cluster AND epoch_ms(c.record_time) <= a.until
GROUP BY a.position
"""

_MOVED: Final = """
SELECT a.position, count(DISTINCT c.group_id) AS moved
FROM (SELECT unnest(range(len($untils))) AS position, unnest($untils::BIGINT[]) AS until) AS a
JOIN churn AS c ON c.cluster = $cluster AND epoch_ms(c.record_time) BETWEEN a.until - $within AND a.until
  AND list_has_any([one.cause for one in c.causes], ['coordinator_moved', 'broker_down', 'broker_up'])
GROUP BY a.position
"""

# A broker that is back is in no newer round's `brokers_gone`.
_DOWN: Final = """
WITH heard AS (
  SELECT a.position, a.until, r.round, r.brokers_gone, max(r.round) OVER (PARTITION BY a.position) AS newest
  FROM (SELECT unnest(range(len($untils))) AS position, unnest($untils::BIGINT[]) AS until) AS a
  JOIN rounds AS r ON r.cluster = $cluster AND epoch_ms(r.round_time) BETWEEN a.until - $within AND a.until
), seen AS (
  SELECT position, until, round, newest, unnest(brokers_gone) AS gone FROM heard
)
SELECT position, gone.broker, arg_max(gone.host, round), max(epoch_ms(gone.since)) AS since,
  max(round) < any_value(newest)
FROM seen
GROUP BY position, gone.broker
HAVING since >= any_value(until) - $within
ORDER BY position, since DESC, gone.broker
"""


class Happened:
    """Finds the circumstances of alerts. For one thread."""

    def __init__(self, lake: str, cluster: str) -> None:
        """Prepare; nothing is read yet."""
        self._lake = DeltaLake(lake)
        self._cluster = cluster
        self._tables: dict[str, DeltaTable] = {}

    def with_circumstances(self, decided: Sequence[TransitionRow], marks: Sequence[Mark]) -> list[TransitionRow]:
        """The same transitions; those that fire with what had happened before them.

        Raises:
            DeltaError, OSError, duckdb.Error, LakeUnreadableError: The table cannot be read now.
        """
        firing = [one for one in decided if one.state == FIRING]
        if not firing:
            return list(decided)
        times = [_at(one) + _SLACK_MS for one in firing]
        newest, moved = self._rebalances([one.group_id or "" for one in firing], times)
        down = self._brokers(times)
        found = {
            one.transition_id: Circumstances(
                newest.get(position), tuple(down.get(position, ())), moved.get(position, 0), _of(one, marks)
            )
            for position, one in enumerate(firing)
        }
        return [replace(one, circumstances=found[one.transition_id]) if one.state == FIRING else one for one in decided]

    def _rebalances(
        self, groups: Sequence[str], untils: Sequence[int]
    ) -> tuple[Mapping[int, DecisionBefore], Mapping[int, int]]:
        """The newest rebalance of each group up to a time (ms), and how many coordinators moved; both by position."""
        opened = self._opened("rebalance_churn")
        if opened is None:
            return {}, {}
        first = (_utc(min(untils)) - timedelta(days=_DAYS)).date()
        last = _utc(max(untils)).date()

        def wanted(file: Mapping[str, Any]) -> bool:
            day = file.get(f"partition.{DAY}")
            return day is None or first <= day <= last

        with self._asked(opened, "rebalance_churn", "churn", wanted) as connection:
            asked = {"cluster": self._cluster, "untils": [*untils]}
            rows = connection.execute(_NEWEST, asked | {"groups": [*groups]}).fetchall()
            moved = connection.execute(_MOVED, asked | {"within": _BROKERS_WITHIN_MS}).fetchall()
        newest = {
            position: DecisionBefore(decision, epoch_ms(time), _causes(causes))
            for position, decision, time, causes in rows
            if decision is not None and time is not None
        }
        return newest, dict(moved)

    def _brokers(self, untils: Sequence[int]) -> Mapping[int, Sequence[BrokerDown]]:
        """Brokers that went down before a time (ms), the newest first, by its position."""
        opened = self._opened("rounds")
        if opened is None:
            return {}
        first = _utc(min(untils) - _BROKERS_WITHIN_MS)

        def wanted(file: Mapping[str, Any]) -> bool:
            newest, day = file.get("max.round_time"), file.get(f"partition.{DAY}")
            if newest is not None:
                return bool((newest if newest.tzinfo else newest.replace(tzinfo=UTC)) >= first)
            return day is None or bool(day >= first.date())

        found: defaultdict[int, list[BrokerDown]] = defaultdict(list)
        with self._asked(opened, "rounds", "rounds", wanted) as connection:
            asked = {"cluster": self._cluster, "untils": [*untils], "within": _BROKERS_WITHIN_MS}
            for position, broker, host, since, is_back in connection.execute(_DOWN, asked).fetchall():
                found[position].append(BrokerDown(broker, host, since, is_back))
        return found

    def _opened(self, name: str) -> DeltaTable | None:
        """A table as it is now; None where it is not there."""
        table = self._tables.get(name)
        if table is None:
            try:
                table = self._tables[name] = DeltaTable(self._lake.path(name))
            except TableNotFoundError:
                return None
        table.update_incremental()
        return table

    @contextmanager
    def _asked(
        self, opened: DeltaTable, name: str, view: str, wanted: Callable[[Mapping[str, Any]], bool]
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection that has the files of a table that are wanted as a view."""
        with in_memory() as connection:
            connection.register(view, all_rows(table_named(name), opened, self._lake.path(name), wanted))
            yield connection


def _causes(causes: Sequence[Mapping[str, Any]] | None) -> tuple[str, ...]:
    named = []
    for one in (causes or ())[:_MOST_CAUSES]:
        evidence = visible(one["evidence"] or "", _EVIDENCE_LENGTH)
        named.append(f"{visible(one['cause'] or '', 40)}{f': {evidence}' if evidence else ''}")
    return tuple(named)


def _utc(time: int) -> datetime:
    return datetime.fromtimestamp(time / 1000, UTC)


def _at(decided: TransitionRow) -> int:
    return decided.since if decided.time is None else decided.time


def _of(decided: TransitionRow, marks: Sequence[Mark]) -> tuple[Mark, ...]:
    at = _at(decided)
    return tuple(
        mark
        for mark in marks
        if at - MARKS_WITHIN_MS <= mark.time <= at + _MARKS_AHEAD_MS
        and (mark.group_id is None or decided.group_id is None or mark.group_id == decided.group_id)
    )
