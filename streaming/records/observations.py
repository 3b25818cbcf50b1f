"""What one round saw of one group, of its topics, or of a topic of the cluster: from the probe to the core, one shape.

The probe writes these structs into `evenkeel.events` (`streaming/events.py`), the source adds what only it knows
(fields that say so), and the core takes them. Arrays in JSON and in msgpack: fields are only ever appended, with
defaults.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import msgspec

from streaming.records.membership import Seen

STATE_LOG: Final = "share_state"
"""Deliveries are read from `__share_group_state`."""

BROKERS: Final = "brokers"
"""Start offsets and lag are asked for (DescribeShareGroupOffsets); nobody tells more."""


START_NOT_TOLD: Final = -2
"""`SharePartition.start` where the coordinator could not tell it in this round."""


class SharePartition(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One partition of a share group.

    What members have acquired is in the memory of the partition's leader, and in no answer and no record.

    Attributes:
        partition: Its number.
        start: Start offset, as the share coordinator keeps it; -1 while nothing was ever delivered, `START_NOT_TOLD`
            where it is not known in this round.
        done: Records at or after the start offset that are acknowledged or archived; -1 where only lag is known.
        lag: Lag as the broker computes it (KIP-1226): records from the start offset to the end that are not done; -1
            where `done` tells it, or it is not known.
        first: First offset from the start on that is not done; -1 where it is not known.
        acknowledged: Records from the start offset on that members have acknowledged; -1 where it is not known, like
            all that follow.
        archived: Those that will not be delivered again: rejected, given up, or not a record.
        released: Those that came back after a delivery: released, or their lock ran out.
        deliveries: How often the record that came back most often has been delivered.
        archivals: Records archived since counting began (`SeenShares.since`), by the number of their deliveries.
    """

    partition: int
    start: int
    done: int = -1
    lag: int = -1
    first: int = -1
    acknowledged: int = -1
    archived: int = -1
    released: int = -1
    deliveries: int = -1
    archivals: tuple[tuple[int, int], ...] = ()


class SeenShares(msgspec.Struct, frozen=True, array_like=True):
    """The deliveries of a share group in one round.

    Attributes:
        source: `STATE_LOG` or `BROKERS`.
        since: Names the beginning of what `SharePartition.archivals` counts: with another one, counting began again at
            the last closed round before.
        topics: Partitions by topic, ascending.
        lock_ms: How long a member may keep an acquired record without renewing it; None when unknown.
        limit: How often a record is delivered at most; None when unknown.
        dead_letters: Topic that gets the records that are given up (Kafka 4.4); None without one, or when unknown.
    """

    source: str
    since: int
    topics: dict[str, tuple[SharePartition, ...]]
    lock_ms: int | None = None
    limit: int | None = None
    dead_letters: str | None = None


STOPPED: Final = "STOPPED"
"""Target state of a connector without tasks (Kafka 3.5, KIP-875)."""

TASKS_UNKNOWN: Final = -1
"""`Connector.tasks` where compaction has left too little of the topic to tell."""


class Connector(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A connector that is configured.

    Attributes:
        name: Its name.
        tasks: Number of its tasks, by the newest commit; 0 before the first, or `TASKS_UNKNOWN`.
        state: Target state: "STARTED", "PAUSED", whose tasks are assigned all the same, or `STOPPED`.
    """

    name: str
    tasks: int
    state: str


class SeenConnectors(msgspec.Struct, frozen=True, array_like=True):
    """The connectors of a Connect group in one round.

    Attributes:
        topic: The configuration topic.
        connectors: All that are configured, by name.
    """

    topic: str
    connectors: tuple[Connector, ...]


class Configured(msgspec.Struct, frozen=True, array_like=True):
    """What the settings say of one group, as the probe had read them before the round.

    It travels with the group, so that a replay judges with the settings of that time.

    Attributes:
        version: Fingerprint of `[[strategies]]` and `clients` as a whole.
        strategy: The strategy that the group should run; None where none is configured.
        clients: The libraries that its members run, as the operator declares ("java:3.7.1", "sarama"); () where
            nothing is declared.
    """

    version: str
    strategy: str | None = None
    clients: tuple[str, ...] = ()

    def says(self) -> tuple[str | None, tuple[str, ...]]:
        """What a verdict depends on: all but the version."""
        return self.strategy, self.clients


class TopicRetention(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How long the records of a topic are kept, by its settings.

    Attributes:
        ms: `retention.ms`; -1 for unlimited.
        bytes: `retention.bytes`; -1 for unlimited.
        deletes: `cleanup.policy` has "delete": without it both mean nothing.
        append_time: `message.timestamp.type` is LogAppendTime, so that a record's age is its time in the log; False for
            CreateTime, the producer's word.
        compacts: `cleanup.policy` has "compact": offsets may be missing from the log.
    """

    ms: int
    bytes: int
    deletes: bool
    append_time: bool
    compacts: bool = False


class UnreadTimestamp(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What brokers say about the timestamps of a partition's records, from the log start to the oldest unread one.

    Attributes:
        offset: Offset of the oldest unread record.
        reached: One of these records has this timestamp, ms.
        below: All of them have timestamps below this one, ms; -1 when unknown.
        own: The oldest unread record itself is the one that has `reached`.
    """

    offset: int
    reached: int
    below: int
    own: bool


class TopicObservation(msgspec.Struct, frozen=True, array_like=True):
    """One topic of a group in one round.

    Attributes:
        topic: Topic.
        topic_id: Kafka's printed topic id; None when unknown.
        partitions: Partition count; None when the topic does not exist, 0 never.
        high_watermarks: High watermark per partition, little-endian int64; -1 where unknown.
        last_stable_offsets: Last stable offset per partition, the same shape.
        log_start_offsets: Log start offset per partition, the same shape.
        racks: Replica racks per partition; None when no broker has a rack.
        retention: How long records are kept; None when unknown.
        unread: Timestamps of oldest unread records, by partition, as far as the probe has found them.
    """

    topic: str
    topic_id: str | None
    partitions: int | None
    high_watermarks: bytes
    last_stable_offsets: bytes
    log_start_offsets: bytes
    racks: tuple[tuple[str, ...], ...] | None = None
    retention: TopicRetention | None = None
    unread: dict[int, UnreadTimestamp] = {}

    @property
    def ends(self) -> memoryview[int]:
        """The high watermarks as integers."""
        return memoryview(self.high_watermarks).cast("q")

    @property
    def starts(self) -> memoryview[int]:
        """The log start offsets as integers."""
        return memoryview(self.log_start_offsets).cast("q")


def pack_offsets(offsets: Sequence[int]) -> bytes:
    """Offsets as little-endian int64."""
    return struct.pack(f"<{len(offsets)}q", *offsets)


class GroupObservation(msgspec.Struct, frozen=True, array_like=True, tag="r"):
    """One group in one round.

    An observation is judged with exactly the log records below `log_position`.

    Attributes:
        round: Number of the round, which increases, with jumps; in an event the offset of its opening record.
        time: The round's time (the broker's append time of the opening record), ms.
        log_partition: Partition of the offsets log that holds the group.
        log_position: Log offset below which everything was readable at the time of the round (exclusive).
        state: The coordinator's state, in Kafka's words ("Stable", "Empty", ...); None when unknown.
        protocol_type: As the coordinator reports it; None when unknown.
        group_type: "classic", "consumer", "share", "streams"; None when unknown.
        gone: None while the group is listed; "deleted" or "filtered" in its last observation.
        held_since: Time in ms since which an open transaction keeps the partition's last stable offset below its high
            watermark; None when it is not held.
        topics: Topics that the group subscribes to or has committed offsets for, and that passed the filters.
        cluster_id: Kafka's own cluster id; None when unknown.
        held_by_producer: Id of the producer whose open transaction holds the partition; None when unknown.
        held_by: Its transactional id; None when unknown.
        idle: The group is idle: until something moves, most rounds will not contain it (`streaming/probe/idle.py`).
        elapsed: Time from the first round that the query read to this one, ms: the sum of the steps between rounds,
            each limited to 0 to 3 intervals. Durations are differences of this, never of `time`: a wrong clock costs
            one step. -1 when unknown, and in an event: the source adds it, as `closed`. Then `elapsed_time` is `time`.
        closed: Append time of the round's closing record, ms: everything in it was observed before. -1 when unknown.
        rested_since: Time of the first of the rounds before this one in which an idle group looked the same, ms; -1
            if it was not idle, or the probe does not report it.
        rested_until: Time of the last of them, the round before this one, ms; -1 likewise.
        seen: What the round saw of the group where its log is not read; then `log_partition` is -1 and `log_position`
            the round's number. None where the log is read.
        configured: What the settings say of the group; None where they say nothing.
        shares: The deliveries of a share group; None for any other group, and where they are not known in this round.
        connectors: What the configuration topic of a Connect group says; None for any other, and where it is not read.
    """

    round: int
    time: int
    log_partition: int
    log_position: int
    state: str | None
    protocol_type: str | None
    group_type: str | None
    gone: str | None
    held_since: int | None
    topics: tuple[TopicObservation, ...]
    cluster_id: str | None = None
    held_by_producer: int | None = None
    held_by: str | None = None
    idle: bool = False
    elapsed: int = -1
    closed: int = -1
    rested_since: int = -1
    rested_until: int = -1
    seen: Seen | None = None
    configured: Configured | None = None
    shares: SeenShares | None = None
    connectors: SeenConnectors | None = None

    @property
    def elapsed_time(self) -> int:
        """A time in ms that never jumps, for durations only: `elapsed`, or `time` if that is unknown."""
        if self.elapsed >= 0:
            return self.elapsed
        return self.time

    @property
    def position(self) -> int:
        """Log offset below which the round was read."""
        return self.log_position

    @property
    def source(self) -> str:
        """Where the group is read from: "log", or how it is seen in rounds."""
        if self.seen is None:
            return "log"
        return self.seen.source

    @property
    def configured_strategy(self) -> str | None:
        """The strategy that the settings name for the group; None where they name none."""
        if self.configured is None:
            return None
        return self.configured.strategy


MOST_READERS: Final = 20
"""Groups that an observation of a topic names: enough to show who reads it, and so few that events and rows stay small.
All of them are a query over `lag_current`."""

LONGEST_READER: Final = 1_000
"""Characters of a group that an observation names; an id can have 32 KB. A longer one is cut."""


class ClusterTopicObservation(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A topic of the cluster in one round, whether or not a group reads it.

    Attributes:
        round: Number of the round.
        time: Its time, ms.
        elapsed: As in `GroupObservation`, ms.
        gone: None while it is there. In its last observation "deleted" (brokers that may tell say that it does not
            exist), "not_visible" (the right Describe on it is missing now) or "filtered" (the configuration excludes it
            now).
        topic_id: Kafka's printed topic id; None when unknown.
        end: High watermark per partition; -1 where unknown. Empty when the topic is gone.
        start: Log start offset per partition, the same shape.
        leaders: Node id of the leader per partition, the same shape; -1 where there is none.
        sizes: Bytes of the leader's log per partition, the same shape, -1 where unknown; None with `unsized`.
        unsized: Why: "no_right" (Describe on the cluster), "unsupported" (brokers before 1.0) or "no_answer".
        groups: Watched groups that read it: they have committed offsets of it, or subscribe to it.
        readers: The first of them by name, at most `MOST_READERS`.
        hidden: Why there may be other groups that read it: "filtered" (the configuration excludes groups), "no_right"
            (to describe any group), "share_groups" (their topics are not in what the probe asks for), "undescribed"
            (the topics of a group are not known in this round); None when there is none of these reasons.
    """

    round: int
    time: int
    elapsed: int = -1
    gone: str | None = None
    topic_id: str | None = None
    end: tuple[int, ...] = ()
    start: tuple[int, ...] = ()
    leaders: tuple[int, ...] = ()
    sizes: tuple[int, ...] | None = None
    unsized: str | None = None
    groups: int = 0
    readers: tuple[str, ...] = ()
    hidden: str | None = None
