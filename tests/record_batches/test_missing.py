"""Fetch responses from which compaction has removed records, divided among polls at any place; without a broker."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher, IsolationLevel
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import KafkaConnectionError
from kafka.record import MemoryRecords
from kafka.record.memory_records import MemoryRecordsBuilder

from streaming.record_batches import (
    TO_THE_END,
    FetchedBatch,
    FetchedRun,
    Gone,
    Missing,
    OffsetRange,
    RangeReader,
    take_whole_batches,
    walk,
    whole_batches,
)

PLACE = TopicPartition("t", 0)


def log_batch(offset: int, count: int, *, left: int | None = None, control: bool = False) -> bytes:
    """A batch of `count` offsets, of which only the first `left` records remain (all when None)."""
    left = count if left is None else left
    builder = MemoryRecordsBuilder(2, 0, 4096)
    for number in range(max(1, left)):
        builder.append(1, b"k%d" % number, b"v")
    builder.close()
    made = bytearray(builder.buffer())
    if not left:
        del made[61:]
    made[:8] = offset.to_bytes(8, "big")
    made[8:12] = (len(made) - 12).to_bytes(4, "big")
    made[23:27] = (count - 1).to_bytes(4, "big")  # a batch keeps its last offset
    made[57:61] = left.to_bytes(4, "big")
    if control:
        made[21:23] = (0x20).to_bytes(2, "big")
    return bytes(made)


def part_of(records: bytes, offset: int = 0, aborted: Sequence[tuple[int, int]] = ()) -> Any:
    """A partition's part of a fetch response, in the form that our class takes."""
    ours = take_whole_batches(SimpleNamespace(_fetcher=SimpleNamespace()))._fetcher.PartitionRecords
    transactions = [SimpleNamespace(producer_id=pid, first_offset=first) for pid, first in aborted]
    return ours(
        offset,
        PLACE,
        MemoryRecords(records),
        isolation_level=IsolationLevel.READ_COMMITTED,
        aborted_transactions=transactions,
    )


def walked(items: Iterator[Any] | Sequence[Any], start: int = 0, end: int = 10**9) -> list[int]:
    """Offsets of the fetched records."""
    items = [item for item in items if not isinstance(item, Missing)]
    batches = [b for item in items for b in (item.batches() if isinstance(item, FetchedRun) else [item])]
    return [record[0] for batch in batches for record in walk(batch, start, end)]


class PolledLog:
    """A consumer with kafka-python's own fetcher and positions, and prepared responses.

    Attributes:
        refusals: Number of requests for the log's end that find no broker.
    """

    def __init__(self, end: int, responses: Sequence[bytes], items_per_poll: int) -> None:
        self.refusals = 0
        self._end = end
        self._responses = deque(responses)
        self._subscription = SubscriptionState("none")
        self._fetcher = SimpleNamespace(
            _append=lambda *arguments: Fetcher._append(self._fetcher, *arguments),
            _completed_fetches=deque(),
            _next_in_line_exception_metadata=None,
            _next_partition_records=None,
            _parse_fetched_data=lambda fetched: part_of(fetched.data, fetched.fetched_offset),
            _paused_completed_fetches={},
            _paused_partition_records={},
            _sensors=None,
            _subscriptions=self._subscription,
            config={"max_poll_records": items_per_poll},
        )

    def beginning_offsets(self, places: list[TopicPartition], timeout_ms: int) -> dict[TopicPartition, int]:  # noqa: ARG002
        return dict.fromkeys(places, 0)

    def end_offsets(self, places: list[TopicPartition], timeout_ms: int) -> dict[TopicPartition, int]:  # noqa: ARG002
        if self.refusals:
            self.refusals -= 1
            raise KafkaConnectionError
        return dict.fromkeys(places, self._end)

    def unsubscribe(self) -> None:
        self._subscription.unsubscribe()

    def assign(self, places: list[TopicPartition]) -> None:
        self._subscription.assign_from_user(places)

    def seek(self, place: TopicPartition, offset: int) -> None:
        self._subscription.seek(place, offset)

    def pause(self, place: TopicPartition) -> None:
        self._subscription.pause(place)

    def poll(self, timeout_ms: int) -> dict[TopicPartition, list[Any]]:  # noqa: ARG002
        # Like the fetcher: the next response is requested when the previous one is used up.
        if not self._fetcher._next_partition_records and self._responses:
            offset = self._subscription.position(PLACE).offset
            fetched = SimpleNamespace(topic_partition=PLACE, fetched_offset=offset, data=self._responses.popleft())
            self._fetcher._completed_fetches.append(fetched)
        return Fetcher.fetched_records(self._fetcher)[0]  # type: ignore[no-any-return]


def read(end: int, responses: Sequence[bytes], items_per_poll: int) -> list[FetchedRun | FetchedBatch | Missing | Gone]:
    reader = RangeReader(PolledLog(end, responses, items_per_poll), patience_s=1.0, settle_s=0.0)
    return [item for _, item in reader.read_runs([OffsetRange(PLACE.topic, 0, 0, end)])]


@pytest.fixture(params=[0, whole_batches._FEW_BYTES], ids=["runs", "one by one"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_batches, "_FEW_BYTES", request.param)


@pytest.mark.usefixtures("_way")
def test_what_compaction_has_taken_out_is_told_before_what_is_behind_it() -> None:
    def missing(*batches: bytes) -> list[tuple[int, int]]:
        items = list(part_of(b"".join(batches)).take())
        told = [item for item in items if isinstance(item, Missing)]
        for at, item in enumerate(items):
            assert not isinstance(item, Missing) or all(before.offset < item.first for before in items[:at])
        return [(min(m.first for m in told), max(m.last for m in told))] if told else []

    assert missing(log_batch(0, 3), log_batch(3, 1, control=True), log_batch(4, 2)) == []
    assert missing(log_batch(5, 3)) == [(0, 4)]
    assert missing(log_batch(0, 3), log_batch(7, 1)) == [(3, 6)]
    assert missing(log_batch(0, 3), log_batch(3, 4, left=2), log_batch(7, 1)) == [(3, 6)]
    assert missing(log_batch(0, 3), log_batch(4, 1), log_batch(5, 3), log_batch(9, 2, left=1)) == [(3, 10)]


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("items_per_poll", [1, 2, 100])
def test_a_poll_that_ends_between_a_hole_and_the_records_over_which_it_lies_loses_none(items_per_poll: int) -> None:
    responses = [
        b"".join([log_batch(0, 3), log_batch(3, 4, left=2), log_batch(7, 2)]),
        b"".join([log_batch(12, 3, left=1), log_batch(15, 1, control=True), log_batch(16, 2, left=1)]),
    ]
    items = read(18, responses, items_per_poll)
    assert walked(items) == [0, 1, 2, 3, 4, 7, 8, 12, 16]
    told = {offset for item in items if isinstance(item, Missing) for offset in range(item.first, item.last + 1)}
    assert told >= {5, 6, *range(9, 12), 13, 14, 17}


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("items_per_poll", [1, 100])
def test_responses_of_nothing_but_holes_are_progress(items_per_poll: int) -> None:
    emptied = [log_batch(at, 2, left=0) for at in (0, 4)]
    markers = [log_batch(at, 1, left=0, control=True) for at in (8, 10)]
    # The last response begins after the range: its records are not needed, but it shows that the range is complete.
    items = read(12, [b"".join(emptied), b"".join(markers), log_batch(14, 1)], items_per_poll)
    assert [item for item in items if isinstance(item, Gone)] == []
    assert walked(items, 0, 12) == []
    missing = [item for item in items if isinstance(item, Missing)]
    assert (min(item.first for item in missing), max(item.last for item in missing)) == (0, 11)


@pytest.mark.parametrize("refusals", [0, 2])
def test_a_range_with_an_open_end_reaches_to_the_end_that_the_brokers_tell_once_they_are_there(refusals: int) -> None:
    log = PolledLog(5, [log_batch(0, 3), log_batch(3, 2)], 100)
    log.refusals = refusals
    reader = RangeReader(log, patience_s=5.0, settle_s=0.0)
    items = list(reader.read_runs([OffsetRange(PLACE.topic, 0, 1, TO_THE_END)]))
    assert {(where.start, where.end) for where, _ in items} == {(1, 5)}
    assert walked([item for _, item in items], 1, 5) == [1, 2, 3, 4]
    assert list(reader.read_runs([OffsetRange(PLACE.topic, 0, 5, TO_THE_END)])) == []


def test_a_control_batch_that_compaction_emptied_is_no_abort_marker() -> None:
    def batch(offset: int, *, count: int = 1) -> bytearray:
        builder = MemoryRecordsBuilder(
            2, 0, 4096, offset, transactional=True, producer_id=5, producer_epoch=0, base_sequence=0
        )
        for _ in range(count):
            builder.append(1, b"k", b"v")
        builder.close()
        return bytearray(builder.buffer())

    emptied = batch(10)
    emptied[21:23] = (0x30).to_bytes(2, "big")  # attributes: transactional, control
    emptied[57:61] = (0).to_bytes(4, "big")  # no records
    del emptied[61:]
    emptied[8:12] = (len(emptied) - 12).to_bytes(4, "big")
    data = bytes(batch(0, count=2) + emptied + batch(20))
    assert walked(part_of(data, aborted=[(5, 0)]).take()) == []
    assert walked(part_of(data).take()) == [0, 1, 20]
