"""Observations of one group and its topics in one round of the probe."""

from __future__ import annotations

import msgspec

__all__ = ["GroupObservation", "TopicObservation"]


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
    """

    topic: str
    topic_id: str | None
    partitions: int | None
    high_watermarks: bytes
    last_stable_offsets: bytes
    log_start_offsets: bytes
    racks: tuple[tuple[str, ...], ...] | None = None


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
            one step. -1 when unknown; then `steady` is `time`.
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

    @property
    def steady(self) -> int:
        """A time in ms that never jumps, for durations only: `elapsed`, or `time` if that is unknown."""
        return self.elapsed if self.elapsed >= 0 else self.time
