"""The fold as in its contract, one record after the other, for comparison with the compactor.

Built only from the plain decoders and `merge_windows`: no cache, no vectorised path, no slots.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from streaming.offsets_log import (
    OffsetKey,
    OtherKey,
    Rejected,
    UnknownKey,
    UnknownVersion,
    decode_key,
    decode_membership,
    decode_modern,
    decode_record_value,
    partition_for,
    printed,
)
from streaming.records import (
    CommitWindow,
    CountedRecords,
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
    quarantined: list[tuple[int, str]]
    unknown: dict[tuple[str, int], tuple[int, int, int]]
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
    quarantined: list[tuple[int, str]] = []
    unknown: dict[tuple[str, int], tuple[int, int, int]] = {}
    dropped = 0

    def count_unknown(record: Record) -> None:
        version = None
        if record.value is not None and len(record.value) >= 2:
            version = int.from_bytes(record.value[:2], "big", signed=True)
        count(f"{int.from_bytes(record.key[:2], 'big', signed=True)}/{version}", record.offset)

    def count(kind: str, offset: int) -> None:
        name = kind, bisect_right(boundaries, offset)
        first, _, records = unknown.get(name, (offset, 0, 0))
        unknown[name] = first, offset, records + 1

    for record in records:
        offset, timestamp, _, value = record
        key = decode_key(record.key)
        if isinstance(key, Rejected):
            quarantined.append((offset, key.reason))
            continue
        if isinstance(key, UnknownKey):
            count_unknown(record)
            continue
        if not watches(key.group):
            dropped += 1
            continue
        home = partition_for(key.group, partitions)
        if home != partition:
            reason = f"group {key.group!r} belongs to partition {home} of the offsets log, found on {partition}"
            quarantined.append((offset, reason))
            continue
        era = eras.get(key.group, 0), bisect_right(boundaries, offset)
        if isinstance(key, OffsetKey):
            if not watches_topic(key.topic):
                dropped += 1
                continue
            commit = None if value is None else decode_record_value(1, value)
            if isinstance(commit, Rejected):
                quarantined.append((offset, commit.reason))
            elif isinstance(commit, UnknownVersion):
                # A legacy key, and one that Redpanda has wrapped, count as plain ones.
                count(f"1/{int.from_bytes(value[:2], 'big', signed=True)}", offset)
            is_unreadable = isinstance(commit, Rejected | UnknownVersion)
            window = _window(key, record, getattr(commit, "fields", None), is_unreadable)
            name = ("commits", key.group, key.topic, key.partition, era)
            before = windows.get(name)
            windows[name] = window if before is None else merge_windows(before, window)
        elif isinstance(key, OtherKey):
            modern = decode_modern(offset, timestamp, key, value, partition)
            if isinstance(modern, Rejected | UnknownVersion) and key.key_type != 18:
                groups.setdefault(key.group, []).append(UnreadableModern(offset, key.key_type, key.part))
            if isinstance(modern, Rejected):
                quarantined.append((offset, modern.reason))
            elif isinstance(modern, UnknownVersion):
                count_unknown(record)
            else:
                groups.setdefault(key.group, []).append(modern)
        else:
            membership: object = MembershipTombstone(offset, timestamp)
            if value is not None:
                membership = decode_membership(offset, timestamp, value, partition)
            if isinstance(membership, Rejected | UnknownVersion):
                groups.setdefault(key.group, []).append(UnreadableMembership(offset))
            if isinstance(membership, Rejected):
                quarantined.append((offset, membership.reason))
            elif isinstance(membership, UnknownVersion):
                count_unknown(record)
            else:
                assert isinstance(membership, MembershipRecord | MembershipTombstone)
                groups.setdefault(key.group, []).append(membership)
                eras[key.group] = eras.get(key.group, 0) + 1
    for place, item in windows.items():
        groups.setdefault(str(place[1]), []).append(item)
    for items in groups.values():
        items.sort(key=lambda item: getattr(item, "position"))  # noqa: B009
    # 101 records are kept; the others are only counted.
    for offset, _ in quarantined[101:]:
        count("undecodable", offset)
    shown = [(offset, visible(reason, 500)) for offset, reason in quarantined[:101]]
    return Folded(groups, shown, unknown, dropped)


def _window(key: OffsetKey, record: Record, commit: Any, is_unreadable: bool) -> CommitWindow:
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
        leader_epoch=commit.leaderEpoch if commit else -1,
        last_commit_time=record.timestamp if commit else -1,
        last_record=record.offset,
        deleted=is_tombstone,
        step_back=0,
        topic_id=printed(commit.topicId) if commit else None,
        unreadable=is_unreadable,
    )


def as_folded(
    groups: dict[str, list[GroupInput]], unreadable: list[PartitionInput], boundaries: Sequence[int], dropped: int
) -> Folded:
    """The result of a compactor in the form of `fold_one_by_one`."""
    quarantined = [(item.offset, item.reason) for item in unreadable if isinstance(item, QuarantinedRecord)]
    unknown = {
        (item.kind, bisect_right(sorted(boundaries), item.sample.offset)): (
            item.sample.offset,
            item.last_offset,
            item.records,
        )
        for item in unreadable
        if isinstance(item, CountedRecords)
    }
    return Folded(groups, quarantined, unknown, dropped)
