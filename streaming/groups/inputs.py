"""What the core takes in: the events of one group, in the group's own order.

The codec writes the log's share (`CommitWindow`, `MembershipRecord`, `MembershipTombstone`, and what
`modern_inputs.py` says of modern groups), the probe's rounds bring the `Tick`. Times are milliseconds since the
epoch, UTC, from the records themselves; offsets are log offsets unless a name says otherwise. Everything is plain
and packable (msgpack, fields in order), because it travels through Spark as one payload column and lies in golden
files: fields are only ever appended, with defaults.
"""

from __future__ import annotations

import msgspec

from streaming.groups.modern_inputs import ModernInput

__all__ = [
    "CommitWindow",
    "Compacted",
    "GroupInput",
    "Member",
    "MembershipRecord",
    "MembershipTombstone",
    "Tick",
    "TopicPartitions",
    "TopicTick",
    "decode_inputs",
    "encode_inputs",
    "in_order",
    "merge_windows",
]

TopicPartitions = tuple[tuple[str, tuple[int, ...]], ...]
"""Partitions by topic, in the order of the record: ((topic, (partition, ...)), ...)."""


class CommitWindow(msgspec.Struct, frozen=True, array_like=True, tag="c", gc=False, forbid_unknown_fields=True):
    """The offset commits of one partition between two boundaries, folded.

    A boundary is the log position of a round, or a membership record of the same group: so a window can be
    ordered against ticks and generations by any of its record offsets. Windows of the same partition with no
    boundary between them merge into the window of all their records (`merge_windows`), which makes the fold
    independent of where a batch was cut.

    Attributes:
        topic: Topic of the commits.
        partition: Partition of the commits.
        commits: Commit records in the window; 0 when it holds tombstones only.
        tombstones: Tombstones in the window.
        first_offset: Committed offset of the first commit; -1 when there is none.
        first_commit_time: Record timestamp of the first commit, ms; -1 when there is none.
        first_record: Log offset of the first record of the window.
        offset: Committed offset of the last commit; -1 when there is none.
        leader_epoch: Leader epoch of the last commit; -1 when not recorded.
        last_commit_time: Record timestamp of the last commit, ms; -1 when there is none.
        last_record: Log offset of the last record of the window.
        deleted: The last record is a tombstone (expired, deleted, or the topic was deleted).
        step_back: Largest step backwards between successive commits, in offsets, tombstones between them
            passed over; 0 when there was none.
        topic_id: Kafka's printed topic id of the last commit (value v4); None when not recorded.
    """

    topic: str
    partition: int
    commits: int
    tombstones: int
    first_offset: int
    first_commit_time: int
    first_record: int
    offset: int
    leader_epoch: int
    last_commit_time: int
    last_record: int
    deleted: bool
    step_back: int
    topic_id: str | None = None

    @property
    def position(self) -> int:
        """Log offset that orders this input."""
        return self.last_record


class Member(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One member of a group metadata record, decoded as far as its bytes allow.

    Attributes:
        member_id: Member id.
        group_instance_id: `group.instance.id`; None for a dynamic member.
        client_id: Client id.
        client_host: Host as the broker recorded it, for example "/127.0.0.1".
        rebalance_timeout: ms; -1 when the record version has none.
        session_timeout: ms.
        subscription_version: Version of the consumer protocol's subscription; None when not decoded.
        topics: Subscribed topics in record order; None when the subscription was not decoded.
        owned: Owned partitions of the subscription (v1+), in record order.
        generation: Generation of the subscription (v2+); None when absent or -1.
        rack: Rack of the subscription (v3+); None when absent. An empty text stands for none too.
        user_data: User data of the subscription; None when null (an empty value is b"").
        assigned: Assigned partitions in record order; None when the assignment was not decoded.
        undecodable: Why subscription or assignment could not be decoded; None when both were, or when the
            protocol type is not "consumer" (then nothing is tried).
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription_version: int | None
    topics: tuple[str, ...] | None
    owned: TopicPartitions
    generation: int | None
    rack: str | None
    user_data: bytes | None
    assigned: TopicPartitions | None
    undecodable: str | None = None


class MembershipRecord(msgspec.Struct, frozen=True, array_like=True, tag="m", forbid_unknown_fields=True):
    """A group metadata record (key type 2) with a value.

    Attributes:
        record: Log offset.
        record_time: Record timestamp, ms.
        protocol_type: "consumer", "connect", ...; "" for a group made by a join that wrote nothing else.
        generation: Generation id.
        protocol: Selected protocol (the strategy's name); None when the group is empty.
        leader: Member id of the leader; None when the group is empty.
        state_time: `currentStateTimestamp`, ms: when the join phase completed; -1 when not recorded.
        members: Members in record order, which is an input of a recomputation.
        value_version: Version of the value.
        log_partition: Partition of the offsets log.
    """

    record: int
    record_time: int
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_time: int
    members: tuple[Member, ...]
    value_version: int
    log_partition: int = -1

    @property
    def position(self) -> int:
        """Log offset that orders this input."""
        return self.record


class MembershipTombstone(msgspec.Struct, frozen=True, array_like=True, tag="t"):
    """A tombstone of key type 2: the group was deleted, expired, or moved to another protocol."""

    record: int
    record_time: int

    @property
    def position(self) -> int:
        """Log offset that orders this input."""
        return self.record


class Compacted(msgspec.Struct, frozen=True, array_like=True, tag="k"):
    """Of this stretch of the log compaction has left the last record of each key, and taken out others.

    Records of the group below `first` are all there. From `until` on the newest record of each of its keys is known
    again. What was true in between is not.

    Attributes:
        first: First log offset that is missing.
        until: Log offset after the last record of the group in the stretch.
    """

    first: int
    until: int

    @property
    def position(self) -> int:
        """Log offset that orders this input."""
        return self.first


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


GroupInput = CommitWindow | MembershipRecord | MembershipTombstone | Tick | Compacted | ModernInput

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[GroupInput])


def encode_inputs(inputs: list[GroupInput]) -> bytes:
    """Pack inputs of one group into one payload."""
    return _ENCODER.encode(inputs)


def decode_inputs(payload: bytes) -> list[GroupInput]:
    """Unpack what `encode_inputs` wrote.

    Raises:
        msgspec.DecodeError: The payload is not one of ours; a batch of such data must fail, not be guessed.
    """
    return _DECODER.decode(payload)


def in_order(inputs: list[GroupInput]) -> list[GroupInput]:
    """Order inputs of one group as they happened: log offsets, and ticks after all that they include."""
    return sorted(inputs, key=_order)


def _order(item: GroupInput) -> tuple[int, int, int]:
    # A tick with position P stands after offset P-1 and before offset P; ticks at one position by number.
    if isinstance(item, Tick):
        return item.log_position, 0, item.round
    # A stretch begins before the record at its first offset, which may be there.
    return item.position, 1, 0 if isinstance(item, Compacted) else 1


def merge_windows(earlier: CommitWindow, later: CommitWindow) -> CommitWindow:
    """Fold two adjacent windows of the same partition into the window of all their records.

    The merge is associative: however the records were cut, the same window comes out.
    """
    last = later if later.commits else earlier
    first = earlier if earlier.commits else later
    step_back = max(earlier.step_back, later.step_back)
    if earlier.commits and later.commits:
        step_back = max(step_back, earlier.offset - later.first_offset)
    return CommitWindow(
        topic=earlier.topic,
        partition=earlier.partition,
        commits=earlier.commits + later.commits,
        tombstones=earlier.tombstones + later.tombstones,
        first_offset=first.first_offset,
        first_commit_time=first.first_commit_time,
        first_record=earlier.first_record,
        offset=last.offset,
        leader_epoch=last.leader_epoch,
        last_commit_time=last.last_commit_time,
        last_record=later.last_record,
        deleted=later.deleted,
        step_back=step_back,
        topic_id=last.topic_id,
    )
