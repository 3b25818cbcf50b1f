"""What a round of the probe saw of one group, and of its topics."""

from __future__ import annotations

import msgspec

__all__ = ["Tick", "TopicTick"]


class TopicTick(msgspec.Struct, frozen=True, array_like=True):
    """One topic of a group as a round saw it.

    Attributes:
        topic: Topic.
        topic_id: Kafka's printed topic id; None when not known.
        partitions: Partition count; None when the topic does not exist, 0 never.
        end_offsets: High watermark per partition, little-endian int64; -1 where it was not to be had.
        stable_offsets: Last stable offset per partition, the same shape.
        start_offsets: Log start offset per partition, the same shape.
        racks: Replica racks per partition; None when no broker has a rack.
    """

    topic: str
    topic_id: str | None
    partitions: int | None
    end_offsets: bytes
    stable_offsets: bytes
    start_offsets: bytes
    racks: tuple[tuple[str, ...], ...] | None = None


class Tick(msgspec.Struct, frozen=True, array_like=True, tag="r"):
    """One round as it concerns one group.

    A tick is judged with exactly the log records below `log_position`.

    Attributes:
        round: Number of the round (offset of its opening record); grows, with jumps.
        time: The round's time (the broker's append time of the opening record), ms.
        log_partition: Partition of the offsets log that holds the group.
        log_position: Log offset below which everything was readable when the round looked (exclusive).
        state: Coordinator's state, in Kafka's words ("Stable", "Empty", ...); None when not known.
        protocol_type: As the coordinator tells it; None when not known.
        group_type: "classic", "consumer", "share", "streams"; None when not known.
        gone: None while the group is listed; "deleted" or "filtered" in its last tick.
        held_since: ms; the partition's last stable offset stays below its high watermark since then
            (an open transaction); None when it does not.
        topics: Topics that the group subscribes to or has committed offsets for, as far as they passed the
            filters.
        cluster_id: Kafka's own cluster id; None when not known.
        held_by_producer: Id of the producer whose open transaction holds the partition; None when not known.
        held_by: Its transactional id; None when not known.
        idle: The group rests, and the rounds until the next heartbeat will not show it unless something moves.
        elapsed: Time that had passed at this round since the first round that the query took, ms: the steps from round
            to round summed, each between 0 and 3 intervals. Durations are differences of this, never of `time`:
            one wrong clock costs one step. -1 where it is not known; `steady` then falls back to `time`.
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
    topics: tuple[TopicTick, ...]
    cluster_id: str | None = None
    held_by_producer: int | None = None
    held_by: str | None = None
    idle: bool = False
    elapsed: int = -1

    @property
    def steady(self) -> int:
        """A time in ms that never jumps, for durations only: `elapsed`, or `time` where that is not known."""
        return self.elapsed if self.elapsed >= 0 else self.time
