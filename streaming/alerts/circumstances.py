"""What had happened before an alert, from the tables: the group's newest rebalance, brokers, coordinators, marks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from streaming.alerts.transitions import FIRING, Transition
from streaming.notes import Mark
from streaming.tables import OpenedTable, table_named
from streaming.terminal import age, counted, visible
from streaming.times import DAY_MS, epoch_ms, utc

# What a broker that goes down does to groups is over by then.
_BROKERS_WITHIN_MS: Final = 30 * 60_000

# A record is written before its round, by the clock of another broker.
_SLACK_MS: Final = 5_000

# A mark that is older has led to nothing that fires now.
_MARKS_WITHIN_MS: Final = 3_600_000
_MOST_MARKS: Final = 3
_MOST_BROKERS: Final = 3

# Clocks of those who mark differ from the brokers'.
_MARKS_AHEAD_MS: Final = 60_000

_MOST_CAUSES: Final = 4
_EVIDENCE_LENGTH: Final = 80

# A rebalance from before yesterday has nothing to do with what fires now: files of one day are read.
_NEWEST: Final = """
SELECT a.position, max(c.decision) AS decision, arg_max_null(c.record_time, c.decision) AS record_time,
  arg_max_null(c.causes, c.decision) AS causes
FROM (
  SELECT unnest(range(len($groups))) AS position, unnest($groups::VARCHAR[]) AS group_id,
    unnest($untils::BIGINT[]) AS until
) AS a
JOIN rebalance_churn AS c ON c.group_id = a.group_id AND c.cluster = $cluster AND epoch_ms(c.record_time) <= a.until
GROUP BY a.position
"""

_MOVED: Final = """
SELECT a.position, count(DISTINCT c.group_id) AS moved
FROM (SELECT unnest(range(len($untils))) AS position, unnest($untils::BIGINT[]) AS until) AS a
JOIN rebalance_churn AS c ON c.cluster = $cluster AND epoch_ms(c.record_time) BETWEEN a.until - $within AND a.until
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
SELECT position, gone.broker AS broker, arg_max(gone.host, round) AS host, max(epoch_ms(gone.since)) AS since,
  max(round) < any_value(newest) AS is_back
FROM seen
GROUP BY position, gone.broker
HAVING since >= any_value(until) - $within
ORDER BY position, since DESC, gone.broker
"""


class Happened:
    """Finds the circumstances of alerts. For one thread."""

    def __init__(self, lake: str, cluster: str) -> None:
        """Prepare; nothing is read yet."""
        self._cluster = cluster
        self._churn = OpenedTable(lake, table_named("rebalance_churn"))
        self._rounds = OpenedTable(lake, table_named("rounds"))

    def with_circumstances(self, decided: Sequence[Transition], marks: Sequence[Mark]) -> list[Transition]:
        """The same transitions; those that fire with what had happened before them.

        Args:
            decided: Transitions.
            marks: Marks of the cluster, the oldest first.

        Raises:
            DeltaError, OSError, duckdb.Error, LakeUnreadableError: The table cannot be read now.
        """
        firing = [one for one in decided if one.state == FIRING]
        if not firing:
            return list(decided)
        untils = [one.at + _SLACK_MS for one in firing]
        groups = [one.group_id or "" for one in firing]
        within = _BROKERS_WITHIN_MS
        newest = {
            row["position"]: row
            for row in self._asked(self._churn, _NEWEST, untils, DAY_MS, groups=groups)
            if row["decision"] is not None and row["record_time"] is not None
        }
        moved_rows = self._asked(self._churn, _MOVED, untils, within, within=within)
        moved = {row["position"]: row["moved"] for row in moved_rows}
        down: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in self._asked(self._rounds, _DOWN, untils, within, within=within):
            down[row["position"]].append(row)
        found: dict[str, Transition] = {}
        for position, one in enumerate(firing):
            rebalance = newest.get(position)
            clauses = [
                *_rebalanced(one, rebalance),
                *_went_down(one, down[position]),
                *_moved(moved.get(position, 0), "" if down[position] else ": a broker restarted or went away"),
                *_marked(one, marks),
            ]
            decision = None if rebalance is None else rebalance["decision"]
            found[one.transition_id] = replace(one, before="; ".join(clauses) or None, rebalance=decision)
        return [found.get(one.transition_id, one) for one in decided]

    def _asked(
        self, table: OpenedTable, sql: str, untils: Sequence[int], back_ms: int, **given: Any
    ) -> list[dict[str, Any]]:
        """Rows of a query about some times (ms), over files that go so far back before them."""
        if not table.refresh():
            return []
        times = utc(min(untils) - back_ms), utc(max(untils))
        asked = {"cluster": self._cluster, "untils": [*untils], **given}
        return table.ask(sql, asked, table.files(cluster=self._cluster, times=times), beside_viewers=True)


def _rebalanced(about: Transition, row: Mapping[str, Any] | None) -> Iterator[str]:
    if row is None:
        return
    named = []
    for one in (row["causes"] or ())[:_MOST_CAUSES]:
        evidence = visible(one["evidence"] or "", _EVIDENCE_LENGTH)
        named.append(f"{visible(one['cause'] or '', 40)}{f': {evidence}' if evidence else ''}")
    why = f" ({', '.join(named)})" if named else ""
    yield f"rebalance {_apart(epoch_ms(row['record_time']), about.since)}{why}"


def _went_down(about: Transition, brokers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in brokers[:_MOST_BROKERS]:
        host = f" ({visible(row['host'], 60)})" if row["host"] else ""
        back = ", and is back" if row["is_back"] else ""
        yield f"broker {row['broker']}{host} went down {_apart(row['since'], about.since)}{back}"
    if len(brokers) > _MOST_BROKERS:
        yield f"{len(brokers) - _MOST_BROKERS} more went down in the half hour before"


def _moved(groups: int, why: str) -> Iterator[str]:
    if groups:
        yield f"the coordinator of {counted(groups, 'group')} moved in the half hour before{why}"


def _marked(about: Transition, marks: Sequence[Mark]) -> Iterator[str]:
    """Marks of the last hour that concern an alert."""
    first, last = about.at - _MARKS_WITHIN_MS, about.at + _MARKS_AHEAD_MS
    concern = [
        mark
        for mark in marks
        if first <= mark.mark_time <= last
        and (None in (mark.group_id, about.group_id) or mark.group_id == about.group_id)
    ]
    for mark in concern[-_MOST_MARKS:]:
        yield f"mark {_apart(mark.mark_time, about.since)}: {visible(mark.text)} ({visible(mark.made_by, 60)})"


def _apart(time: int, now: int) -> str:
    seconds = (now - time) / 1000
    # Clocks of brokers and people differ by seconds.
    if abs(seconds) < 5:
        return "at the same time"
    return f"{age(timedelta(seconds=abs(seconds)))} {'earlier' if seconds > 0 else 'later'}"
