"""The fold as in its contract, one record after the other, for comparison with the compactor.

Built only from the plain decoders and `merge_windows`: no cache, no vectorised path, no slots.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from streaming.offsets_log import (
    GroupKey,
    OffsetCommit,
    OffsetKey,
    OtherKey,
    Rejected,
    UnknownKey,
    UnknownVersion,
    decode_key,
    decode_membership,
    decode_modern,
    decode_offset_commit,
    partition_for,
    printed,
)
from streaming.records import (
    CommitWindow,
    GroupInput,
    MembershipRecord,
    MembershipTombstone,
    PartitionInput,
    QuarantinedRecord,
    UnreadableMembership,
    UnreadableModern,
    merge_windows,
)
from streaming.terminal import visible


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class Folded(NamedTuple):
    groups: dict[str, list[GroupInput]]
    unreadable: list[tuple[int, str]]
    """Offset and reason of the first of each kind; that of unknown ones left out."""
    dropped: int


def fold_one_by_one(
    records: Sequence[Record],
    *,
    partition: int = 0,
    partitions: int = 1,
    boundaries: Sequence[int] = (),
    watches: Callable[[str], bool] = lambda _: True,
    watches_topic: Callable[[str], bool] = lambda _: True,
) -> Folded:
    boundaries = sorted(boundaries)
    groups: dict[str, list[GroupInput]] = {}
    eras: dict[str, int] = {}
    windows: dict[tuple[object, ...], CommitWindow] = {}
    first: dict[tuple[object, ...], tuple[int, str]] = {}
    dropped = 0

    def note(record: Record, why: Rejected | UnknownVersion | UnknownKey, key: bytes | None = None) -> None:
        heads = [None if data is None or len(data) < 2 else data[:2] for data in (key or record.key, record.value)]
        reason = visible(why.reason, 500) if isinstance(why, Rejected) else ""
        first.setdefault((isinstance(why, Rejected), *heads), (record.offset, reason))

    for record in records:
        offset, timestamp, _, value = record
        key = decode_key(record.key)
        if isinstance(key, Rejected | UnknownKey):
            note(record, key)
            continue
        if not watches(key.group):
            dropped += 1
            continue
        home = partition_for(key.group, partitions)
        if home != partition:
            reason = f"group {key.group!r} belongs to partition {home} of the offsets log, found on {partition}"
            note(record, Rejected(reason))
            continue
        era = eras.get(key.group, 0), bisect_right(boundaries, offset)
        if isinstance(key, OffsetKey):
            if not watches_topic(key.topic):
                dropped += 1
                continue
            commit = None if value is None else decode_offset_commit(value)
            is_unreadable = isinstance(commit, Rejected | UnknownVersion)
            if isinstance(commit, Rejected | UnknownVersion):
                # (A legacy key, and one that Redpanda has wrapped, count as plain ones.)
                note(record, commit, b"\x00\x01")
            window = _window(key, record, commit if isinstance(commit, OffsetCommit) else None, is_unreadable)
            name = ("commits", key.group, key.topic, key.partition, era)
            before = windows.get(name)
            windows[name] = window if before is None else merge_windows(before, window)
        elif isinstance(key, OtherKey):
            modern = decode_modern(offset, timestamp, key, value, partition)
            if isinstance(modern, Rejected | UnknownVersion) and key.key_type != 18:
                groups.setdefault(key.group, []).append(UnreadableModern(offset, key.key_type, key.part))
            if isinstance(modern, Rejected | UnknownVersion):
                note(record, modern)
            else:
                groups.setdefault(key.group, []).append(modern)
        else:
            assert isinstance(key, GroupKey)
            membership: object = MembershipTombstone(offset, timestamp)
            if value is not None:
                membership = decode_membership(offset, timestamp, value, partition)
            if isinstance(membership, Rejected | UnknownVersion):
                groups.setdefault(key.group, []).append(UnreadableMembership(offset))
                note(record, membership)
            else:
                assert isinstance(membership, MembershipRecord | MembershipTombstone)
                groups.setdefault(key.group, []).append(membership)
                eras[key.group] = eras.get(key.group, 0) + 1
    for place, item in windows.items():
        groups.setdefault(str(place[1]), []).append(item)
    for items in groups.values():
        items.sort(key=lambda item: getattr(item, "position"))  # noqa: B009
    return Folded(groups, sorted(first.values()), dropped)


def _window(key: OffsetKey, record: Record, commit: OffsetCommit | None, is_unreadable: bool) -> CommitWindow:
    is_tombstone = commit is None and not is_unreadable
    return CommitWindow(
        topic=key.topic,
        partition=key.partition,
        commits=int(commit is not None),
        tombstones=int(is_tombstone),
        first_offset=commit.offset if commit else -1,
        first_commit_time=record.timestamp if commit else -1,
        first_record=record.offset,
        offset=commit.offset if commit else -1,
        leader_epoch=commit.leader_epoch if commit else -1,
        last_commit_time=record.timestamp if commit else -1,
        last_record=record.offset,
        deleted=is_tombstone,
        step_back=0,
        topic_id=printed(commit.topic_id) if commit else None,
        unreadable=is_unreadable,
    )


def as_folded(groups: dict[str, list[GroupInput]], unreadable: list[PartitionInput], dropped: int) -> Folded:
    """The result of a compactor in the form of `fold_one_by_one`."""
    found = [
        (item.offset, "" if item.kind == "unknown" else item.reason)
        for item in unreadable
        if isinstance(item, QuarantinedRecord)
    ]
    return Folded(groups, found, dropped)
