"""The rounds topic as the driver reads it: records kept from the last look to the next."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import islice

from kafka.errors import CorruptRecordError

from streaming.events import Rejected, RoundClosed, decode_round
from streaming.job.source.fetch import Gone, OffsetRange, RangeReader
from streaming.job.source.plan import RoundRecord
from streaming.record_batches.walk import walk

__all__ = ["MOST_RECORDS", "RoundsTopic", "SeenRecord"]

# Offsets fetched at once while looking for enough rounds: an opening and a closing a round, so a few hundred rounds.
_STEP = 1_000

# Records looked at for one batch with a limit. Without any round to take among so many (openings of a probe that never
# closes, junk) the batch goes past them, so that they are not kept in memory and judged again and again.
MOST_RECORDS = 10_000

# Looking for new rounds holds up the query's stop; the next trigger looks again.
_LOOK_S = 10.0


@dataclass(frozen=True, slots=True)
class SeenRecord:
    """A record, with what the planner asks of it."""

    record: RoundRecord

    @property
    def closed(self) -> RoundClosed | None:
        """The closing record's content; None for any other."""
        content = self.record.content
        return content if isinstance(content, RoundClosed) else None


class RoundsTopic:
    """Reads the one partition of the rounds topic, and keeps what was not taken yet.

    Attributes:
        end: Exclusive end of what was read.
    """

    def __init__(self, topic: str) -> None:
        """Start with nothing; `topic` is its name."""
        self.end = 0
        self._topic = topic
        self._begin = 0
        self._gap: Gone | None = None
        self._kept: deque[SeenRecord] = deque()

    def upcoming(
        self, reader: RangeReader, start: int, until: int, rounds: int | None
    ) -> tuple[list[SeenRecord], bool]:
        """Records from `start` on, until they hold so many closing records (or are `MOST_RECORDS`), or `until`.

        Args:
            reader: Reader of this process.
            start: First offset.
            until: Exclusive end of what exists.
            rounds: Closing records at the most; None for all records.

        Returns:
            The records, and whether they are all there are.

        Raises:
            KafkaError, UnreadableTopicError: The topic could not be read.
        """
        self._forget_before(start)
        found: list[SeenRecord] = []
        closed = 0
        while True:
            for seen in islice(self._kept, len(found), None):
                if seen.record.offset >= until:
                    return found, True
                found.append(seen)
                closed += seen.closed is not None
                if rounds is not None and (closed >= rounds or len(found) >= MOST_RECORDS):
                    return found, False
            if self.end >= until:
                return found, True
            self._fetch(reader, min(until, self.end + _STEP), _LOOK_S)

    def between(self, reader: RangeReader, start: int, end: int) -> tuple[list[RoundRecord], Gone | None]:
        """All records of [start, end), and what of it no longer exists.

        Raises:
            KafkaError, UnreadableTopicError: The topic could not be read.
        """
        self._forget_before(start)
        while self.end < end:
            self._fetch(reader, min(end, self.end + _STEP), None)
        gap = self._gap if self._gap is not None and start <= self._gap.start < end else None
        return [seen.record for seen in self._kept if seen.record.offset < end], gap

    def _forget_before(self, start: int) -> None:
        # A query that goes back (a batch planned again after a failure) begins anew.
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
        where = OffsetRange(self._topic, 0, self.end, until)
        gap, fetched = self._gap, list[SeenRecord]()
        for _, item in reader.read([where], patience_s):
            if isinstance(item, Gone):
                gap = item if gap is None else Gone(gap.start, item.end, item.reason, item.before_log)
                continue
            try:
                for offset, timestamp, key, value in walk(item, where.start, where.end):
                    fetched.append(SeenRecord(RoundRecord(offset, timestamp, key, value, decode_round(value))))
            except CorruptRecordError as error:
                reason = (
                    f"the record batch of offsets {item.base_offset} to {item.offset} cannot be taken apart: {error}"
                )
                record = RoundRecord(max(item.base_offset, where.start), item.timestamp, None, None, Rejected(reason))
                fetched.append(SeenRecord(record))
        self._kept.extend(fetched)
        self._gap = gap
        self.end = until
