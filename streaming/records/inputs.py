"""The core's inputs: the events of one group, in the group's own order, and the keys under which they come.

The codec writes those from the log (`CommitWindow`, `MembershipRecord`, `MembershipTombstone`, and those of `modern.py`
for modern groups), the probe's rounds bring the `GroupObservation`. Times are milliseconds since the epoch, UTC, from
the records themselves; offsets are log offsets unless a name says otherwise. Everything is plain and packable (msgpack,
fields in order), because Spark passes it as one payload column and golden files contain it: fields are only ever
appended, with defaults.

Keys of the stateful operator are groups, topics of the cluster, and a few reserved keys. Any string is a legal group
id, so a reserved key could look like one: every key has a letter as prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from streaming.records.membership import Member
from streaming.records.modern import AtRecord, ModernInput, UnreadableModern
from streaming.records.observations import ClusterTopicObservation, GroupObservation
from streaming.records.rocketmq import RocketMQObservation
from streaming.records.rounds import ClosedRound
from streaming.records.unreadable import PartitionInput


class CommitWindow(msgspec.Struct, frozen=True, array_like=True, tag="c", gc=False, forbid_unknown_fields=True):
    """The offset commits of one partition between two boundaries, folded.

    A boundary is the log position of a round, or a membership record of the same group, so a window can be ordered
    against observations and generations by any of its record offsets. Windows of the same partition with no boundary
    between them merge into the window of all their records (`merge_windows`), which makes the fold independent of where
    a batch was cut.

    Attributes:
        topic: Topic of the commits.
        partition: Partition of the commits.
        commits: Number of commit records in the window that can be read; 0 when it has only others and tombstones.
        tombstones: Number of tombstones in the window.
        first_offset: Committed offset of the first commit; -1 when there is none.
        first_commit_time: Record timestamp of the first commit, ms; -1 when there is none.
        first_record: Log offset of the first record of the window.
        offset: Committed offset of the last commit; -1 when there is none.
        leader_epoch: Leader epoch of the last commit; -1 when not recorded.
        last_commit_time: Record timestamp of the last commit, ms; -1 when there is none.
        last_record: Log offset of the last record of the window.
        deleted: The last record is a tombstone (expired, deleted, or the topic was deleted).
        step_back: Largest step backwards between successive commits, in offsets, ignoring tombstones between them; 0
            when there was none.
        topic_id: Kafka's printed topic id of the last commit (value v4); None when not recorded.
        unreadable: The last record is a commit whose value cannot be decoded (of a version that a later Kafka writes,
            say): what is committed now is not known.
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
    unreadable: bool = False

    @property
    def position(self) -> int:
        """Log offset by which this input is ordered."""
        return self.last_record


def merge_windows(earlier: CommitWindow, later: CommitWindow) -> CommitWindow:
    """Fold two adjacent windows of the same partition into the window of all their records.

    The merge is associative: the result is the same however the records were cut.
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
        unreadable=later.unreadable,
    )


class MembershipRecord(AtRecord, frozen=True, array_like=True, tag="m", forbid_unknown_fields=True):
    """A group metadata record (key type 2) with a value.

    Attributes:
        record_time: Record timestamp, ms.
        protocol_type: "consumer", "connect", ...; "" for a group created by a join that wrote nothing else.
        generation: Generation id.
        protocol: Selected protocol (the strategy's name); None when the group is empty.
        leader: Member id of the leader; None when the group is empty.
        state_time: `currentStateTimestamp`, ms: when the join phase completed; -1 when not recorded.
        members: Members in record order, which affects a recomputation.
        value_version: Version of the value.
        log_partition: Partition of the offsets log.
        leader_epoch: Leader epoch of the batch that holds the record: another one means that the group's coordinator
            was elected again; -1 when not known.
        seen: The membership was only seen, in a round (admin mode); then `record` is the round's number, `record_time`
            its time, `generation` -1, `leader` None, `state_time` -1, and the order of the members may be another one
            than that in which the leader had them.
        decided_after: For a membership that was only seen, the time of the last round that looked and did not show it,
            ms; -1 when unknown.
    """

    record_time: int
    protocol_type: str
    generation: int = -1
    protocol: str | None = None
    leader: str | None = None
    state_time: int = -1
    members: tuple[Member, ...] = ()
    value_version: int = -1
    log_partition: int = -1
    leader_epoch: int = -1
    seen: bool = False
    decided_after: int = -1

    @property
    def known_generation(self) -> int | None:
        """The generation; None for a membership that was only seen, because the answers do not have it."""
        if self.seen:
            return None
        return self.generation

    @property
    def earliest(self) -> int:
        """Earliest time of the decision as far as it is known, ms: `decided_after`, or else `record_time`."""
        if self.decided_after >= 0:
            return self.decided_after
        return self.record_time


class MembershipTombstone(AtRecord, frozen=True, array_like=True, tag="t"):
    """A tombstone of key type 2: the group was deleted, expired, or moved to another protocol."""

    record_time: int


class UnreadableMembership(AtRecord, frozen=True, array_like=True, tag="um"):
    """A group metadata record (key type 2) that cannot be decoded: of a version that a later Kafka writes, say."""


class Compacted(msgspec.Struct, frozen=True, array_like=True, tag="k"):
    """A log range that Kafka compacted: only each key's last record remains.

    The group's records below `first` are complete. From `until` on the newest record of each of its keys is known
    again. The states in between are unknown.

    Attributes:
        first: First log offset that is missing.
        until: Log offset after the last record of the group in the range.
    """

    first: int
    until: int

    @property
    def position(self) -> int:
        """Log offset by which this input is ordered."""
        return self.first


ROUNDS_KEY = "r:"
"""Key of the closed rounds."""

_GROUP = "g:"
_PARTITION = "p:"
_TOPIC = "t:"


def group_key(group: str) -> str:
    """Key of a group."""
    return _GROUP + group


def partition_key(topic: str, partition: int) -> str:
    """Key of rows that belong to a partition and not to a group (quarantine, gaps)."""
    return f"{_PARTITION}{topic}/{partition}"


def topic_key(topic: str) -> str:
    """Key of a topic of the cluster."""
    return _TOPIC + topic


def topic_of(key: str) -> str | None:
    """Topic of a topic's key; None for any other."""
    if key.startswith(_TOPIC):
        return key[len(_TOPIC) :]
    return None


def group_of(key: str) -> str | None:
    """Group id of a group's key; None for a reserved key."""
    if key.startswith(_GROUP):
        return key[len(_GROUP) :]
    return None


AnyObservation = GroupObservation | RocketMQObservation
"""What one round saw of one group."""

GroupInput = (
    CommitWindow
    | MembershipRecord
    | MembershipTombstone
    | UnreadableMembership
    | Compacted
    | ModernInput
    | UnreadableModern
    | AnyObservation
)

_ROW_BYTES: Final = 512 * 1024
"""Approximate limit of a payload: one with all inputs of a key could outgrow a batch of Arrow."""

_ENCODER = msgspec.msgpack.Encoder()


def encode_inputs(inputs: Iterable[object]) -> bytes:
    """Pack the inputs of one key into one payload.

    The decoders raise `msgspec.DecodeError` for a payload that is not one of ours: the batch must fail, because
    guessing could corrupt state.
    """
    return _ENCODER.encode(inputs)


def rows_of(key: str, inputs: Iterable[object]) -> Iterator[tuple[str, bytes]]:
    """Rows of the source: a key, and its packed inputs in as many payloads as they need."""
    packed: list[bytes] = []
    size = 0
    for item in inputs:
        packed.append(_ENCODER.encode(item))
        size += len(packed[-1])
        if size >= _ROW_BYTES:
            yield key, _joined(packed)
            packed, size = [], 0
    if packed:
        yield key, _joined(packed)


def _joined(packed: list[bytes]) -> bytes:
    # msgpack's array of up to 2^32 elements: its mark, their number, the elements.
    return b"".join((b"\xdd", len(packed).to_bytes(4, "big"), *packed))


decode_inputs: Callable[[bytes], list[GroupInput]] = msgspec.msgpack.Decoder(list[GroupInput]).decode
"""Unpack the inputs of a group."""

decode_cluster_topics: Callable[[bytes], list[ClusterTopicObservation]] = msgspec.msgpack.Decoder(
    list[ClusterTopicObservation]
).decode
"""Unpack the observations of a topic of the cluster."""

decode_closed_rounds: Callable[[bytes], list[ClosedRound]] = msgspec.msgpack.Decoder(list[ClosedRound]).decode
"""Unpack closed rounds."""

decode_partition_inputs: Callable[[bytes], list[PartitionInput]] = msgspec.msgpack.Decoder(list[PartitionInput]).decode
"""Unpack what belongs to a partition and not to a group."""


def in_order(inputs: list[GroupInput]) -> list[GroupInput]:
    """Order inputs of one group as they happened: by log offset, and observations after everything they include."""
    return sorted(inputs, key=_order)


def _order(item: GroupInput) -> tuple[int, int, int]:
    # An observation with position P comes after offset P-1 and before offset P; several at one position are ordered by
    # number.
    if isinstance(item, AnyObservation):
        return item.position, 0, item.round
    # A compacted range begins before the record at its first offset, which may exist.
    return item.position, 1, 0 if isinstance(item, Compacted) else 1
