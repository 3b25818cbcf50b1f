"""Unreadable records of the topics: kept once with position, bytes and reason, or only counted.

These inputs belong to no group; their key is the partition. A million junk records must cause neither a million rows
nor a full memory, so per partition and day only a limited number of undecodable records get their own row, and the next
one's row counts all others. Records of unknown types and of newer value versions are no damage and can be very many (a
broker of the next release), so one sample per type, version and day is kept, with the count.

A day is 24 hours of rounds (`ClosedRound.elapsed`) as of the newest round below a record, because a record's own time
can be anything. Counts are written once per **window**, the range between two rounds' positions. All of this is in the
log, so the rows do not depend on how it was cut into batches: if a batch ends inside a window (`Window.closed`), its
counts wait for the window's end, which is an input of its own (`WindowEnd`): no other record need be unreadable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from streaming.groups import GapRow, QuarantineRow, Rows
from streaming.records import (
    KINDS,
    LONGEST_REASON,
    ONE_BY_ONE,
    UNDECODABLE,
    CountedRecords,
    LogGap,
    PartitionInput,
    QuarantinedRecord,
    Window,
    WindowEnd,
)
from streaming.terminal import visible
from streaming.times import day_of


class Counted(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Records of one kind on one day that share a row. Changed in place.

    Attributes:
        records: Number of records so far.
        sample: The first record.
        last_offset: Log offset of the last record.
        told: The count in the newest row.
    """

    records: int
    sample: QuarantinedRecord
    last_offset: int = -1
    told: int = 0


class UnreadableState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Unreadable records of one partition, as far as later rows need them.

    Attributes:
        counted: Counts of the newest day, by kind: unknown types and versions, `UNDECODABLE` and `_OTHERS`.
        day: The newest day with an unreadable record; -1 before the first.
        undecodable: Number of undecodable records of that day with their own row.
        round: The newest window with an unreadable record.
    """

    counted: dict[str, Counted] = {}
    day: int = -1
    undecodable: int = 0
    round: int = -1


# Kind of the records beyond `KINDS`; like `UNDECODABLE` it has no slash.
_OTHERS = "others"


def advance_partition(
    state: UnreadableState, inputs: list[PartitionInput], cluster: str
) -> tuple[UnreadableState, Rows]:
    """Turn unreadable records and gaps into rows of `quarantine` and `gaps`.

    Args:
        state: State so far; modified by the call.
        inputs: In any order; they are processed by window and offset.
        cluster: Configured name of the cluster.

    Returns:
        The new state, and one row per undecodable record (up to `ONE_BY_ONE` a day), one per window and kind of the
        others (the first record of the day, with the day's count so far) and one per gap.
    """
    rows = Rows()
    day = _Day(state, cluster, rows)
    unreadable: list[QuarantinedRecord | CountedRecords] = []
    ended = False
    for item in inputs:
        if isinstance(item, LogGap):
            rows.gaps.append(_gap_row(cluster, item))
        elif isinstance(item, WindowEnd):
            ended = True
        else:
            unreadable.append(item)
    for window, items in _by_window(unreadable):
        day.enter(window)
        for item in items:
            day.add(item)
        if window.closed:
            day.write()
    if ended:
        day.write()
    return state, rows


class _Day:
    """The counts of one day: `enter` a window, `add` its records, then `write` the rows at its end."""

    def __init__(self, state: UnreadableState, cluster: str, rows: Rows) -> None:
        self._state, self._cluster, self._rows = state, cluster, rows

    def enter(self, window: Window) -> None:
        state = self._state
        if window.round != state.round:
            self.write()
            state.round = window.round
        if window.day > state.day:
            state.day, state.undecodable, state.counted = window.day, 0, {}

    def add(self, item: QuarantinedRecord | CountedRecords) -> None:
        state = self._state
        if isinstance(item, CountedRecords):
            kind, sample = item.kind, item.sample
            if kind not in state.counted and sum("/" in known for known in state.counted) >= KINDS and "/" in kind:
                kind, sample = _OTHERS, _of_others(sample)
            self._count(kind, sample, item.records, item.last_offset)
        elif state.undecodable < ONE_BY_ONE:
            state.undecodable += 1
            self._rows.quarantine.append(_quarantine_row(self._cluster, item, "undecodable", 1, item.offset))
        else:
            self._count(UNDECODABLE, item, 1, item.offset)

    def write(self) -> None:
        for kind, now in self._state.counted.items():
            if now.records > now.told:
                what = "undecodable" if kind == UNDECODABLE else "unknown"
                self._rows.quarantine.append(
                    _quarantine_row(self._cluster, now.sample, what, now.records, now.last_offset)
                )
                now.told = now.records

    def _count(self, kind: str, sample: QuarantinedRecord, records: int, last_offset: int) -> None:
        known = self._state.counted.setdefault(kind, Counted(0, sample))
        known.records += records
        known.last_offset = max(known.last_offset, last_offset)


def _by_window(
    unreadable: Iterable[QuarantinedRecord | CountedRecords],
) -> Iterator[tuple[Window, list[QuarantinedRecord | CountedRecords]]]:
    """Windows in log order, each with its records: counted ones come after those that are kept."""
    windows: dict[int, list[QuarantinedRecord | CountedRecords]] = {}
    for item in sorted(unreadable, key=_first_offset):
        windows.setdefault(item.window.round, []).append(item)
    for items in windows.values():
        yield items[0].window, sorted(items, key=lambda item: isinstance(item, CountedRecords))


def _first_offset(item: QuarantinedRecord | CountedRecords) -> int:
    if isinstance(item, QuarantinedRecord):
        return item.offset
    return item.sample.offset


def _of_others(sample: QuarantinedRecord) -> QuarantinedRecord:
    return msgspec.structs.replace(
        sample,
        key_type=None,
        value_version=None,
        reason=f"there were {KINDS} other types and versions on that day that this release does not know",
        key=None,
        value=None,
        key_size=None,
        value_size=None,
        sha256=None,
    )


def _gap_row(cluster: str, gap: LogGap) -> GapRow:
    return GapRow(
        cluster=cluster,
        kind=gap.kind,
        topic=gap.topic,
        partition=gap.partition,
        from_offset=gap.from_offset,
        to_offset=gap.to_offset,
        from_time=None,
        to_time=None,
        reason=gap.reason,
    )


def _quarantine_row(
    cluster: str, record: QuarantinedRecord, kind: str, records: int, last_offset: int
) -> QuarantineRow:
    return QuarantineRow(
        cluster=cluster,
        topic=record.topic,
        partition=record.partition,
        record_offset=record.offset,
        record_time=record.record_time,
        event_date=day_of(record.record_time),
        kind=kind,
        key_type=record.key_type,
        value_version=record.value_version,
        reason=visible(record.reason, LONGEST_REASON),
        records=records,
        last_record_offset=last_offset,
        key=record.key,
        value=record.value,
        key_size=record.key_size,
        value_size=record.value_size,
        sha256=record.sha256,
    )
