"""Fetch responses in memory: our class extracts the same as kafka-python's own class."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher, IsolationLevel, OffsetSpec
from kafka.errors import CorruptRecordError, KafkaError
from kafka.record import MemoryRecords
from kafka.record.memory_records import MemoryRecordsBuilder
from kafka.structs import OffsetAndTimestamp

from streaming.record_batches import FetchedRun, Missing, Record, ask_offsets, take_whole_batches, walk, whole_batches

PARTITION = TopicPartition("t", 0)
OURS = take_whole_batches(SimpleNamespace(_fetcher=SimpleNamespace()))._fetcher.PartitionRecords


@pytest.fixture(autouse=True, params=[0, 2**30], ids=["as runs", "batch by batch"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_batches, "_FEW_BYTES", request.param)


def batch(offset: int, count: int, *, producer: int = -1, transactional: bool = False) -> bytes:
    given: dict[str, Any] = {"transactional": transactional}
    if producer >= 0:
        given |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
    builder = MemoryRecordsBuilder(2, 0, 1 << 20, 0, **given)
    for number in range(count):
        builder.append(1_000 + number, b"k%d" % number, b"v" * (number % 3))
    builder.close()
    data = bytes(builder.buffer())
    return struct.pack(">q", offset) + data[8:12] + struct.pack(">i", 7 + offset % 2) + data[16:]


def marker(offset: int, producer: int, *, commit: bool) -> bytes:
    given = {"transactional": True, "producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
    builder = MemoryRecordsBuilder(2, 0, 4096, 0, **given)
    builder.append(1, struct.pack(">hh", 0, int(commit)), bytes(6))
    builder.close()
    data = bytearray(builder.buffer())
    data[:8] = struct.pack(">q", offset)
    data[22] |= 0x20  # attributes: control
    return bytes(data)


def response(random: Random) -> tuple[bytes, list[Any], int]:
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
                aborted.append(SimpleNamespace(producer_id=producer, first_offset=begun[producer]))
            del begun[producer]
        offset += count + random.choice([0, 0, 3])  # the gap left by compaction
    random.shuffle(aborted)
    return b"".join(found), aborted, offset


def part(kind: Any, data: bytes, aborted: list[Any], level: IsolationLevel, begin: int) -> Any:
    records = MemoryRecords(data)
    return kind(begin, PARTITION, records, check_crcs=False, isolation_level=level, aborted_transactions=aborted)


def flat(items: list[Any], begin: int) -> list[Record]:
    there = [item for item in items if not isinstance(item, Missing)]
    batches = [b for item in there for b in (item.batches() if isinstance(item, FetchedRun) else [item])]
    return [record for b in batches for record in walk(b, begin, 2**62)]


@pytest.mark.parametrize("level", [IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED])
def test_a_response_is_taken_apart_as_the_plain_consumer_does(level: IsolationLevel) -> None:
    random = Random(3)
    left_out = 0
    for _ in range(300):
        data, aborted, end = response(random)
        begin = random.choice([0, random.randrange(end)])
        if random.random() < 0.5:
            data = data[: random.randrange(len(data))]
        ours = part(OURS, data, aborted, level, begin)
        kafkas = part(Fetcher.PartitionRecords, data, aborted, level, begin)
        expected = [(r.offset, r.timestamp, r.key, r.value) for r in kafkas.take()]
        assert flat(ours.take(), begin) == expected
        assert ours.leader_epoch == kafkas.leader_epoch
        # The last batch of a compacted log may extend beyond its last record; kafka-python's class read it to the end.
        assert ours.next_fetch_offset == kafkas.next_fetch_offset
        assert not ours
        left_out += level == IsolationLevel.READ_COMMITTED and bool(aborted)
    assert left_out > 50 or level == IsolationLevel.READ_UNCOMMITTED


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_of_an_older_format_is_a_batch_that_cannot_be_taken_apart(magic: int) -> None:
    builder = MemoryRecordsBuilder(magic, 0, 1 << 20, 12)
    builder.append(1_000, b"k", b"v")
    builder.close()
    before, old, behind = part(
        OURS, batch(10, 2) + bytes(builder.buffer()) + batch(13, 1), [], IsolationLevel.READ_COMMITTED, 10
    ).take()
    assert [record[0] for record in flat([before, behind], 0)] == [10, 11, 13]
    assert (old.base_offset, old.offset) == (12, 12)
    with pytest.raises(CorruptRecordError, match=r"from before Kafka 0\.11"):
        flat([old], 0)


def test_the_batches_before_an_impossible_length_are_given_and_the_part_is_drained() -> None:
    broken = bytearray(batch(12, 1))
    broken[8:12] = struct.pack(">i", 20)
    ours = part(OURS, batch(10, 2) + bytes(broken), [], IsolationLevel.READ_COMMITTED, 10)
    assert [record[0] for record in flat(ours.take(), 0)] == [10, 11]
    # If it were not exhausted it would be asked again and again, and return nothing.
    assert not ours
    assert ours.next_fetch_offset == 12
    alone = part(OURS, bytes(broken), [], IsolationLevel.READ_COMMITTED, 12)
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
        found: dict[TopicPartition, int] = Fetcher.beginning_or_end_offset(asked, places, OffsetSpec.LATEST)
        return found


def test_an_offset_of_each_partition_is_asked_for_with_the_limit() -> None:
    leaders = Leaders({0: 5, 1: 6, 2: 7})
    assert ask_offsets(leaders.end_offsets, PLACES, 250) == dict(zip(PLACES, (5, 6, 7), strict=True))
    assert leaders.limits == [250]


def test_for_no_partition_nobody_is_asked() -> None:
    leaders = Leaders({})
    assert ask_offsets(leaders.end_offsets, [], 250) == {}
    assert leaders.limits == []


def test_a_partition_without_a_leader_is_named_in_an_error_of_kafkas() -> None:
    with pytest.raises(KafkaError, match=r"partition 1 of evenkeel\.events has no leader at the moment"):
        ask_offsets(Leaders({0: 5, 2: 7}).end_offsets, PLACES, 250)
