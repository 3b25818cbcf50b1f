"""The rounds topic as the driver reads it; records are kept from one look to the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import takewhile

from kafka.errors import CorruptRecordError

from streaming.events import RejectedEvent, decode_round
from streaming.job.source.plan import RoundRecord
from streaming.record_batches import FetchedBatch, Gone, OffsetRange, RangeReader, unwalkable, walk

# Records fetched at once: each round has an opening and a closing record.
_STEP = 1_000

# Records kept in search of rounds. If there is no round among so many (openings of a probe that never closes, junk) the
# batch goes past them, so that they are not judged again and again.
_MOST_RECORDS = 4_000

# A look for new rounds delays the query's stop; the next trigger looks again.
_LOOK_S = 10.0


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

    def upcoming(self, reader: RangeReader, start: int, until: int) -> tuple[list[RoundRecord], bool]:
        """The next records from `start` on, below `until`, and whether there are as many as one batch reads.

        Raises:
            KafkaError, UnreadableTopicError: The topic could not be read.
        """
        self._forget_before(start)
        while self.end < until and len(self._kept) < _MOST_RECORDS:
            self._fetch(reader, until, _LOOK_S)
        return self._below(until), len(self._kept) >= _MOST_RECORDS

    def between(self, reader: RangeReader, start: int, end: int) -> tuple[list[RoundRecord], Gone | None]:
        """All records of [start, end), and the part that no longer exists.

        Raises:
            KafkaError, UnreadableTopicError: The topic could not be read.
        """
        self._forget_before(start)
        while self.end < end:
            self._fetch(reader, end, None)
        gap = self._gap if self._gap is not None and start <= self._gap.start < end else None
        return self._below(end), gap

    def _below(self, end: int) -> list[RoundRecord]:
        return list(takewhile(lambda record: record.offset < end, self._kept))

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
