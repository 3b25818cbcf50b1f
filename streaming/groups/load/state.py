"""The state of a group's load: where its present window began, and what the newest ended one has shown."""

from __future__ import annotations

import msgspec

from streaming.groups.rows import HotPartition


class TopicStart(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """A topic at a window's start.

    Attributes:
        topic_id: Its id; None when unknown.
        ends: High watermark per partition, packed (`rates.py`); below 0 where the window can have no rate.
        committed: Committed offset per partition, the same shape; -1 where there is none, -2 where the window can have
            no rate.
    """

    topic_id: str | None
    ends: bytes
    committed: bytes


class TopicCounts(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """Records of a topic in the newest ended window.

    Attributes:
        produced: Offsets by which the high watermark has grown, per partition, packed; -1 where unknown.
        consumed: The same for the committed offset.
    """

    produced: bytes
    consumed: bytes


class LoadState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The load of one group. Changed in place.

    Attributes:
        since: Elapsed time at the start of the present window, ms.
        since_time: Time of that round, ms.
        starts: Topics at that round.
        behind: The group was behind at each round of the present window so far.
        length: Length of the newest ended window, ms; 0 if there is none, or if its length is not certain.
        counts: Records in that window, by topic.
        produced_per_second: Sum of its known rates over subscribed partitions; None if none is known.
        consumed_per_second: The same.
        consumed_per_second_behind: Records consumed per second in the newest window in which the group was behind all
            the time; None before the first.
        assignment: What stands for the assignment that the following are of; None before the first.
        imbalance: max / mean - 1 of the produced records per member; None if unknown.
        imbalance_optimal: Bounds of the least that any assignment could reach; None if unknown.
        hot_partitions: Partitions that are too much for any member; None if unknown.
        members: Ids of the members with an open row of `member_load`.
    """

    since: int
    since_time: int
    starts: dict[str, TopicStart] = {}
    behind: bool = False
    length: int = 0
    counts: dict[str, TopicCounts] = {}
    produced_per_second: float | None = None
    consumed_per_second: float | None = None
    consumed_per_second_behind: float | None = None
    assignment: tuple[int, int] | None = None
    imbalance: float | None = None
    imbalance_optimal: tuple[float, float] | None = None
    hot_partitions: tuple[HotPartition, ...] | None = None
    members: tuple[str, ...] = ()
