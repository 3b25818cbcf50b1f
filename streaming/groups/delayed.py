"""Records that became readable while a rebalance left their partitions without an owner, as a lower and an upper bound.

The log shows when a partition has an owner again: from the record of the decision on, or where the broker assigns, from
the record in which the next member has it. Rounds show high watermarks, which only grow. So

- **at most** what lies between the offset that the last owner had committed (all records below had arrived, and were
  read, before it gave the partition up) and the high watermark of the next round, which was asked after the record.
  This depends on no clock. While a group is behind, its committed offset says little; then the high watermark of a
  round that had closed well before that commit takes its place.
- **at least** what arrived between two rounds that certainly lie inside the time without an owner.

"Well before" and "certainly" compare a record's time with a round's, which other brokers may have stamped: their clocks
may differ by `CLOCKS_MS`.

The next round of the group gives the bounds, or why there are none. No later one revises them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from streaming.groups.lag.partitions import offsets_of
from streaming.groups.lag.state import PartitionState, RoundTimes
from streaming.groups.rows import MOST, ChurnRow
from streaming.records import GroupObservation

CLOCKS_MS: Final = 60_000
"""How far the clocks of two brokers may be apart, ms. Clocks kept by NTP differ by far less; more would widen the
bounds of groups that are behind."""

WAITING_MAX: Final = 16
"""Most rebalances of a group that wait for its next round: one that rebalances every second has ten of them. Without a
limit they would grow while the probe is silent; those beyond it are never told."""

# Why there are no bounds; the column `records_delayed_reason` explains each.
OWNERS_UNKNOWN: Final = "owners_unknown"
STRATEGY_UNKNOWN: Final = "strategy_unknown"
HANDOVER_PENDING: Final = "handover_pending"
NO_COMMIT: Final = "no_commit"
NO_ROUND: Final = "no_round"
NOT_SHOWN: Final = "high_watermark_unknown"
OTHER_LOG: Final = "other_log"
SEEN_ONLY: Final = "seen_only"

MOST_MS: Final = 2**53
"""Limit of sums of times, ms. Anyone with write access to the log can write absurd timestamps; state and tables hold
int64."""

PartitionStates = Mapping[str, Mapping[int, PartitionState]]


class Stop(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One partition that a rebalance stopped.

    Attributes:
        arrived: Records below this offset had arrived before it stopped.
        since: From then on it had no owner, ms; -1 if unknown.
        until: Until then, ms; -1 if unknown.
    """

    arrived: int
    since: int = -1
    until: int = -1


class Stopped(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A rebalance that waits for the group's next round.

    Attributes:
        row: Its churn row as last written.
        stops: Partitions that it stopped, by topic; empty if it only waits for the reason why its coordinator moved.
    """

    row: ChurnRow
    stops: dict[str, dict[int, Stop]]


def arrived_before(known: PartitionState | None, newest: RoundTimes) -> int | None:
    """An offset below which all records had arrived when the partition's last commit was made; None without one.

    Args:
        known: The partition, with all commits of its last owner.
        newest: The group's newest round.
    """
    if known is None or known.committed < 0 or known.of_topic is not None:
        return None
    latest = known.commit_time - CLOCKS_MS
    return max([known.committed, *(end for end, _, closed in _seen(known, newest) if 0 <= closed <= latest)])


def bounds(
    stopped: Stopped, partitions: PartitionStates, newest: RoundTimes, observation: GroupObservation
) -> tuple[int | None, int | None, str | None]:
    """What the next round shows of a rebalance.

    Args:
        stopped: The rebalance.
        partitions: The group's partitions, before this round was judged.
        newest: The round before.
        observation: The round; the records that ended all the stops lie below its position.

    Returns:
        The columns `records_delayed_min`, `_max` and `_reason`.
    """
    shown = {seen.topic: seen for seen in observation.topics}
    least = most = 0
    for topic, stops in stopped.stops.items():
        seen = shown.get(topic)
        count = seen.partitions or 0 if seen is not None else 0
        ends = offsets_of(seen.high_watermarks, count) if seen is not None else ()
        for partition, stop in stops.items():
            if not 0 <= partition < count or ends[partition] < 0:
                return None, None, NOT_SHOWN
            if ends[partition] < stop.arrived:
                return None, None, OTHER_LOG
            arrived = ends[partition] - stop.arrived
            most += arrived
            least += min(arrived, _between(partitions.get(topic, {}).get(partition), newest, stop))
    return min(MOST, least), min(MOST, most), None


def with_seconds(row: ChurnRow, least: int | None, most: int | None) -> ChurnRow:
    """The row with these bounds of the time without an owner, ms; None leaves one as it is."""
    low = row.unassigned_partition_seconds_min if least is None else round(min(MOST_MS, least) / 1000, 3)
    high = row.unassigned_partition_seconds_max if most is None else max(low or 0.0, round(most / 1000, 3))
    return msgspec.structs.replace(row, unassigned_partition_seconds_min=low, unassigned_partition_seconds_max=high)


def forget_stops(waiting: Sequence[Stopped], topic: str) -> None:
    """Note that a topic was created again: its high watermark says nothing about stops of the one before it."""
    for stopped in waiting:
        if topic in stopped.stops:
            stopped.stops[topic] = dict.fromkeys(stopped.stops[topic], Stop(MOST))


def _between(known: PartitionState | None, newest: RoundTimes, stop: Stop) -> int:
    """Records that arrived between two rounds inside the time without an owner; 0 if there are not two."""
    if known is None or stop.since < 0 or stop.until < 0:
        return 0
    seen = list(_seen(known, newest))
    first = min((end for end, opened, _ in seen if opened >= stop.since + CLOCKS_MS), default=None)
    last = max((end for end, _, closed in seen if 0 <= closed <= stop.until - CLOCKS_MS), default=None)
    return 0 if first is None or last is None else max(0, last - first)


def _seen(known: PartitionState, newest: RoundTimes) -> Iterator[tuple[int, int, int]]:
    """High watermarks, each with the opening of the last round that saw it and the closing of the first one."""
    marks = known.marks
    yield from zip(marks[::3], marks[1::3], marks[2::3], strict=True)
    if known.row is not None and known.row[1] is not None:
        yield known.row[1], newest.opened, newest.closed
