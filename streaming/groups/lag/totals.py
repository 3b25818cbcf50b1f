"""Sums over a group's partitions at one round, which `rows.py` adds up and `group_health` shows."""

from __future__ import annotations

from streaming.groups.lag.data_loss import DataLoss
from streaming.groups.lag.oldest_unread import Unread
from streaming.groups.lag.partitions import RANKS, Measured
from streaming.records import TopicRetention

MOST = 2**63 - 1
"""The tables hold int64."""


class Totals:
    """Sums over the partitions of subscribed topics, and the oldest unread record of all with a known lag.

    Attributes:
        unread_min: It was not readable before, ms; None if nothing is unread, or the bound is not known.
        unread_max: It was readable by then, ms; None likewise.
        unread_reason: Why `unread_min` is not known; None if it is, or if nothing is unread.
        unread_partition: Topic and partition of the record that was readable by `unread_max`; None if the group
            keeps up.
        keeps_up: The group has read all that the round before could have read, as far as its lag is known.
        drain_seconds: As `drained` gives it; None while the group is not behind.
        fingerprint: A number that stands for the partitions with a known lag: others have another one, with near
            certainty.
        is_behind: A partition has not read all that the round before could have read.
        is_cut: Records that a partition has not read are below its log start.
        loss: Until when retention keeps the oldest unread records.
    """

    __slots__ = (
        "drain_seconds",
        "fingerprint",
        "is_behind",
        "is_cut",
        "keeps_up",
        "largest",
        "loss",
        "lost",
        "partitions",
        "stable",
        "status",
        "topics",
        "total",
        "unknown",
        "unread_max",
        "unread_min",
        "unread_partition",
        "unread_reason",
    )

    def __init__(self) -> None:
        self.unread_min: int | None = None
        self.unread_max: int | None = None
        self.unread_reason: str | None = None
        self.unread_partition: tuple[str, int] | None = None
        self.drain_seconds: float | None = None
        self.keeps_up = False
        self.fingerprint = 0
        self.is_behind = False
        self.is_cut = False
        self.loss = DataLoss()
        self.total: int | None = None
        self.stable: int | None = None
        self.largest: int | None = None
        self.unknown = 0
        self.partitions = 0
        self.topics = set[str]()
        self.status = 0
        self.lost: dict[str, dict[int, int]] = {}

    def add(self, measured: Measured, status: str, code: int) -> None:
        """Add one partition; `code` stands for it and no other, 0 if its lag is not known."""
        self.partitions += 1
        self.fingerprint = (self.fingerprint * 31 + code) & MOST if code else self.fingerprint
        rank = RANKS[status]
        self.status = max(self.status, rank)
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

    def lose(self, topic: str, partition: int, lost: int) -> None:
        """Add a partition's lost offsets, as of the previous round's log start offset; 0 adds nothing."""
        if lost:
            self.lost.setdefault(topic, {})[partition] = lost
