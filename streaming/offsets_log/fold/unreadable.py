"""Unreadable records of one partition, on their way to `quarantine`: kept one by one up to a limit, then counted.

The limit is what the rows of a day need (`streaming.log_health.quarantine`), whatever was read of that day before: so
memory is bounded, and the result does not depend on how the log was split.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from streaming.offsets_log.codec.record_types import LogRecord
from streaming.records import (
    KINDS,
    LONGEST_REASON,
    LONGEST_RECORD,
    ONE_BY_ONE,
    UNDECODABLE,
    CountedRecords,
    PartitionInput,
    QuarantinedRecord,
    Window,
)
from streaming.terminal import visible

OFFSETS_LOG = "__consumer_offsets"

_NO_END = 2**63

# Approximate memory of a kept record, or a counted kind, in addition to its key and value.
_ITEM_BYTES = 1_000


@dataclass(frozen=True, slots=True)
class Windows:
    """The stretches of one partition between the positions of rounds.

    Attributes:
        positions: Ascending; B separates the records below B from the others.
        windows: One more than positions.
    """

    positions: Sequence[int] = ()
    windows: Sequence[Window] = (Window(),)

    def of(self, offset: int) -> Window:
        """The window of a record."""
        return self.windows[bisect_right(self.positions, offset)]


@dataclass(slots=True)
class _Counted:
    """Counted records of one kind in one window."""

    sample: QuarantinedRecord
    records: int = 0
    last_offset: int = -1


@dataclass(slots=True)
class _Kept:
    """The first undecodable records of one day; those from offset `end` on are counted."""

    records: list[QuarantinedRecord] = field(default_factory=list)
    end: int = _NO_END


@dataclass(slots=True)
class _Kinds:
    """The first kinds of unknown records of one day, each with its first offset, which is below `end`."""

    first: dict[str, int] = field(default_factory=dict)
    end: int = _NO_END


class UnreadableRecords:
    """Collects the unreadable records of one partition.

    Call `reject` and `unknown` per record, in any order; then `inputs`.

    Attributes:
        held: Approximate bytes held in memory.
    """

    def __init__(self, partition: int, windows: Windows, topic: str = OFFSETS_LOG, *, typed: bool = True) -> None:
        """Start empty.

        Args:
            partition: Partition of the topic.
            windows: Its windows in this batch.
            topic: The topic.
            typed: Keys and values begin with a type and a version, as they do in the offsets log.
        """
        self.held = 0
        self._topic = topic
        self._partition = partition
        self._windows = windows
        self._typed = typed
        # By day.
        self._kept: dict[int, _Kept] = {}
        self._kinds: dict[int, _Kinds] = {}
        self._counted: dict[tuple[str, int], _Counted] = {}

    def reject(self, record: LogRecord, reason: str) -> None:
        """Collect a record of a known type that could not be decoded, or that is where it cannot belong.

        Args:
            record: The record.
            reason: What is wrong, in one sentence; names in it are escaped here.
        """
        window = self._windows.of(record.offset)
        kept = self._kept.setdefault(window.day, _Kept())
        if record.offset >= kept.end:
            self._count(UNDECODABLE, record, reason, window)
            return
        sample = self._sample(record, reason, window)
        self._hold(sample)
        kept.records.append(sample)
        if len(kept.records) > 2 * ONE_BY_ONE:
            self._keep_the_first(kept)

    def unknown(self, record: LogRecord, kind: str, reason: str) -> None:
        """Count a record of an unknown type or newer version; `kind` names both, separated by a slash."""
        self._count(kind, record, reason, self._windows.of(record.offset))

    def inputs(self) -> list[PartitionInput]:
        """Everything collected, by offset of the (first) record."""
        for kept in self._kept.values():
            self._keep_the_first(kept)
        for day in self._kinds:
            self._show_the_first(day)
        found: list[QuarantinedRecord | CountedRecords] = [
            record for kept in self._kept.values() for record in kept.records
        ]
        found += [
            CountedRecords(kind, counted.records, counted.last_offset, counted.sample, counted.sample.window)
            for (kind, _), counted in self._counted.items()
        ]
        return [*sorted(found, key=_first_offset)]

    def _keep_the_first(self, kept: _Kept) -> None:
        # Records can come out of order: those that wait to be decoded together come later (`Compactor`).
        kept.records.sort(key=_first_offset)
        for record in kept.records[ONE_BY_ONE + 1 :]:
            plain = LogRecord(record.offset, record.record_time, record.key, record.value)
            self._count(UNDECODABLE, plain, record.reason, record.window)
        del kept.records[ONE_BY_ONE + 1 :]
        if len(kept.records) > ONE_BY_ONE:
            kept.end = kept.records[-1].offset

    def _count(self, kind: str, record: LogRecord, reason: str, window: Window) -> None:
        counted = self._counted.get((kind, window.round))
        if counted is None or record.offset < counted.sample.offset:
            shown = kind != UNDECODABLE and self._is_shown(kind, window.day, record.offset)
            sample = self._sample(record if shown else _bare(record), reason, window)
            if counted is None:
                self._hold(sample)
                counted = self._counted[kind, window.round] = _Counted(sample)
            counted.sample = sample
        counted.records += 1
        counted.last_offset = max(counted.last_offset, record.offset)

    def _is_shown(self, kind: str, day: int, offset: int) -> bool:
        """Whether the sample keeps its bytes, so far: it is the first of its kind and day, of one of few kinds."""
        kinds = self._kinds.setdefault(day, _Kinds())
        if offset >= kinds.first.get(kind, kinds.end):
            return False
        kinds.first[kind] = offset
        if len(kinds.first) > 2 * KINDS:
            self._show_the_first(day)
        return kind in kinds.first

    def _show_the_first(self, day: int) -> None:
        # As with the kept records, later ones may have lower offsets.
        kinds = self._kinds[day]
        ranked = sorted(kinds.first.items(), key=lambda named: named[1])
        kinds.first = dict(ranked[:KINDS])
        if len(ranked) > KINDS:
            kinds.end = ranked[KINDS][1]
        for (kind, _), counted in self._counted.items():
            sample = counted.sample
            shown = sample.key is not None and sample.window.day == day
            if shown and kinds.first.get(kind) != sample.offset:
                bare = LogRecord(sample.offset, sample.record_time, None, None)
                counted.sample = self._sample(bare, sample.reason, sample.window)

    def _hold(self, kept: QuarantinedRecord) -> None:
        self.held += _ITEM_BYTES + len(kept.key or b"") + len(kept.value or b"")

    def _sample(self, record: LogRecord, reason: str, window: Window) -> QuarantinedRecord:
        key, value = record.key, record.value
        cut = len(key or b"") > LONGEST_RECORD or len(value or b"") > LONGEST_RECORD
        return QuarantinedRecord(
            partition=self._partition,
            offset=record.offset,
            record_time=record.timestamp,
            key_type=_int16(key) if self._typed else None,
            value_version=_int16(value) if self._typed else None,
            reason=visible(reason, LONGEST_REASON),
            key=None if key is None else key[:LONGEST_RECORD],
            value=None if value is None else value[:LONGEST_RECORD],
            key_size=None if key is None else len(key),
            value_size=None if value is None else len(value),
            sha256=hashlib.sha256((key or b"") + (value or b"")).hexdigest() if cut else None,
            topic=self._topic,
            window=window,
        )


def _bare(record: LogRecord) -> LogRecord:
    return LogRecord(record.offset, record.timestamp, None, None)


def unknown_type(record: LogRecord) -> tuple[str, str]:
    """Kind of a record of the offsets log of an unknown type or newer version, and the reason for `quarantine`."""
    key_type, version = _int16(record.key), _int16(record.value)
    what = f"type {key_type}" if version is None else f"type {key_type}, value version {version},"
    return f"{key_type}/{version}", f"{what} is not known to this release; a newer broker may have written it"


def _int16(data: bytes | None) -> int | None:
    if data is None or len(data) < 2:
        return None
    return int.from_bytes(data[:2], "big", signed=True)


def _first_offset(item: QuarantinedRecord | CountedRecords) -> int:
    if isinstance(item, CountedRecords):
        return item.sample.offset
    return item.offset
