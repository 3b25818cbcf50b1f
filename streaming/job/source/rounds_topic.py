"""The rounds topic as the driver reads it."""

from __future__ import annotations

from collections.abc import Iterator

from kafka.errors import CorruptRecordError

from streaming.bus import TopicReader
from streaming.events import RejectedEvent, decode_round
from streaming.job.source.plan import RoundRecord
from streaming.record_batches import FetchedBatch, Gone, OffsetRange, unwalkable, walk

# Records read in search of rounds; each round has an opening and a closing one. If there is no round among so many
# (openings of a probe that never closes, junk) the batch goes past them, so that they are not judged again and again.
_MOST_RECORDS = 2_000

# A look for new rounds delays the query's stop; the next trigger looks again.
_LOOK_S = 10.0


class RoundsTopic:
    """Reads the one partition of the rounds topic."""

    def __init__(self, topic: str) -> None:
        """Begin with nothing read; `topic` is its name."""
        self._topic = topic
        self._looked_at: tuple[int, int] | None = None
        self._found: list[RoundRecord] = []

    def upcoming(self, reader: TopicReader, start: int, until: int) -> tuple[list[RoundRecord], bool]:
        """The next records from `start` on, below `until`, and whether there are as many as one batch reads.

        Raises:
            KafkaError, UnreadableTopicError: The topic could not be read.
        """
        # Most looks find what the one before has found.
        if self._looked_at != (start, until):
            self._found, _ = self._read(reader, start, until, _LOOK_S, _MOST_RECORDS)
            self._looked_at = start, until
        return self._found, len(self._found) >= _MOST_RECORDS

    def between(self, reader: TopicReader, start: int, end: int) -> tuple[list[RoundRecord], Gone | None]:
        """All records of [start, end), and the part that no longer exists.

        Raises:
            KafkaError, UnreadableTopicError: The topic could not be read.
        """
        return self._read(reader, start, end)

    def _read(
        self, reader: TopicReader, start: int, end: int, patience_s: float | None = None, most: int | None = None
    ) -> tuple[list[RoundRecord], Gone | None]:
        """Read records, up to about `most`, and what is gone of them."""
        where = OffsetRange(self._topic, 0, start, end)
        gap: Gone | None = None
        records: list[RoundRecord] = []
        for _, item in reader.read([where], patience_s):
            if isinstance(item, Gone):
                gap = item if gap is None else Gone(gap.start, item.end, item.reason, item.before_log)
                continue
            records.extend(_records(item, where))
            if most is not None and len(records) >= most:
                break
        return records, gap


def _records(batch: FetchedBatch, where: OffsetRange) -> Iterator[RoundRecord]:
    try:
        for offset, timestamp, key, value in walk(batch, where.start, where.end):
            yield RoundRecord(offset, timestamp, key, value, decode_round(value))
    except CorruptRecordError as error:
        record, reason = unwalkable(batch, error)
        at = max(record.offset, where.start)
        yield RoundRecord(at, record.timestamp, None, None, RejectedEvent(reason))
