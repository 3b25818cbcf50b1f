"""Rounds of the probe: closed rounds, the log's partitions that they found held back, and a round as one group's."""

from __future__ import annotations

from typing import Final

import msgspec

from streaming.records.seen import Seen

SILENT_INTERVALS: Final = 3
"""After this many of the probe's intervals without a round there is a gap: the log is read on without rounds, and a
step between two rounds counts no more than this. One round may be late because of a garbage collection or a slow
broker. (The alert rules have their own threshold for silence.)"""


LONGEST_INTERVAL_MS: Final = 600_000
"""Upper limit for a probe's interval: a longer one would delay membership for days, or allow absurd steps."""


class HeldPartition(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A partition of the offsets log that one round found held back.

    Attributes:
        partition: Partition of the offsets log.
        since: Time of the first round with the present last stable offset, ms.
        position: Last stable offset: the beginning of the transaction.
        end: High watermark.
        groups: Number of the round's groups in the partition.
        producer_id: Producer of the transaction; None when unknown.
        transactional_id: Its transactional id; None when unknown.
    """

    partition: int
    since: int
    position: int
    end: int
    groups: int
    producer_id: int | None = None
    transactional_id: str | None = None


class SeenBroker(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A broker that rounds have seen come or go.

    Attributes:
        node: Its node id.
        host: Its host.
        rack: Its rack; None without one.
        since: Time of the first round with it again, or of the first without it, ms.
    """

    node: int
    host: str
    rack: str | None
    since: int


class CoordinatorMove(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The coordinator of a group was elected again, and rounds saw who it was before and after.

    Attributes:
        before: Node id of the earlier coordinator.
        after: Node id of the later one.
        epoch_before: Leader epoch of the group's log partition under the earlier one.
        epoch_after: Under the later one.
        gone_round: Number of the first round that missed the earlier one, if it went as it lost the partition; else
            None.
        back_since: Time of the first round that had the later one again, ms, if it got the partition because it was
            back; else None.
    """

    before: int
    after: int
    epoch_before: int
    epoch_after: int
    gone_round: int | None = None
    back_since: int | None = None


class ClosedRound(msgspec.Struct, frozen=True, array_like=True):
    """A closed round that a batch contains.

    Attributes:
        round: Number of the round.
        time: The round's time, ms.
        closed_time: Append time of the closing record, ms.
        interval_ms: The probe's interval.
        probe: Id of the probe process.
        cluster_id: Kafka's own cluster id; None when unknown.
        groups: Number of groups with events in the round.
        events: Number of events in the round.
        log_partitions: Number of partitions of the offsets log.
        held_partitions: Number of those whose last stable offset was below their high watermark.
        log_records: Number of log offsets between the previous round and this one, over all partitions.
        holds: Partitions that an open transaction holds back for more than a few rounds; None if the probe does not
            report them.
        elapsed: As in `GroupObservation`, ms.
        opened_offset: Offset of the opening record; less than `round` after the rounds topic was recreated.
        offsets_retention_minutes: As in `RoundClosed`.
        source: Where groups were read from: "log", or how they were seen.
        brokers: Brokers that were up; None from a probe that does not report them.
        brokers_gone: Those that rounds had and this one has not, for a day; None likewise.
        brokers_joined: Those that this round has and the one before had not; None likewise.
    """

    round: int
    time: int
    closed_time: int
    interval_ms: int
    probe: str
    cluster_id: str | None
    groups: int
    events: int
    log_partitions: int
    held_partitions: int
    log_records: int
    holds: tuple[HeldPartition, ...] | None = None
    elapsed: int = 0
    opened_offset: int = -1
    offsets_retention_minutes: int | None = None
    source: str = "log"
    brokers: int | None = None
    brokers_gone: tuple[SeenBroker, ...] | None = None
    brokers_joined: tuple[SeenBroker, ...] | None = None


_ENCODER = msgspec.msgpack.Encoder()


_DECODER = msgspec.msgpack.Decoder(list[ClosedRound])


def encode_closed_rounds(rounds: list[ClosedRound]) -> bytes:
    """Pack rounds into one payload."""
    return _ENCODER.encode(rounds)


def decode_closed_rounds(payload: bytes) -> list[ClosedRound]:
    """Unpack what `encode_closed_rounds` wrote.

    Raises:
        msgspec.DecodeError: The payload is not one of ours.
    """
    return _DECODER.decode(payload)


class TopicRetention(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How long the records of a topic are kept, by its settings.

    Attributes:
        ms: `retention.ms`; -1 for unlimited.
        bytes: `retention.bytes`; -1 for unlimited.
        deletes: `cleanup.policy` has "delete": without it both mean nothing.
        append_time: `message.timestamp.type` is LogAppendTime; False for CreateTime.
    """

    ms: int
    bytes: int
    deletes: bool
    append_time: bool


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


class ClusterTopicObservation(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A topic of the cluster in one round, whether or not a group reads it.

    Attributes:
        round: Number of the round.
        time: Its time, ms.
        elapsed: As in `GroupObservation`, ms.
        gone: None while it is there; "deleted", "not_visible" or "filtered" in its last observation.
        topic_id: Kafka's printed topic id; None when unknown.
        end: High watermark per partition; -1 where unknown. Empty when the topic is gone.
        start: Log start offset per partition, the same shape.
        leaders: Node id of the leader per partition, the same shape; -1 where there is none.
        sizes: Bytes of the leader's log per partition, the same shape, -1 where unknown; None with `unsized`.
        unsized: Why: "no_right", "unsupported" or "no_answer".
        groups: Watched groups that read it.
        readers: The first of them by name.
        hidden: Why there may be others; None when there is no reason to think so (`ClusterTopicEvent`).
    """

    round: int
    time: int
    elapsed: int
    gone: str | None
    topic_id: str | None
    end: tuple[int, ...]
    start: tuple[int, ...]
    leaders: tuple[int, ...]
    sizes: tuple[int, ...] | None
    unsized: str | None
    groups: int
    readers: tuple[str, ...]
    hidden: str | None


_TOPICS_DECODER = msgspec.msgpack.Decoder(list[ClusterTopicObservation])


def encode_cluster_topics(observations: list[ClusterTopicObservation]) -> bytes:
    """Pack a topic's observations into one payload."""
    return _ENCODER.encode(observations)


def decode_cluster_topics(payload: bytes) -> list[ClusterTopicObservation]:
    """Unpack what `encode_cluster_topics` wrote.

    Raises:
        msgspec.DecodeError: The payload is not one of ours.
    """
    return _TOPICS_DECODER.decode(payload)


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


class GroupObservation(msgspec.Struct, frozen=True, array_like=True, tag="r"):
    """One group in one round.

    An observation is judged with exactly the log records below `log_position`.

    Attributes:
        round: Number of the round (offset of its opening record); increases, with jumps.
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
        idle: The group is idle: until the next heartbeat the rounds will not contain it unless something moves.
        elapsed: Time from the first round that the query read to this one, ms: the sum of the steps between rounds,
            each limited to 0 to 3 intervals. Durations are differences of this, never of `time`: a wrong clock costs
            one step. -1 when unknown; then `elapsed_time` is `time`.
        closed: Append time of the round's closing record, ms: everything in it was observed before. -1 when unknown.
        rested_since: Time of the first of the rounds before this one in which an idle group looked the same, ms; -1
            if it was not idle, or the probe does not report it.
        rested_until: Time of the last of them, the round before this one, ms; -1 likewise.
        seen: What the round saw of the group where its log is not read; then `log_partition` is -1 and `log_position`
            the round's number. None where the log is read.
        coordinator_moves: How the group's coordinator moved in the last hour, the oldest first.
        coordinator_epoch: Leader epoch of the group's log partition when the round asked who leads it; -1 when unknown.
        configured: What the settings say of the group; None where they say nothing.
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
    coordinator_moves: tuple[CoordinatorMove, ...] = ()
    coordinator_epoch: int = -1
    configured: Configured | None = None

    @property
    def elapsed_time(self) -> int:
        """A time in ms that never jumps, for durations only: `elapsed`, or `time` if that is unknown."""
        return self.elapsed if self.elapsed >= 0 else self.time
