"""The rounds topic as the driver reads it; records are kept from one look to the next."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from itertools import islice

from kafka.errors import CorruptRecordError

from streaming.events import RejectedEvent, RoundClosed, RoundOpened, decode_round
from streaming.job.source.fetch import Gone, OffsetRange, RangeReader
from streaming.job.source.plan import RoundRecord
from streaming.job.source.unreadable import unwalkable
from streaming.record_batches import FetchedBatch, walk
from streaming.records import ONE_BY_ONE

# Records fetched at once in search of enough rounds: each has an opening and a closing record, so some hundred rounds.
_STEP = 1_000

# Records read for one batch with a limit. If there is no round among so many (openings of a probe that never closes,
# junk) the batch goes past them, so that they are not kept in memory and judged again and again.
_MOST_RECORDS = 10_000

# The same limit in bytes, as objects. A closing record has 1 to 2 KB with 50 partitions of the log, and 25 KB with a
# thousand: this holds hundreds of the largest, and a batch has some dozens.
_MOST_BYTES = 64 * 1024 * 1024

# Memory of a record as an object, in addition to its bytes; and of a decoded record of ours, by its bytes.
_RECORD_BYTES = 500
_DECODED = 8

# Junk in a row that is kept record by record: `quarantine` shows no more per day, and counts the others.
_JUNK_KEPT = ONE_BY_ONE + 1

# A look for new rounds delays the query's stop; the next trigger looks again.
_LOOK_S = 10.0


@dataclass(frozen=True, slots=True)
class SeenRecord:
    """A record, with what the planner needs to know of it.

    Attributes:
        record: The record.
        size: Approximate bytes in memory.
    """

    record: RoundRecord
    size: int

    @property
    def closed(self) -> RoundClosed | None:
        """The closing record's content; None for any other."""
        content = self.record.content
        return content if isinstance(content, RoundClosed) else None


@dataclass(frozen=True, slots=True)
class Upcoming:
    """The result of `RoundsTopic.upcoming`.

    Attributes:
        records: The records, in order.
        after: Offset behind the last of them.
        complete: There are no more.
        full: One batch reads no more.
    """

    records: list[SeenRecord]
    after: int
    complete: bool
    full: bool


class RoundsTopic:
    """Reads the one partition of the rounds topic, and keeps the records that were not taken yet.

    Attributes:
        end: Exclusive end of the records read.
    """

    def __init__(self, topic: str) -> None:
        """Start empty; `topic` is its name."""
        self.end = 0
        self._topic = topic
        self._begin = 0
        self._gap: Gone | None = None
        self._kept: deque[SeenRecord] = deque()

    def upcoming(self, reader: RangeReader, start: int, until: int, rounds: int | None) -> Upcoming:
        """Records from `start` on, until they hold so many closing records (or reach the limits), or `until`.

        Args:
            reader: Reader of this process.
            start: First offset.
            until: Exclusive end of what exists.
            rounds: Closing records at the most; None for all records.

        Raises:
            KafkaError, UnreadableTopicError: The topic could not be read.
        """
        self._forget_before(start)
        found: list[SeenRecord] = []
        closed = size = 0
        while True:
            for seen in islice(self._kept, len(found), None):
                if seen.record.offset >= until:
                    return Upcoming(found, _after(found, start), complete=True, full=False)
                found.append(seen)
                closed += seen.closed is not None
                size += seen.size
                full = len(found) >= _MOST_RECORDS or size >= _MOST_BYTES
                if rounds is not None and (closed >= rounds or full):
                    return Upcoming(found, _after(found, start), complete=False, full=full)
            if self.end >= until:
                return Upcoming(found, _after(found, start), complete=True, full=False)
            self._fetch(reader, until, _LOOK_S)

    def between(self, reader: RangeReader, start: int, end: int) -> tuple[list[RoundRecord], Gone | None]:
        """All records of [start, end), and the part that no longer exists.

        Raises:
            KafkaError, UnreadableTopicError: The topic could not be read.
        """
        self._forget_before(start)
        while self.end < end:
            self._fetch(reader, end, None)
        gap = self._gap if self._gap is not None and start <= self._gap.start < end else None
        return [seen.record for seen in self._kept if seen.record.offset < end], gap

    def _forget_before(self, start: int) -> None:
        # A query that goes back (a batch planned again after a failure) starts over.
        if start < self._begin or start > self.end:
            self._kept.clear()
            self.end = start
            self._gap = None
        self._begin = start
        while self._kept and self._kept[0].record.offset < start:
            self._kept.popleft()
        if self._gap is not None and self._gap.end <= start:
            self._gap = None

    def _fetch(self, reader: RangeReader, until: int, patience_s: float | None) -> None:
        """Read some more records, up to `until`."""
        where = OffsetRange(self._topic, 0, self.end, until)
        gap, fetched, end = self._gap, _Fetched(), until
        for _, item in reader.read([where], patience_s):
            if isinstance(item, Gone):
                gap = item if gap is None else Gone(gap.start, item.end, item.reason, item.before_log)
                continue
            # A batch can have millions of records: those not read this time come next time.
            reached = _walk(item, where, fetched)
            if fetched.much:
                end = reached
                break
        self._kept.extend(fetched.records)
        self._gap = gap
        self.end = end


class _Fetched:
    """Records about to be kept; the first of junk in a row, and how many follow."""

    def __init__(self) -> None:
        self.records: list[SeenRecord] = []
        self._size = 0
        self._junk = 0

    @property
    def much(self) -> bool:
        return len(self.records) >= _STEP or self._size >= _MOST_BYTES

    def add(self, record: RoundRecord) -> None:
        self._junk = self._junk + 1 if isinstance(record.content, RejectedEvent) else 0
        if self._junk > _JUNK_KEPT:
            last = self.records[-1]
            before = replace(last.record, more=last.record.more + 1, last=record.offset)
            self.records[-1] = SeenRecord(before, last.size)
            return
        size = _RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
        if isinstance(record.content, RoundOpened | RoundClosed):
            size += _DECODED * len(record.value or b"")
        self._size += size
        self.records.append(SeenRecord(record, size))


def _walk(batch: FetchedBatch, where: OffsetRange, fetched: _Fetched) -> int:
    """Take the records of a batch up to the limits; returns the offset behind the last one."""
    try:
        for offset, timestamp, key, value in walk(batch, where.start, where.end):
            fetched.add(RoundRecord(offset, timestamp, key, value, decode_round(value)))
            if fetched.much:
                return offset + 1
    except CorruptRecordError as error:
        record, reason = unwalkable(batch, error)
        at = max(record.offset, where.start)
        fetched.add(RoundRecord(at, record.timestamp, None, None, RejectedEvent(reason)))
    return min(batch.offset + 1, where.end)


def _after(found: list[SeenRecord], start: int) -> int:
    if not found:
        return start
    newest = found[-1].record
    return max(newest.offset, newest.last) + 1
