"""The rounds topic as the driver reads it; records are kept from one look to the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from kafka.errors import CorruptRecordError

from streaming.events import RejectedEvent, decode_round
from streaming.job.source.fetch import Gone, OffsetRange, RangeReader, unwalkable
from streaming.job.source.plan import RoundRecord
from streaming.record_batches import FetchedBatch, walk

# Records fetched at once in search of enough rounds: each has an opening and a closing record, so some hundred rounds.
_STEP = 1_000

# Records read for one batch with a limit. If there is no round among so many (openings of a probe that never closes,
# junk) the batch goes past them, so that they are not kept in memory and judged again and again.
_MOST_RECORDS = 10_000

# A look for new rounds delays the query's stop; the next trigger looks again.
_LOOK_S = 10.0


@dataclass(frozen=True, slots=True)
class Upcoming:
    """The result of `RoundsTopic.upcoming`.

    Attributes:
        records: The records, in order.
        after: Offset behind the last of them.
        complete: There are no more.
        full: One batch reads no more.
    """

    records: list[RoundRecord]
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
        self._kept: deque[RoundRecord] = deque()

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
        found: list[RoundRecord] = []
        closed = 0
        while True:
            for record in islice(self._kept, len(found), None):
                if record.offset >= until:
                    return Upcoming(found, _after(found, start), complete=True, full=False)
                found.append(record)
                closed += record.closed is not None
                full = len(found) >= _MOST_RECORDS
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
        return [record for record in self._kept if record.offset < end], gap

    def _forget_before(self, start: int) -> None:
        # A query that goes back (a batch planned again after a failure) starts over.
        if start < self._begin or start > self.end:
            self._kept.clear()
            self.end = start
            self._gap = None
        self._begin = start
        while self._kept and self._kept[0].offset < start:
            self._kept.popleft()
        if self._gap is not None and self._gap.end <= start:
            self._gap = None

    def _fetch(self, reader: RangeReader, until: int, patience_s: float | None) -> None:
        """Read some more records, up to `until`."""
        where = OffsetRange(self._topic, 0, self.end, until)
        gap, end = self._gap, until
        records: list[RoundRecord] = []
        for _, item in reader.read([where], patience_s):
            if isinstance(item, Gone):
                gap = item if gap is None else Gone(gap.start, item.end, item.reason, item.before_log)
                continue
            records.extend(_records(item, where))
            if len(records) >= _STEP:
                end = min(item.offset + 1, until)
                break
        self._kept.extend(records)
        self._gap = gap
        self.end = end


def _records(batch: FetchedBatch, where: OffsetRange) -> Iterator[RoundRecord]:
    try:
        for offset, timestamp, key, value in walk(batch, where.start, where.end):
            yield RoundRecord(offset, timestamp, key, value, decode_round(value))
    except CorruptRecordError as error:
        record, reason = unwalkable(batch, error)
        at = max(record.offset, where.start)
        yield RoundRecord(at, record.timestamp, None, None, RejectedEvent(reason))


def _after(found: list[RoundRecord], start: int) -> int:
    return found[-1].offset + 1 if found else start
