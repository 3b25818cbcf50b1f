"""Fetch responses in memory: whole, or with records that compaction removed, divided among polls at any place."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher, IsolationLevel, OffsetSpec
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import CorruptRecordError, KafkaConnectionError, KafkaError
from kafka.record import MemoryRecords
from kafka.record.memory_records import MemoryRecordsBuilder
from kafka.structs import OffsetAndTimestamp

from streaming.record_batches import (
    TO_THE_END,
    FetchedBatch,
    FetchedRun,
    Gone,
    Missing,
    OffsetRange,
    RangeReader,
    Record,
    ask_offsets,
    take_whole_batches,
    walk,
    whole_batches,
)

PARTITION = TopicPartition("t", 0)
OURS = take_whole_batches(SimpleNamespace(_fetcher=SimpleNamespace()))._fetcher.PartitionRecords


@pytest.fixture(params=[0, 2**30], ids=["as runs", "batch by batch"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_batches, "_FEW_BYTES", request.param)


def batch(
    offset: int,
    count: int,
    *,
    left: int | None = None,
    producer: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """A batch of `count` offsets, of which only the first `left` records remain (all when None)."""
    left = count if left is None else left
    given: dict[str, Any] = {"transactional": transactional}
    if producer >= 0:
        given |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
    builder = MemoryRecordsBuilder(2, 0, 1 << 20, 0, **given)
    for number in range(max(1, left)):
        builder.append(1_000 + number, b"k%d" % number, b"v" * (number % 3))
    builder.close()
    data = bytearray(builder.buffer())
    if not left:
        del data[61:]
    data[22] |= 0x20 * control
    data[23:27] = struct.pack(">i", count - 1)  # a batch keeps its last offset
    data[57:61] = struct.pack(">i", left)
    return struct.pack(">qii", offset, len(data) - 12, 7 + offset % 2) + bytes(data[16:])


def marker(offset: int, producer: int, *, commit: bool) -> bytes:
    given = {"transactional": True, "producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
    builder = MemoryRecordsBuilder(2, 0, 4096, 0, **given)
    builder.append(1, struct.pack(">hh", 0, int(commit)), bytes(6))
    builder.close()
    data = bytearray(builder.buffer())
    data[:8] = struct.pack(">q", offset)
    data[22] |= 0x20  # attributes: control
    return bytes(data)


def response(random: Random) -> tuple[bytes, list[tuple[int, int]], int]:
    """Batches of three transactional producers and of others; the first transaction began before the response."""
    offset = random.randrange(5)
    found: list[bytes] = []
    begun: dict[int, int] = {5: 0}
    aborted = []
    for _ in range(random.randint(1, 40)):
        count = random.choice([1, 1, 2, 5])
        what = random.random()
        producer = random.choice([5, 6, 7])
        if what < 0.3:
            found.append(batch(offset, count, producer=random.choice([-1, 8])))
        elif what < 0.7 or producer not in begun:
            begun.setdefault(producer, offset)
            found.append(batch(offset, count, producer=producer, transactional=True))
        else:
            count, commit = 1, random.random() < 0.5
            found.append(marker(offset, producer, commit=commit))
            if not commit:
                aborted.append((producer, begun[producer]))
            del begun[producer]
        offset += count + random.choice([0, 0, 3])  # the gap left by compaction
    random.shuffle(aborted)
    return b"".join(found), aborted, offset


def part(
    data: bytes,
    begin: int = 0,
    aborted: Sequence[tuple[int, int]] = (),
    *,
    level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    kind: Any = OURS,
) -> Any:
    """A partition's part of a fetch response, with producers and first offsets of transactions that were aborted."""
    transactions = [SimpleNamespace(producer_id=producer, first_offset=first) for producer, first in aborted]
    records = MemoryRecords(data)
    return kind(begin, PARTITION, records, check_crcs=False, isolation_level=level, aborted_transactions=transactions)


def flat(items: Iterable[Any], begin: int = 0, end: int = 2**62) -> list[Record]:
    there = [item for item in items if not isinstance(item, Missing)]
    batches = [b for item in there for b in (item.batches() if isinstance(item, FetchedRun) else [item])]
    return [record for b in batches for record in walk(b, begin, end)]


def walked(items: Iterable[Any], begin: int = 0, end: int = 2**62) -> list[int]:
    return [record[0] for record in flat(items, begin, end)]


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("level", [IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED])
def test_a_response_is_taken_apart_as_the_plain_consumer_does(level: IsolationLevel) -> None:
    random = Random(3)
    left_out = 0
    for _ in range(300):
        data, aborted, end = response(random)
        begin = random.choice([0, random.randrange(end)])
        if random.random() < 0.5:
            data = data[: random.randrange(len(data))]
        ours = part(data, begin, aborted, level=level)
        kafkas = part(data, begin, aborted, level=level, kind=Fetcher.PartitionRecords)
        expected = [(r.offset, r.timestamp, r.key, r.value) for r in kafkas.take()]
        assert flat(ours.take(), begin) == expected
        assert ours.leader_epoch == kafkas.leader_epoch
        # The last batch of a compacted log may extend beyond its last record; kafka-python's class read it to the end.
        assert ours.next_fetch_offset == kafkas.next_fetch_offset
        assert not ours
        left_out += level == IsolationLevel.READ_COMMITTED and bool(aborted)
    assert left_out > 50 or level == IsolationLevel.READ_UNCOMMITTED


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_of_an_older_format_is_a_batch_that_cannot_be_taken_apart(magic: int) -> None:
    builder = MemoryRecordsBuilder(magic, 0, 1 << 20, 12)
    builder.append(1_000, b"k", b"v")
    builder.close()
    before, old, behind = part(batch(10, 2) + bytes(builder.buffer()) + batch(13, 1), 10).take()
    assert walked([before, behind]) == [10, 11, 13]
    assert (old.base_offset, old.offset) == (12, 12)
    with pytest.raises(CorruptRecordError, match=r"from before Kafka 0\.11"):
        flat([old])


@pytest.mark.usefixtures("either_way")
def test_the_batches_before_an_impossible_length_are_given_and_the_part_is_drained() -> None:
    broken = bytearray(batch(12, 1))
    broken[8:12] = struct.pack(">i", 20)
    ours = part(batch(10, 2) + bytes(broken), 10)
    assert walked(ours.take()) == [10, 11]
    # If it were not exhausted it would be asked again and again, and return nothing.
    assert not ours
    assert ours.next_fetch_offset == 12
    alone = part(bytes(broken), 12)
    with pytest.raises(CorruptRecordError, match="the record batch of t-0 from offset 12 on has an impossible length"):
        alone.take()
    assert not alone


PLACES = [TopicPartition("evenkeel.events", partition) for partition in range(3)]


class Leaders:
    """kafka-python's own question for ends, with the answers of the leaders that there are."""

    def __init__(self, ends: Mapping[int, int]) -> None:
        self._ends = ends
        self.limits: list[int] = []

    def end_offsets(self, places: Sequence[TopicPartition], timeout_ms: int) -> dict[TopicPartition, int]:
        self.limits.append(timeout_ms)
        answers = {PLACES[partition]: OffsetAndTimestamp(end, -1, -1) for partition, end in self._ends.items()}
        asked = SimpleNamespace(_net=SimpleNamespace(run=lambda *_: answers), _fetch_offsets_by_times_async=None)
        return Fetcher.beginning_or_end_offset(asked, places, OffsetSpec.LATEST)


@pytest.mark.usefixtures("either_way")
def test_an_offset_of_each_partition_is_asked_for_with_the_limit() -> None:
    leaders = Leaders({0: 5, 1: 6, 2: 7})
    assert ask_offsets(leaders.end_offsets, PLACES, 250) == dict(zip(PLACES, (5, 6, 7), strict=True))
    assert leaders.limits == [250]


@pytest.mark.usefixtures("either_way")
def test_for_no_partition_nobody_is_asked() -> None:
    leaders = Leaders({})
    assert ask_offsets(leaders.end_offsets, [], 250) == {}
    assert leaders.limits == []


@pytest.mark.usefixtures("either_way")
def test_a_partition_without_a_leader_is_named_in_an_error_of_kafkas() -> None:
    with pytest.raises(KafkaError, match=r"partition 1 of evenkeel\.events has no leader at the moment"):
        ask_offsets(Leaders({0: 5, 2: 7}).end_offsets, PLACES, 250)


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
            _parse_fetched_data=lambda fetched: part(fetched.data, fetched.fetched_offset),
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
            offset = self._subscription.position(PARTITION).offset
            fetched = SimpleNamespace(topic_partition=PARTITION, fetched_offset=offset, data=self._responses.popleft())
            self._fetcher._completed_fetches.append(fetched)
        return Fetcher.fetched_records(self._fetcher)[0]  # type: ignore[no-any-return]


def read(end: int, responses: Sequence[bytes], items_per_poll: int) -> list[FetchedRun | FetchedBatch | Missing | Gone]:
    reader = RangeReader(PolledLog(end, responses, items_per_poll), patience_s=1.0, settle_s=0.0)
    return [item for _, item in reader.read_runs([OffsetRange(PARTITION.topic, 0, 0, end)])]


@pytest.mark.usefixtures("either_way")
def test_what_compaction_has_taken_out_is_told_before_what_is_behind_it() -> None:
    def missing(*batches: bytes) -> list[tuple[int, int]]:
        items = list(part(b"".join(batches)).take())
        told = [item for item in items if isinstance(item, Missing)]
        for at, item in enumerate(items):
            assert not isinstance(item, Missing) or all(before.offset < item.first for before in items[:at])
        return [(min(m.first for m in told), max(m.last for m in told))] if told else []

    assert missing(batch(0, 3), batch(3, 1, control=True), batch(4, 2)) == []
    assert missing(batch(5, 3)) == [(0, 4)]
    assert missing(batch(0, 3), batch(7, 1)) == [(3, 6)]
    assert missing(batch(0, 3), batch(3, 4, left=2), batch(7, 1)) == [(3, 6)]
    assert missing(batch(0, 3), batch(4, 1), batch(5, 3), batch(9, 2, left=1)) == [(3, 10)]


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("items_per_poll", [1, 2, 100])
def test_a_poll_that_ends_between_a_hole_and_the_records_over_which_it_lies_loses_none(items_per_poll: int) -> None:
    responses = [
        b"".join([batch(0, 3), batch(3, 4, left=2), batch(7, 2)]),
        b"".join([batch(12, 3, left=1), batch(15, 1, control=True), batch(16, 2, left=1)]),
    ]
    items = read(18, responses, items_per_poll)
    assert walked(items) == [0, 1, 2, 3, 4, 7, 8, 12, 16]
    told = {offset for item in items if isinstance(item, Missing) for offset in range(item.first, item.last + 1)}
    assert told >= {5, 6, *range(9, 12), 13, 14, 17}


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("items_per_poll", [1, 100])
def test_responses_of_nothing_but_holes_are_progress(items_per_poll: int) -> None:
    emptied = [batch(at, 2, left=0) for at in (0, 4)]
    markers = [batch(at, 1, left=0, control=True) for at in (8, 10)]
    # The last response begins after the range: its records are not needed, but it shows that the range is complete.
    items = read(12, [b"".join(emptied), b"".join(markers), batch(14, 1)], items_per_poll)
    assert [item for item in items if isinstance(item, Gone)] == []
    assert walked(items, 0, 12) == []
    missing = [item for item in items if isinstance(item, Missing)]
    assert (min(item.first for item in missing), max(item.last for item in missing)) == (0, 11)


@pytest.mark.parametrize("refusals", [0, 2])
def test_a_range_with_an_open_end_reaches_to_the_end_that_the_brokers_tell_once_they_are_there(refusals: int) -> None:
    log = PolledLog(5, [batch(0, 3), batch(3, 2)], 100)
    log.refusals = refusals
    reader = RangeReader(log, patience_s=5.0, settle_s=0.0)
    items = list(reader.read_runs([OffsetRange(PARTITION.topic, 0, 1, TO_THE_END)]))
    assert {(where.start, where.end) for where, _ in items} == {(1, 5)}
    assert walked([item for _, item in items], 1, 5) == [1, 2, 3, 4]
    assert list(reader.read_runs([OffsetRange(PARTITION.topic, 0, 5, TO_THE_END)])) == []


def test_a_control_batch_that_compaction_emptied_is_no_abort_marker() -> None:
    of_five: dict[str, Any] = {"producer": 5, "transactional": True}
    emptied = batch(10, 1, left=0, control=True, **of_five)
    data = batch(0, 2, **of_five) + emptied + batch(20, 1, **of_five)
    assert walked(part(data, aborted=[(5, 0)]).take()) == []
    assert walked(part(data).take()) == [0, 1, 20]
