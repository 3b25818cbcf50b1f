"""Sums over a group's partitions at one round: events on committed offsets, lag, and when data is lost.

Events are deletion, expiry, rewinds, and topics deleted and created again. A topic created again under its old name has
new offsets, so earlier commits mean nothing for it. Topic ids are compared if both commits (value version 4) and rounds
(brokers since 2.8) have them. A commit without an id counts for the topic that the last round before it showed, until
the group commits again.

An event happens at one round; its finding stays as long as it matters: a rewind while the offset is below where it was,
an offset of a replaced topic until the group commits again, other events for some minutes.

Data is lost when a topic's retention ends before a group that is behind has read its oldest unread record. The broker
deletes whole segments, the oldest first, once the largest timestamp in one is older than `retention.ms`
(`UnifiedLog.deleteRetentionMsBreachedSegments`), and looks every few minutes. So a record is there for at least
`retention.ms` after its own timestamp, and may go at any time from then on: at once, or when its segment is full and
the segment's last record has aged, too. These two sides of one moment are given as bounds:

- not before: the record was not readable before `time_min`. It is in the log a little earlier than it is readable, for
  as long as the slowest in-sync replica takes.
- from then on at any time: it was readable by `time_max`.

Both are about the record's own timestamp, so they hold with LogAppendTime. With CreateTime they hold as far as
producers stamp records with the present time, which clients do by default; so the row says which of the two it is.
`retention.bytes` may delete earlier, and leaves the first bound open. What only compaction removes is not lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from streaming.groups.kind import FindingAtRound, finding_of, with_count
from streaming.groups.lag.oldest_unread import LAG_UNKNOWN, UNCERTAIN_TIME, Unread
from streaming.groups.lag.partitions import RANKS, LagStatus, Measured
from streaming.groups.lag.state import DeletedOffsets, PartitionState
from streaming.groups.rows import for_people
from streaming.groups.state import GroupState, TopicState
from streaming.records import TopicObservation, TopicRetention
from streaming.terminal import counted

RECREATED = "topic_recreated"
"""Finding, and the reason of an unknown lag."""

_OFFSET_DELETED = "offset_deleted"
_DATA_LOST = "data_lost"

# `PartitionState.of_topic` of a commit without an id, made before the topic was created again.
_OTHER_TOPIC = ""

# Lag statuses of partitions whose offset may be below where it was.
TELLING = frozenset({"rewound", "unknown"})

# The tables' default heartbeat, long enough to be noticed by people who look only now and then.
_SHOWN_MS = 600_000


def was_recreated(known: TopicState, seen: TopicObservation) -> bool:
    """Whether a round shows a new topic under the old name.

    It has another id, or, if ids are unknown, fewer partitions: a topic never loses partitions.
    """
    if seen.partitions is None:
        return False
    if known.topic_id is not None and seen.topic_id is not None:
        return known.topic_id != seen.topic_id
    return seen.partitions < _count_before(known)


def note_recreation(known: TopicState, partitions: Iterable[PartitionState], time: int) -> None:
    """Note that a topic was deleted and created again, so that its commits are not compared with earlier ones."""
    known.recreated = time
    known.count_before = _count_before(known)
    for partition in partitions:
        partition.forget_rounds()
        partition.rewound_by = 0
        if partition.committed >= 0 and partition.of_topic is None:
            partition.of_topic = _OTHER_TOPIC


class OffsetEvents(NamedTuple):
    """What one round shows of the committed offsets of a group.

    Attributes:
        rewound: How far the offset is below where it was, in offsets, by topic and partition.
        lost: Number of offsets deleted before the group committed past them, by topic and partition.
        left_behind: Partitions whose offset is of an earlier topic of that name, by topic.
        deleted: Partitions whose offset was deleted since the round before, by topic.
    """

    rewound: dict[str, dict[int, int]]
    lost: dict[str, dict[int, int]]
    left_behind: dict[str, int]
    deleted: dict[str, int]

    def compare(
        self, topic: str, partition: int, known: PartitionState, reason: str | None, *, subscribed: bool
    ) -> None:
        """Compare a partition's committed offset with those before it.

        Args:
            topic: Topic.
            partition: Its number.
            known: Its state, including this round; its lag status is one of `TELLING`.
            reason: Why its lag is not known; None if it is.
            subscribed: The group subscribes to the topic.
        """
        if reason == RECREATED:
            self.left_behind[topic] = self.left_behind.get(topic, 0) + 1
        elif subscribed:
            # A round with unknown lag still has the commits.
            below = max(known.trend.high, known.trend.committed) - known.position
            if below > 0:
                self.rewound.setdefault(topic, {})[partition] = below


def findings_of_offsets(state: GroupState, time: int, events: OffsetEvents) -> list[FindingAtRound]:
    """The findings on committed offsets at a round.

    Args:
        state: The group's state, including this round.
        time: The round's time, ms.
        events: What the round shows.
    """
    if events.deleted:
        state.deleted = DeletedOffsets(events.deleted, time)
    if state.deleted is not None and time - state.deleted.time >= _SHOWN_MS:
        state.deleted = None
    if not (state.deleted or any(events) or any(topic.recreated >= 0 for topic in state.topics.values())):
        return []
    deleted = state.deleted or DeletedOffsets({}, time)
    recreated = [
        (topic.recreated if topic.recreated >= 0 else time, _recreated(name, topic, events.left_behind.get(name, 0)))
        for name, topic in sorted(state.topics.items())
        if name in events.left_behind or (topic.recreated >= 0 and 0 <= time - topic.recreated < _SHOWN_MS)
    ]
    rewound = [
        (time, f"{name[:200]} {partition} is {step:,} below where it was")
        for name, steps in sorted(events.rewound.items())
        for partition, step in sorted(steps.items())
    ]
    lost = [
        (time, f"{name[:200]} {partition} ({counted(count, 'offset')})")
        for name, counts in sorted(events.lost.items())
        for partition, count in sorted(counts.items())
    ]
    gone = [(deleted.time, with_count(name, count)) for name, count in sorted(deleted.topics.items())]
    told = (
        (RECREATED, "deleted and created again", recreated),
        ("rewound", "committed offsets went back", rewound),
        (_DATA_LOST, "deleted before the group committed past it", lost),
        (_OFFSET_DELETED, "committed offsets were deleted or expired", gone),
    )
    return [found for name, what, where in told for found in finding_of(name, what, where)]


def _recreated(name: str, topic: TopicState, left_behind: int) -> str:
    said = []
    count = topic.counts[-1].count
    if 0 < count < topic.count_before:
        said.append(f"{counted(count, 'partition')} instead of {topic.count_before}")
    if left_behind:
        said.append(f"{counted(left_behind, 'partition')} with offsets of the previous topic")
    if said:
        return f"{name[:200]} ({', '.join(said)})"
    return name[:200]


def _count_before(known: TopicState) -> int:
    return next((seen.count for seen in reversed(known.counts) if seen.count), 0)


KEEPS_UP: Final = "keeps_up"
NO_RETENTION: Final = "no_retention"
RETENTION_BYTES: Final = "retention_bytes"
RETENTION_UNKNOWN: Final = "retention_unknown"

APPEND_TIME: Final = "append_time"
CREATE_TIME: Final = "create_time"

_UNREPLICATED_MS: Final = 60_000
"""A record is readable when all in-sync replicas have it. One that lags is dropped from them after
`replica.lag.time.max.ms` (30 s), looked at every half of that."""

_UNLIMITED_MS: Final = 100 * 366 * 86_400_000
"""A century: people who want to keep all write the largest number, and a sum with that would not fit into int64."""


class End(NamedTuple):
    """The end of the retention of one partition's oldest unread record; all None where no end is known.

    Attributes:
        end: Time at which it has certainly come, ms.
        topic: Topic, as people read it.
        partition: Partition.
        retention_seconds: `retention.ms` of the topic, in seconds.
    """

    end: int | None = None
    topic: str | None = None
    partition: int | None = None
    retention_seconds: float | None = None


NO_END: Final = End()


@dataclass(slots=True)
class DataLoss:
    """The earliest end of retention among the oldest unread records of a group's partitions, at one round.

    Attributes:
        not_before: Until then nothing is deleted, ms; None while no partition is in question. Means nothing if
            `open_reason` is set.
        open_reason: Why it is not known for all partitions; None if it is.
        last: The first partition whose record may then be deleted at any time, if that is known for any.
        by: Whether timestamps are of the brokers (`APPEND_TIME`) or, in any of the topics, of producers
            (`CREATE_TIME`); None while no partition is in question.
    """

    not_before: int | None = None
    open_reason: str | None = None
    last: End = NO_END
    by: str | None = None

    def add(self, topic: str, partition: int, unread: Unread, kept: TopicRetention | None) -> None:
        """Add a partition with unread records."""
        if kept is None:
            self.open_reason = RETENTION_UNKNOWN
            return
        by_time, by_size = 0 <= kept.ms < _UNLIMITED_MS, kept.bytes >= 0
        if not kept.deletes or not (by_time or by_size):
            return
        self.by = APPEND_TIME if kept.append_time and self.by != CREATE_TIME else CREATE_TIME
        if by_size:
            self.open_reason = self.open_reason or RETENTION_BYTES
        elif unread.time_min is None:
            self.open_reason = self.open_reason or unread.reason
        else:
            end = unread.time_min - _UNREPLICATED_MS + kept.ms
            self.not_before = end if self.not_before is None else min(self.not_before, end)
        if by_time and unread.time_max is not None:
            end = unread.time_max + kept.ms
            if self.last.end is None or end < self.last.end:
                self.last = End(end, for_people(topic), partition, kept.ms / 1000)

    def reason(self, *, lag_known: bool, keeps_up: bool) -> str | None:
        """Why a bound is NULL; None if both are known."""
        if not lag_known:
            return LAG_UNKNOWN
        if keeps_up:
            return KEEPS_UP
        if self.open_reason is not None:
            return self.open_reason
        if self.not_before is None:
            return NO_RETENTION
        if self.last.end is None:
            return UNCERTAIN_TIME
        return None


@dataclass(slots=True)
class Totals:
    """Sums over the partitions of subscribed topics, and the oldest unread record of all with a known lag.

    Attributes:
        unread_min: It was not readable before, ms; None if nothing is unread, or the bound is not known.
        unread_max: It was readable by then, ms; None likewise.
        unread_reason: Why `unread_min` is not known; None if it is, or if nothing is unread.
        unread_partition: Topic and partition of the record that was readable by `unread_max`; None if the group
            keeps up.
        keeps_up: The group has read all that the round before could have read, as far as its lag is known.
        is_behind: A partition has not read all that the round before could have read.
        loss: Until when retention keeps the oldest unread records.
        events: What the round shows of committed offsets.
    """

    unread_min: int | None = None
    unread_max: int | None = None
    unread_reason: str | None = None
    unread_partition: tuple[str, int] | None = None
    keeps_up: bool = False
    is_behind: bool = False
    total: int | None = None
    stable: int | None = None
    largest: int | None = None
    unknown: int = 0
    partitions: int = 0
    status: int = 0
    topics: set[str] = field(default_factory=set)
    loss: DataLoss = field(default_factory=DataLoss)
    events: OffsetEvents = field(default_factory=lambda: OffsetEvents({}, {}, {}, {}))

    def add(self, measured: Measured, status: LagStatus) -> None:
        """Add one partition."""
        self.partitions += 1
        self.status = max(self.status, RANKS[status])
        if measured.lag is None:
            self.unknown += 1
            return
        self.total = (self.total or 0) + measured.lag
        if self.largest is None or measured.lag > self.largest:
            self.largest = measured.lag
        if measured.lag_read_committed is not None:
            self.stable = (self.stable or 0) + measured.lag_read_committed

    def wait(self, topic: str, partition: int, unread: Unread, kept: TopicRetention | None) -> None:
        """Add the oldest unread record of a partition that is behind, and how long its topic keeps records."""
        self.loss.add(topic, partition, unread, kept)
        if unread.time_max is not None and (self.unread_max is None or unread.time_max < self.unread_max):
            self.unread_max, self.unread_partition = unread.time_max, (topic, partition)
        if unread.reason is not None:
            self.unread_min, self.unread_reason = None, unread.reason
        elif self.unread_reason is None and unread.time_min is not None:
            self.unread_min = unread.time_min if self.unread_min is None else min(self.unread_min, unread.time_min)
