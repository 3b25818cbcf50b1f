"""The rounds topic moves on, whatever somebody wrote to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafka.record.default_records import DefaultRecordBatch

from streaming.job.source.rounds_topic import RoundsTopic
from streaming.record_batches import FetchedBatch, OffsetRange
from tests.record_batches.encoded import forged, varint


class Batches:
    """A topic of these batches."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, offset: int, delta: int) -> None:
        """One record in a batch at `offset`, which claims another place."""
        self.written.append(forged([(varint(0), varint(delta), b"k", b"junk")], base_offset=offset))

    def read(
        self, ranges: Iterable[OffsetRange], _patience_s: float | None = None
    ) -> Iterator[tuple[OffsetRange, FetchedBatch]]:
        (where,) = ranges
        for data in self.written:
            batch = DefaultRecordBatch(data)
            found = FetchedBatch(batch.base_offset, batch.last_offset, 0, batch).between(where.start, where.end)
            if found is not None:
                yield where, found


def test_a_record_that_claims_an_offset_far_ahead_hides_none_behind_it() -> None:
    reader = Batches()
    reader.write(0, 0)
    reader.write(1, 2**31 - 1)
    reader.write(2, 0)
    topic = RoundsTopic("rounds")
    records, is_full = topic.upcoming(reader, 0, 3)  # type: ignore[arg-type]
    assert ([record.offset for record in records], is_full) == ([0, 1, 2], False)
    reader.write(3, 0)
    records, _ = topic.upcoming(reader, 3, 4)  # type: ignore[arg-type]
    assert [record.offset for record in records] == [3]
