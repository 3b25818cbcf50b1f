"""Runs a log through the compactor, for its tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from streaming.offsets_log import PADDING, Compactor, RecordColumns
from streaming.records import (
    CommitWindow,
    CountedRecords,
    GroupInput,
    PartitionInput,
    UnreadableMembership,
    UnreadableModern,
)
from tests.offsets_log.one_by_one import Record


def compacted(
    records: Sequence[Record],
    *,
    partition: int = 0,
    partitions: int = 1,
    boundaries: Sequence[int] = (),
    watches: Callable[[str], bool] = lambda _: True,
    watches_topic: Callable[[str], bool] = lambda _: True,
) -> tuple[dict[str, list[GroupInput]], list[PartitionInput], int]:
    compactor = Compactor(partition, partitions, boundaries, watches, watches_topic)
    for record in records:
        compactor.add(*record)
    groups = dict(compactor.groups())
    return groups, compactor.unreadable(), compactor.dropped


def inputs_of(
    records: Iterable[tuple[int, int, bytes, bytes | None]], boundaries: Sequence[int] = ()
) -> list[GroupInput]:
    """The inputs of the core from records of one group, all of which can be read."""
    groups, unreadable, _ = compacted([Record(*record) for record in records], boundaries=boundaries)
    assert unreadable == []
    return [item for inputs in groups.values() for item in inputs]


def numbered(pairs: Sequence[tuple[bytes | None, bytes | None]], start: int = 100) -> list[Record]:
    return [Record(start + i, 1_000 + i, key, value) for i, (key, value) in enumerate(pairs)]


def counted(groups: dict[str, list[GroupInput]], unreadable: list[PartitionInput]) -> int:
    total = 0
    for inputs in groups.values():
        for item in inputs:
            if isinstance(item, CommitWindow):
                total += item.commits + item.tombstones
            elif not isinstance(item, UnreadableMembership | UnreadableModern):  # it is among the unreadable
                total += 1
    return total + sum(item.records if isinstance(item, CountedRecords) else 1 for item in unreadable)


def columns(records: Sequence[Record]) -> RecordColumns:
    """Records as a reader of record batches passes them on, with junk between keys and values."""
    data = bytearray(b"\xff")
    places = []
    for record in records:
        for part in (record.key, record.value):
            places.append((len(data), -1 if part is None else len(part)))
            data += (part or b"") + b"\xfe"
    data += b"\xff" * PADDING
    numbers = np.array(places, np.int64).reshape(len(records), 4)
    return RecordColumns(
        np.frombuffer(bytes(data), np.uint8),
        np.array([record.offset for record in records], np.int64),
        np.array([record.timestamp for record in records], np.int64),
        *numbers.T,
    )
