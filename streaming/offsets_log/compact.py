"""Folds the records of one partition of the offsets log into what the core needs of them.

Offset commits are a flood (thousands a second), and of most of them only the last counts. So commits become
windows (`CommitWindow`), other key types become counts, and only membership records stay as they are. The
fold does not depend on the cut: windows are closed at boundaries and membership records alone, and two parts
of a window merge into the whole (`merge_windows`).

`Compactor.add` is the hot path of the whole job. Of an offset commit with a known key it only notes the slot
of its window; thousands of them are then decoded and folded at once (`commit_fold.py`). All else, and the first
record of a key in a window, takes the plain way.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

from streaming.groups.inputs import GroupInput, MembershipRecord, MembershipTombstone, OtherRecords
from streaming.groups.quarantine import PartitionInput
from streaming.offsets_log.commit_fold import CommitFold, canonical
from streaming.offsets_log.keys import (
    LEGACY_OFFSET_COMMIT,
    OFFSET_COMMIT,
    GroupKey,
    Key,
    OffsetKey,
    UnknownKey,
    decode_key,
    offset_commit_key,
)
from streaming.offsets_log.membership import decode_membership
from streaming.offsets_log.offset_commit import OffsetCommit, decode_offset_commit
from streaming.offsets_log.partitioner import partition_for
from streaming.offsets_log.record import LogRecord
from streaming.offsets_log.rejected import Rejected, UnknownVersion
from streaming.offsets_log.unread import Unread

__all__ = ["Compactor"]

# Offset commits that wait to be folded together: enough that NumPy's cost per call is spread (below 2,000 it
# shows), few enough that their values (some MB) stay in the processor's cache and out of the way.
_FOLDED_AT_ONCE = 16_384

# Keys that lead to no window (dropped, junk, other types) and are remembered decoded. Cleared when full, so
# that a log of ever new keys cannot fill the memory.
_KEYS_KEPT = 65_536

# Beyond every log offset.
_NEVER = 2**63


class _Place:
    """One partition that a group committed for.

    Attributes:
        group: The group.
        name: Topic and partition.
        key: Record key of type 1.
        slot: Slot of the open window; -1 when none is open.
    """

    __slots__ = ("group", "key", "name", "slot")

    def __init__(self, group: _Group, name: tuple[str, int], key: bytes) -> None:
        self.group = group
        self.name = name
        self.key = key
        self.slot = -1


class _Group:
    """What came of one watched group so far: closed windows by slot, the rest as it is; and what is open."""

    __slots__ = ("closed", "commits", "name", "others", "places")

    def __init__(self, name: str) -> None:
        self.name = name
        self.closed: list[int | MembershipRecord | MembershipTombstone | OtherRecords] = []
        self.commits: list[_Place] = []
        self.others: dict[int, OtherRecords] = {}
        self.places: dict[tuple[str, int], _Place] = {}


class Compactor:
    """Folds one partition of the offsets log between two positions.

    Call `add` for every record, in log order; then `groups` and `unread`, once each and in this order.

    Attributes:
        dropped: Records of groups and topics that are not watched. So every record is found again:
            records added = commits, tombstones and records in the inputs of `groups`, plus records in
            `unread`, plus `dropped` (complete after `groups`).
    """

    def __init__(
        self,
        partition: int,
        partitions: int,
        boundaries: Sequence[int],
        watches: Callable[[str], bool],
        watches_topic: Callable[[str], bool],
    ) -> None:
        """Prepare for one partition.

        Args:
            partition: Partition of the offsets log.
            partitions: Actual partition count of the offsets log.
            boundaries: Log positions of rounds, in any order: B parts the records below B from the others.
            watches: Whether a group passes the filters; asked once per group.
            watches_topic: Whether a topic passes the filters; asked once per key.
        """
        self.dropped = 0
        self._partition = partition
        self._partitions = partitions
        self._watches = watches
        self._watches_topic = watches_topic
        self._boundaries = sorted(boundaries)
        self._boundary = self._boundaries[0] if self._boundaries else _NEVER
        self._unread = Unread(partition, self._boundaries)
        self._groups: dict[str, _Group | None] = {}
        self._touched: dict[str, _Group] = {}
        self._places: dict[bytes, _Place] = {}
        self._keys: dict[bytes, Key] = {}
        self._fold = CommitFold(self._decode_plain)
        self._slot_places: list[_Place] = []
        # Slots of open windows by record key (type 1), and what `add` needs at hand.
        self._open: dict[bytes, int] = {}
        self._slots = self._fold.slots
        self._records = self._fold.records
        self._times = self._fold.times
        self._values = self._fold.values
        self._pause = -1

    def add(self, offset: int, timestamp: int, key: bytes | None, value: bytes | None) -> None:
        """Take the next record. Never raises on what a log can hold.

        Args:
            offset: Log offset, larger than the one before.
            timestamp: Record timestamp, ms.
            key: Key bytes.
            value: Value bytes; None for a tombstone.
        """
        if offset >= self._pause:
            self._catch_up(offset)
        slot = self._open.get(key)  # type: ignore[arg-type]  # None is never in it
        if slot is None or value is None:
            place = self._places.get(key)  # type: ignore[arg-type]  # None is never in it
            if place is None:
                self._add_plain(LogRecord(offset, timestamp, key, value))
            else:
                self._put(place, offset, timestamp, value)
            return
        self._slots.append(slot)
        self._records.append(offset)
        self._times.append(timestamp)
        self._values.append(value)

    def groups(self) -> Iterator[tuple[str, list[GroupInput]]]:
        """Every watched group that had records, with its inputs in log order."""
        self._close_all()
        windows = self._fold.windows()
        for name, group in self._groups.items():
            if group is None:
                continue
            found = [windows[item] if isinstance(item, int) else item for item in group.closed]
            placed = [(item.position, item) for item in found if item is not None]
            if placed:
                placed.sort(key=itemgetter(0))
                yield name, [item for _, item in placed]

    def unread(self) -> list[PartitionInput]:
        """What could not be read, in log order."""
        self._fold.fold()
        return self._unread.inputs()

    def _add_plain(self, record: LogRecord) -> None:
        key = self._decoded(record.key)
        if isinstance(key, Rejected):
            self._unread.reject(record, key.reason)
        elif isinstance(key, UnknownKey):
            self._unread.unknown(record)
        elif (group := self._group(key.group)) is None:
            self.dropped += 1
        elif (home := partition_for(key.group, self._partitions)) != self._partition:
            reason = f"group {key.group!r} belongs to partition {home} of the offsets log, found on {self._partition}"
            self._unread.reject(record, reason)
        elif isinstance(key, OffsetKey):
            self._add_commit(record, key, group)
        elif isinstance(key, GroupKey):
            self._add_membership(record, group)
        else:
            self._add_other(record, key.key_type, group)

    def _add_commit(self, record: LogRecord, key: OffsetKey, group: _Group) -> None:
        if not self._watches_topic(key.topic):
            self.dropped += 1
            return
        value = record.value
        if key.key_type == LEGACY_OFFSET_COMMIT and value is not None:
            # Its version 0 is the only one, so it is decoded here, and folded as if it were a v4.
            commit = decode_offset_commit(LEGACY_OFFSET_COMMIT, value)
            if not isinstance(commit, OffsetCommit):
                self._leave_unread(record, commit)
                return
            value = canonical(commit)
        name = key.topic, key.partition
        place = group.places.get(name)
        if place is None:
            place = group.places[name] = _Place(group, name, offset_commit_key(key))
            self._places[place.key] = place
        self._put(place, record.offset, record.timestamp, value)

    def _put(self, place: _Place, offset: int, timestamp: int, value: bytes | None) -> None:
        """Append a record to the fold, in the window of its place."""
        if place.slot < 0:
            place.slot = self._open[place.key] = self._fold.open(place.name)
            self._slot_places.append(place)
            place.group.commits.append(place)
            self._touched[place.group.name] = place.group
        if value is None:
            self._fold.tombstones.append(len(self._slots))
            value = b""
        self._slots.append(place.slot)
        self._records.append(offset)
        self._times.append(timestamp)
        self._values.append(value)

    def _decode_plain(self, slot: int, offset: int, timestamp: int, value: bytes) -> OffsetCommit | None:
        """What the fold could not decode: decoded here, or kept as unread."""
        commit = decode_offset_commit(OFFSET_COMMIT, value)
        if isinstance(commit, OffsetCommit):
            return commit
        self._leave_unread(LogRecord(offset, timestamp, self._slot_places[slot].key, value), commit)
        return None

    def _add_membership(self, record: LogRecord, group: _Group) -> None:
        item: MembershipRecord | MembershipTombstone
        if record.value is None:
            item = MembershipTombstone(record.offset, record.timestamp)
        else:
            membership = decode_membership(record.offset, record.timestamp, record.value)
            if not isinstance(membership, MembershipRecord):
                self._leave_unread(record, membership)
                return
            item = membership
        self._close(group)
        self._touched.pop(group.name, None)
        group.closed.append(item)

    def _add_other(self, record: LogRecord, key_type: int, group: _Group) -> None:
        value = record.value
        if value is not None and len(value) < 2:
            self._unread.reject(record, f"value: {len(value)} bytes cannot hold a version")
            return
        before = group.others.get(key_type)
        group.others[key_type] = OtherRecords(
            key_type=key_type,
            records=(before.records if before else 0) + (value is not None),
            tombstones=(before.tombstones if before else 0) + (value is None),
            first_record=before.first_record if before else record.offset,
            last_record=record.offset,
            last_time=record.timestamp,
            deleted=value is None,
        )
        self._touched[group.name] = group

    def _leave_unread(self, record: LogRecord, why: UnknownVersion | Rejected) -> None:
        if isinstance(why, Rejected):
            self._unread.reject(record, why.reason)
        else:
            self._unread.unknown(record)

    def _decoded(self, key: bytes | None) -> Key:
        if key is None:
            return decode_key(None)
        decoded = self._keys.get(key)
        if decoded is None:
            decoded = decode_key(key)
            if len(self._keys) >= _KEYS_KEPT:
                self._keys.clear()
            self._keys[key] = decoded
        return decoded

    def _group(self, name: str) -> _Group | None:
        try:
            return self._groups[name]
        except KeyError:
            group = self._groups[name] = _Group(name) if self._watches(name) else None
            return group

    def _catch_up(self, offset: int) -> None:
        """Fold what waits, and pass the boundaries up to a record that comes next."""
        if len(self._slots) >= _FOLDED_AT_ONCE // 2:
            self._fold.fold()
        if offset >= self._boundary:
            self._close_all()
            passed = bisect_right(self._boundaries, offset)
            self._boundary = self._boundaries[passed] if passed < len(self._boundaries) else _NEVER
        # Offsets grow by one at least, so that no more records than this can come before the next pause.
        self._pause = min(self._boundary, offset + _FOLDED_AT_ONCE)

    def _close_all(self) -> None:
        for group in self._touched.values():
            self._close(group)
        self._touched.clear()

    def _close(self, group: _Group) -> None:
        for place in group.commits:
            group.closed.append(place.slot)
            del self._open[place.key]
            place.slot = -1
        group.commits.clear()
        group.closed.extend(group.others.values())
        group.others.clear()
