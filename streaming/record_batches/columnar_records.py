"""The records of many batches at once, as columns; `walk` does the same for one batch, record by record.

Only a record's first varint gives its end, so each batch is walked from record to record; but the step to record k is
one step of NumPy for all batches. All other fields are then read for all records at once. `walk.py` describes the
layout.

A batch with anything odd (a long varint, a length that does not fit, offsets out of order, a codec that refuses, far
more records than others) is handed on as it is: `walk` decodes it or reports what is wrong with it.
So this module may refuse good batches, but never returns a record that `walk` would not. Tests compare the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from kafka.errors import CorruptRecordError

from streaming.offsets_log import PADDING, Bytes, Ints, RecordColumns
from streaming.record_batches.batches import APPEND_TIME, CODEC, HEADER, FetchedBatch, FetchedRun, decompressed

# Records walked together: enough batches to spread NumPy's cost per call. It also limits the memory of the columns
# (16 bytes a record) and of the decompressed batches, to twice that: a batch that is larger by itself is left to
# `walk`, which holds none of its records.
_RECORDS_AT_ONCE = 65_536
_BYTES_AT_ONCE = 8 * 1024 * 1024

# Clients and coordinators put some thousands into a batch; but a record can have seven bytes, and a batch millions.
_MOST_RECORDS = 65_536

# Records returned together: enough to spread the cost per call again, few enough that they (some 100 bytes each) and
# their columns stay in the processor's cache while the following steps read them.
_COLUMNS_AT_ONCE = 8_192

# A run with fewer records than this is faster record by record.
_FEW_RECORDS = 150

# The shortest record: length, attributes, timestamp, offset, two sizes, number of headers.
_LEAST_RECORD = 7

# With fewer batches than this a step of NumPy costs more than stepping from record to record in Python.
_FEW_BATCHES = 100

_SEVEN_BITS = 0x7F

# Timestamps of up to nine bytes are 63 bits: sums with one fit an int64. Other numbers have up to four bytes, which no
# batch exceeds that is read here: Java reads five of them as 32 bits (`walk`).
_LONG, _SHORT = 56, 21
_FAR = 2**62

_Mask = npt.NDArray[np.bool_]


def pieces(item: FetchedRun | FetchedBatch, start: int, end: int) -> Iterator[RecordColumns | FetchedBatch]:
    """As `record_columns`; a batch by itself comes as it is."""
    if isinstance(item, FetchedBatch):
        return iter((item,))
    return record_columns(item, start, end)


def record_columns(run: FetchedRun, start: int, end: int) -> Iterator[RecordColumns | FetchedBatch]:
    """Yield the records of a run with offsets in [start, end), in order; batches that are left to `walk` come whole."""
    if int(run.records.sum()) < _FEW_RECORDS:
        yield from run.batches()
        return
    trim = run.base_offset < start or run.offset >= end
    for part in _gathered(run):
        for piece in part.pieces():
            if trim and isinstance(piece, RecordColumns):
                yield piece.where((piece.offset >= start) & (piece.offset < end))
            else:
                yield piece


def _gathered(run: FetchedRun) -> Iterator[_Batches]:
    """Parts of a run, decompressed, each small enough to be walked at once."""
    records = np.cumsum(np.clip(run.records, 0, run.size))
    edges = _edges(np.maximum(records / _RECORDS_AT_ONCE, np.cumsum(run.size) / _BYTES_AT_ONCE))
    for first, last in pairwise(edges):
        part = run.part(first, last)
        if not (part.attributes & CODEC).any():
            begin = int(part.start[0])
            whole = part.data[begin : int(part.start[-1] + part.size[-1])]
            body = part.start - begin + HEADER
            yield _Batches(part, [whole], body, body + part.size - HEADER)
        else:
            yield from _decompressed(part)


def _edges(load: npt.NDArray[np.float64]) -> list[int]:
    """Where to split the batches, so that no part has more than one load and its last batch; never inside a batch.

    Args:
        load: Load of each batch and all before it.
    """
    return [0, *(np.flatnonzero(np.diff(load.astype(np.int64))) + 1).tolist(), load.size]


def _decompressed(run: FetchedRun) -> Iterator[_Batches]:
    clear: list[bytes | memoryview] = []
    size = first = 0
    begin: list[int] = []
    stop: list[int] = []
    for row, (at, length, attributes) in enumerate(
        zip(run.start.tolist(), run.size.tolist(), run.attributes.tolist(), strict=True)
    ):
        begin.append(size)
        try:
            body = decompressed(attributes & CODEC, run.data[at + HEADER : at + length])
        except CorruptRecordError:
            body = None
        if body is None or len(body) > _BYTES_AT_ONCE:
            # No batch ends before it begins, so this marks an odd one.
            stop.append(size - 1)
        else:
            clear.append(body)
            size += len(body)
            stop.append(size)
        if size >= _BYTES_AT_ONCE or row == len(run) - 1:
            yield _Batches(run.part(first, row + 1), clear, np.array(begin), np.array(stop))
            clear, size, first, begin, stop = [], 0, row + 1, [], []


class _Batches:
    """Decompressed batches in one buffer.

    Call `pieces` once.
    """

    def __init__(self, run: FetchedRun, clear: list[bytes | memoryview], begin: Ints, stop: Ints) -> None:
        """Join the pieces of the buffer.

        Args:
            run: The batches.
            clear: Pieces of the buffer.
            begin: Where each batch's records begin in the buffer.
            stop: Where they end; before `begin` for a batch to skip.
        """
        self._run = run
        self._data: Bytes = np.frombuffer(b"".join([*clear, bytes(PADDING)]), np.uint8)
        self._begin = begin
        self._stop = stop
        count = run.records
        # Skipped: no record at all, too many for columns, or an impossible number of records.
        self._good: _Mask = (count > 0) & (count <= _MOST_RECORDS) & (count * _LEAST_RECORD <= stop - begin)
        for base in (run.first_timestamp, run.first_offset):
            self._good &= (base > -_FAR) & (base < _FAR)
        self._count = np.where(self._good, count, 0)

    def pieces(self) -> Iterator[RecordColumns | FetchedBatch]:
        """Columns, and between them the odd batches."""
        edges = np.concatenate(([0], np.cumsum(self._count)))
        begins, ends = self._walked(edges[:-1])
        some = _edges(edges[1:] / _COLUMNS_AT_ONCE)
        for first, last in pairwise(some):
            columns = self._columns(first, last, begins[edges[first] : edges[last]], ends[edges[first] : edges[last]])
            if self._good[first:last].all():
                yield columns
                continue
            done = start = int(edges[first])
            for row in (first + np.flatnonzero(~self._good[first:last])).tolist():
                if done < edges[row]:
                    yield columns.part(done - start, int(edges[row]) - start)
                yield self._run.batch(row)
                done = int(edges[row + 1])
            if done < edges[last]:
                yield columns.part(done - start, int(edges[last]) - start)

    def _columns(self, first: int, last: int, at: Ints, after: Ints) -> RecordColumns:
        """The records of batches [first, last); those of batches that prove odd have no meaning.

        Args:
            first: First batch.
            last: Exclusive end of the batches.
            at: Where each record begins, after its length field.
            after: Where it ends.
        """
        run, count = self._run, self._count[first:last]
        batch = np.repeat(np.arange(first, last), count)
        stop = self._stop[batch]
        # Each record ends in its batch, and the last one at the batch's end.
        self._refuse(batch, after > stop)
        ends = np.cumsum(count)
        full = np.flatnonzero(count)
        self._refuse(first + full, after[ends[full] - 1] != self._stop[first + full])
        after = np.minimum(after, stop)
        time, at = self._varints(batch, at + 1, _LONG)
        delta, at = self._varints(batch, at, _SHORT)
        key_size, key_start = self._varints(batch, at, _SHORT)
        value_at = key_start + np.maximum(key_size, 0)
        self._refuse(batch, value_at >= after)
        value_size, value_start = self._varints(batch, np.minimum(value_at, after), _SHORT)
        self._refuse(batch, value_start + np.maximum(value_size, 0) >= after)
        in_order = np.empty(batch.size, np.bool_)
        np.greater(delta[1:], delta[:-1], out=in_order[1:])
        in_order[(ends - count)[full]] = True
        base = run.first_offset[batch]
        offset = base + delta
        self._refuse(batch, ~in_order | (delta < 0) | (offset > run.last_offset[batch]))
        timestamp = run.first_timestamp[batch] + time
        appended = (run.attributes[first:last] & APPEND_TIME) != 0
        if appended.any():
            timestamp = np.where(np.repeat(appended, count), run.max_timestamp[batch], timestamp)
        return RecordColumns(
            data=self._data,
            offset=offset,
            timestamp=timestamp,
            key_start=key_start,
            key_size=np.maximum(key_size, -1),
            value_start=value_start,
            value_size=np.maximum(value_size, -1),
        )

    def _walked(self, first: Ints) -> tuple[Ints, Ints]:
        """Where each record begins, after its length field, and where it should end (beyond its batch if it is odd).

        Args:
            first: Row of each batch's first record.
        """
        data, total = self._data, int(self._count.sum())
        begins, ends = np.empty(total, np.int64), np.empty(total, np.int64)
        order = np.argsort(-self._count, kind="stable")
        count = self._count[order]
        row, at, stop = first[order], self._begin[order], self._stop[order]
        # Number of batches that have a record k.
        steps = int(count[0])
        going = np.searchsorted(-count, -np.arange(steps), side="left")
        wide = int(np.searchsorted(-going, -_FEW_BATCHES, side="right"))
        for walking in going[:wide].tolist():
            row, at, stop = row[:walking], at[:walking], stop[:walking]
            length, at, endless = _varints(data, at, _SHORT)
            begins[row] = at
            if endless is not None:
                length[endless] = -1
            # A length of zero would not advance: the position moves beyond the batch, and all later steps stay there.
            at = np.where(length > 0, at + length, stop + 1)
            ends[row] = at
            at = np.minimum(at, stop)
            row = row + 1
        if wide < steps:
            raw = data.tobytes()
            for number in range(int(going[wide])):
                left = int(count[number]) - wide
                here = slice(int(row[number]), int(row[number]) + left)
                begins[here], ends[here] = _one_batch(raw, int(at[number]), int(stop[number]), left)
        return begins, ends

    def _refuse(self, batch: Ints, odd: _Mask) -> None:
        if odd.any():
            self._good[batch[odd]] = False

    def _varints(self, batch: Ints, at: Ints, longest: int) -> tuple[Ints, Ints]:
        value, after, endless = _varints(self._data, at, longest)
        if endless is not None:
            self._good[batch[endless]] = False
        return value, after


def _varints(data: Bytes, at: Ints, longest: int) -> tuple[Ints, Ints, Ints | None]:
    """Zigzag varints at many places: their values, their ends, and which of them are longer (None: none is)."""
    byte = data.take(at)
    after = at + 1
    value = byte.astype(np.int64)
    more = byte > _SEVEN_BITS
    endless = None
    if more.any():
        # Reading the second byte of all of them costs less than finding out which have one.
        byte = data.take(after)
        value &= _SEVEN_BITS
        value |= (byte.astype(np.int64) & _SEVEN_BITS) * more << 7
        after += more
        rows = np.flatnonzero(more & (byte > _SEVEN_BITS))
        shift = 14
        while rows.size and shift <= longest:
            byte = data.take(after[rows])
            value[rows] |= (byte.astype(np.int64) & _SEVEN_BITS) << shift
            after[rows] += 1
            rows = rows[byte > _SEVEN_BITS]
            shift += 7
        if rows.size:
            endless = rows
    return (value >> 1) ^ -(value & 1), after, endless


def _one_batch(data: bytes, at: int, stop: int, count: int) -> tuple[list[int], list[int]]:
    """The steps for a single batch, up to its end, in Python."""
    begins: list[int] = []
    ends: list[int] = []
    for _ in range(count):
        length, shift = data[at], 7
        at += 1
        if length > _SEVEN_BITS:
            length &= _SEVEN_BITS
            while (byte := data[at]) > _SEVEN_BITS and shift < _SHORT:
                length |= (byte & _SEVEN_BITS) << shift
                shift += 7
                at += 1
            length = -1 if byte > _SEVEN_BITS else length | byte << shift
            at += 1
        begins.append(at)
        # Zigzag: an odd number is a negative one.
        at = at + (length >> 1) if length > 0 and not length & 1 else stop + 1
        ends.append(at)
        at = min(at, stop)
    return begins, ends
