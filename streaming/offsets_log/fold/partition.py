"""Folds the records of one partition of the offsets log into the inputs of the core.

Offset commits are a flood (thousands a second), and only the last of most of them counts. So commits become windows
(`CommitWindow`); membership records, and the records of modern groups, are few and stay as they are. The fold does not
depend on how the log is split: only boundaries and membership records close windows, and two parts of a window merge
into the whole (`merge_windows`).

Records come as columns, or one by one, and those wait until there are many: so the slots of thousands of offset commits
with known keys are found at once, and their values decoded and folded at once (`commits.py`).
This is the hot path of the whole job. Records of other types, and the first one of each key, are looked at by
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from streaming.offsets_log.codec.membership import decode_membership
from streaming.offsets_log.codec.modern import decode_modern
from streaming.offsets_log.codec.placement import partition_for
from streaming.offsets_log.codec.record_columns import LeaderEpochs, RecordColumns, columns_of
from streaming.offsets_log.codec.record_types import (
    OFFSET_COMMIT,
    OFFSET_COMMIT_HEAD,
    GroupKey,
    Key,
    LogRecord,
    OffsetKey,
    OtherKey,
    RecordValue,
    Rejected,
    UnknownKey,
    UnknownVersion,
    decode_key,
    decode_record_value,
    offset_commit_key,
    offset_commit_parts,
)
from streaming.offsets_log.codec.wire import Allowance
from streaming.offsets_log.fold.commits import DROPPED, UNKNOWN, CommitFold, CommitSlots, CommittedPartition
from streaming.offsets_log.fold.unreadable import UnreadableRecords, Windows, unknown_type
from streaming.records import (
    MODERN_RECORDS,
    GroupEpoch,
    GroupInput,
    MembershipRecord,
    MembershipTombstone,
    PartitionInput,
    TargetEpoch,
    UnreadableMembership,
    UnreadableModern,
    Window,
    in_order,
)

# Records that are folded together: enough to spread NumPy's cost per call (below 2,000 it is noticeable), few enough
# that their values (some MB) stay in the processor's cache.
_FOLDED_AT_ONCE = 16_384

# Bytes of waiting records: those of as many commits fit. The others take several times their bytes when decoded: up to
# 25 times, so they count for that.
_WAITING_BYTES = 4 * 1024 * 1024
_OF_OTHERS = 25

# Records looked up together at first, and again after many new keys.
_LEAST_CHUNK = 2_048

# Approximate memory in bytes, in addition to names and keys: of a key, its partition and its row of the table; of a
# window, its row, here and merged; of a kept record, beside its decoded elements (`Allowance`) and its texts and bytes,
# which are twice those of the value at the most; of the name of a group or a topic.
_PARTITION_BYTES = 1_000
_WINDOW_BYTES = 300
_RECORD_BYTES = 500
_DECODED = 2
_NAME_BYTES = 200


@dataclass(slots=True, eq=False)
class _Group:
    """The results for one watched group so far, except for its commits.

    Attributes:
        number: Number of the group in the fold.
        items: Membership records, records of modern groups, and tombstones of both, in log order.
        open: Its partitions with a slot since the last membership record.
    """

    number: int
    items: list[GroupInput] = field(default_factory=list)
    open: list[CommittedPartition] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Misplaced:
    """A group whose records are on a partition of the log that is not its own, and the reason for `quarantine`."""

    reason: str


class Compactor:
    """Folds one partition of the offsets log between two positions.

    Call `add` for every record, or `add_columns` for several, in log order; then `groups` and `unreadable`.

    Attributes:
        dropped: Number of records of groups and topics that are not watched. Every record is accounted for: records
            added = commits, tombstones and records in the inputs of `groups` (without those that only stand for an
            unreadable record), and in `unreadable`, plus `dropped`.
    """

    def __init__(
        self,
        partition: int,
        partitions: int,
        boundaries: Sequence[int],
        watches: Callable[[str], bool],
        watches_topic: Callable[[str], bool],
        windows: Windows | None = None,
        epochs: LeaderEpochs | None = None,
        cluster_id: str | None = None,
    ) -> None:
        """Prepare for one partition.

        Args:
            partition: Partition of the offsets log.
            partitions: Actual partition count of the offsets log.
            boundaries: Log positions of rounds, in any order: B separates the records below B from the others.
            watches: Whether a group passes the filters; called once per group.
            watches_topic: Whether a topic passes the filters; called once per topic.
            windows: The stretches by which unreadable records are counted; None for those between the boundaries.
            epochs: Leader epochs of the partition, filled before the records are added; None if they are not known.
            cluster_id: Kafka's own id of the cluster; None if it is not known.
        """
        self.dropped = 0
        self._partition = partition
        self._partitions = partitions
        self._cluster_id = cluster_id
        self._watches = watches
        self._watches_topic = watches_topic
        self._boundaries = sorted(boundaries)
        self._epochs = LeaderEpochs() if epochs is None else epochs
        if windows is None:
            windows = Windows(self._boundaries, [Window(number) for number in range(len(self._boundaries) + 1)])
        self._unreadable = UnreadableRecords(partition, windows)
        self._groups: dict[str, _Group | _Misplaced | None] = {}
        self._topics: dict[str, bool] = {}
        self._fold = CommitFold(self._boundaries, self._decode_plain)
        self._commit_slots = CommitSlots()
        self._chunk = _LEAST_CHUNK
        # Keys of one commit request follow each other: one of them without its partition, and the group and topic.
        self._named: tuple[bytes, _Group, str] | None = None
        self._kept_bytes = 0
        self._waiting: list[tuple[int, int, bytes | None, bytes | None]] = []
        self._waiting_bytes = 0

    def add(self, offset: int, timestamp: int, key: bytes | None, value: bytes | None) -> None:
        """Process the next record. Never raises, whatever the log holds.

        Args:
            offset: Log offset, larger than the one before.
            timestamp: Record timestamp, ms.
            key: Key bytes.
            value: Value bytes; None for a tombstone.
        """
        self._waiting.append((offset, timestamp, key, value))
        size = len(key or b"") + len(value or b"")
        self._waiting_bytes += size if key is not None and key.startswith(OFFSET_COMMIT_HEAD) else _OF_OTHERS * size
        if len(self._waiting) >= _FOLDED_AT_ONCE or self._waiting_bytes >= _WAITING_BYTES:
            self.fold()

    def add_columns(self, records: RecordColumns) -> None:
        """Process the next records: as `add` on each, and several times faster where there are many."""
        # Records that wait come before them.
        self.fold()
        self._add_columns(records)

    def _add_columns(self, records: RecordColumns) -> None:
        start = 0
        while start < len(records):
            chunk = records.part(start, start + min(self._chunk, _FOLDED_AT_ONCE))
            start += len(chunk)
            one_by_one = self._add_chunk(chunk)
            # New keys come one by one until their chunk is done.
            self._chunk = _LEAST_CHUNK if 2 * one_by_one > len(chunk) else min(2 * self._chunk, _FOLDED_AT_ONCE)

    def reject(self, record: LogRecord, reason: str) -> None:
        """Process an undecodable batch, in place of its records.

        Args:
            record: Its first offset and its time.
            reason: What is wrong, in one sentence.
        """
        self._unreadable.reject(record, reason)

    def fold(self) -> None:
        """Process now the records that wait to be processed together."""
        if self._waiting:
            waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
            self._add_columns(columns_of(*zip(*waiting, strict=True)))

    @property
    def held(self) -> int:
        """Approximate bytes held in memory."""
        windows = len(self._fold) + len(self._waiting)
        return (
            _PARTITION_BYTES * self._commit_slots.made
            + _WINDOW_BYTES * windows
            + self._kept_bytes
            + self._waiting_bytes
            + self._unreadable.held
        )

    def groups(self) -> Iterator[tuple[str, list[GroupInput]]]:
        """Every watched group that had records, with its inputs in log order."""
        self.fold()
        by_slot = self._commit_slots.by_slot
        windows = self._fold.windows([each.owner for each in by_slot], [each.name for each in by_slot])
        owner, inputs = next(windows, (-1, []))
        for name, group in self._groups.items():
            if not isinstance(group, _Group):
                continue
            found: list[GroupInput] = []
            if owner == group.number:
                found.extend(inputs)
                owner, inputs = next(windows, (-1, []))
            if group.items:
                found = in_order(found + group.items)
            if found:
                yield name, found

    def unreadable(self) -> list[PartitionInput]:
        """The unreadable records, in log order."""
        self.fold()
        return self._unreadable.inputs()

    def _add_chunk(self, records: RecordColumns) -> int:
        """Process columns: slots are found at once for all records between two that are not offset commits.

        Returns:
            How many records were processed one by one.
        """
        numbers = self._commit_slots.find(records)
        self.dropped += int(np.count_nonzero(numbers == DROPPED))
        slots = np.empty(len(records), np.int64)
        # Records before `done` have their slot.
        done = 0
        unknown = np.flatnonzero(numbers == UNKNOWN)
        for row, key in zip(unknown.tolist(), records.keys(unknown), strict=True):
            found = self._partition_or_key(key)
            if isinstance(found, CommittedPartition):
                numbers[row] = found.number
                continue
            # It has no slot itself, and may close open ones.
            numbers[row] = DROPPED
            slots[done : row + 1] = self._commit_slots.assign(numbers[done : row + 1])
            done = row + 1
            record = LogRecord(int(records.offset[row]), int(records.timestamp[row]), key, records.value(row))
            is_dropped = not self._add_plain(record, found)
            if is_dropped and key is not None and self._commit_slots.drop(key):
                self._kept_bytes += _NAME_BYTES + len(key)
        slots[done:] = self._commit_slots.assign(numbers[done:])
        with_slot = slots >= 0
        if with_slot.all():
            self._fold.add(slots, records)
        else:
            self._fold.add(slots[with_slot], records.where(with_slot))
        return int(unknown.size)

    def _partition_or_key(self, key: bytes | None) -> CommittedPartition | Key:
        """The partition of an offset commit of a watched group and topic; for any other key what it says."""
        committed = None if key is None else self._commit_slots.committed(key) or self._new_committed(key)
        if committed is not None:
            return committed
        decoded = decode_key(key)
        if isinstance(decoded, OffsetKey):
            # A key of the legacy type, whose values are laid out as type 1's, or one that Redpanda wrapped.
            modern = offset_commit_key(decoded)
            return self._commit_slots.committed(modern) or self._new_committed(modern) or decoded
        return decoded

    def _new_committed(self, key: bytes) -> CommittedPartition | None:
        """The partition of a new, valid key of type 1 in a watched group and topic; None for any other key."""
        if self._named is None or key[:-4] != self._named[0] or key[-4] & 0x80:
            parts = offset_commit_parts(key)
            group = None if parts is None else self._group(parts[0])
            if parts is None or not isinstance(group, _Group) or not self._topic(parts[1]):
                return None
            self._named = key[:-4], group, parts[1]
        _, group, topic = self._named
        name = topic, int.from_bytes(key[-4:], "big")
        self._kept_bytes += len(key)
        return self._commit_slots.make(group.number, group.open, name, key)

    def _add_plain(self, record: LogRecord, key: Key) -> bool:
        """Process a record that is no commit of a watched group and topic; False if no record of its key counts."""
        if isinstance(key, Rejected):
            self._quarantine(record, key)
        elif isinstance(key, UnknownKey):
            self._unreadable.unknown(record, *unknown_type(record))
        elif isinstance(group := self._group(key.group), _Misplaced):
            self._quarantine(record, Rejected(group.reason))
        elif group is None or isinstance(key, OffsetKey):
            self.dropped += 1
            return False
        elif isinstance(key, GroupKey):
            self._add_membership(record, group)
        else:
            self._add_modern(record, key, group)
        return True

    def _decode_plain(self, slot: int, offset: int, timestamp: int, value: bytes) -> RecordValue | None:
        """Decode a value that the fold could not decode, or keep it as unreadable."""
        commit = decode_record_value(OFFSET_COMMIT, value)
        if isinstance(commit, RecordValue):
            return commit
        self._quarantine(LogRecord(offset, timestamp, self._commit_slots.by_slot[slot].key, value), commit)
        return None

    def _add_membership(self, record: LogRecord, group: _Group) -> None:
        item: MembershipRecord | MembershipTombstone
        allowance = Allowance()
        if record.value is None:
            item = MembershipTombstone(record.offset, record.timestamp)
        else:
            membership = decode_membership(record.offset, record.timestamp, record.value, self._partition, allowance)
            if not isinstance(membership, MembershipRecord):
                self._quarantine(record, membership)
                self._kept_bytes += _RECORD_BYTES
                group.items.append(UnreadableMembership(record.offset))
                return
            item = msgspec.structs.replace(membership, leader_epoch=self._epochs.at(record.offset))
        self._commit_slots.close(group.open)
        self._keep(record, group, item, allowance)

    def _add_modern(self, record: LogRecord, key: OtherKey, group: _Group) -> None:
        allowance = Allowance()
        item = decode_modern(record.offset, record.timestamp, key, record.value, self._partition, allowance)
        if isinstance(item, UnknownVersion | Rejected):
            self._quarantine(record, item)
            if key.key_type not in MODERN_RECORDS:
                return
            self._kept_bytes += _RECORD_BYTES
            group.items.append(UnreadableModern(record.offset, key.key_type, key.part))
            return
        if isinstance(item, GroupEpoch | TargetEpoch):
            item = msgspec.structs.replace(item, leader_epoch=self._epochs.at(record.offset))
        self._keep(record, group, item, allowance)

    def _keep(self, record: LogRecord, group: _Group, item: GroupInput, allowance: Allowance) -> None:
        self._kept_bytes += _RECORD_BYTES + _DECODED * len(record.value or b"") + allowance.taken
        group.items.append(item)

    def _quarantine(self, record: LogRecord, why: UnknownVersion | Rejected) -> None:
        if isinstance(why, Rejected):
            self._unreadable.reject(record, why.reason)
        else:
            self._unreadable.unknown(record, *unknown_type(record))

    def _group(self, name: str) -> _Group | _Misplaced | None:
        """The group with this name; None when it is not watched."""
        try:
            return self._groups[name]
        except KeyError:
            group = self._groups[name] = self._new_group(name)
            self._kept_bytes += _NAME_BYTES + len(name)
            return group

    def _new_group(self, name: str) -> _Group | _Misplaced | None:
        if not self._watches(name):
            return None
        home = partition_for(name, self._partitions, self._cluster_id)
        if home == self._partition:
            return _Group(len(self._groups))
        return _Misplaced(f"group {name!r} belongs to partition {home} of the offsets log, found on {self._partition}")

    def _topic(self, name: str) -> bool:
        try:
            return self._topics[name]
        except KeyError:
            watched = self._topics[name] = self._watches_topic(name)
            self._kept_bytes += _NAME_BYTES + len(name)
            return watched
