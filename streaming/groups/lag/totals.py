"""Sums over a group's partitions at one round: lag, and when data is lost.

Until when a topic's retention keeps the oldest unread record of a group that is behind.

The broker deletes whole segments, the oldest first, once the largest timestamp in one is older than `retention.ms`
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

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from streaming.groups.lag.offset_events import OffsetEvents
from streaming.groups.lag.oldest_unread import LAG_UNKNOWN, UNCERTAIN_TIME, Unread
from streaming.groups.lag.partitions import RANKS, LagStatus, Measured
from streaming.groups.rows import for_people
from streaming.records import TopicRetention

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
    last: End = field(default_factory=End)
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
    events: OffsetEvents = field(default_factory=lambda: OffsetEvents({}, {}, Counter(), Counter()))

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
