"""Many batches at once give the same as each alone, record by record and error by error, whatever their bytes."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

import numpy as np
import pytest
from kafka.errors import KafkaError

from streaming.offsets_log import RecordColumns
from streaming.record_batches import FetchedBatch, FetchedRun, Record, columnar_records, epochs_of, walk
from streaming.record_batches.batches import chased, run_of
from streaming.record_batches.columnar_records import record_columns
from tests.examples import examples
from tests.record_batches.encoded import CODECS, Written, encoded

Told = Record | str


def run(batches: list[bytes]) -> FetchedRun:
    data = memoryview(b"".join(batches))
    places, sound = chased(data)
    assert sound
    assert len(places) == len(batches) + 1
    return run_of(data, np.array(places, np.int64))


def test_batches_of_a_run_have_their_offsets_and_epochs_and_so_has_each_by_itself() -> None:
    batch = encoded([(0, 1_000, b"k", b"v", [])], 0)
    first, second = (
        at_offset(batch, offset)[:12] + struct.pack(">i", epoch) + batch[16:] for offset, epoch in ((4, 7), (9, 8))
    )
    fetched = run([first, second])
    assert [column.tolist() for column in epochs_of(fetched)] == [[4, 9], [7, 8]]
    assert [[column.tolist() for column in epochs_of(one)] for one in fetched.batches()] == [[[4], [7]], [[9], [8]]]
    assert [column.tolist() for column in epochs_of(FetchedBatch(4, 4, 0, []))] == [[], []]


def at_offset(batch: bytes, offset: int) -> bytes:
    return struct.pack(">q", offset) + batch[8:]


def plainly(batch: FetchedBatch, start: int, end: int) -> list[Told]:
    told: list[Told] = []
    try:
        told.extend(walk(batch, start, end))
    except KafkaError as error:
        told.append(f"{type(error).__name__}: {error}")
    return told


def rows(columns: RecordColumns) -> list[Told]:
    return [
        (int(columns.offset[row]), int(columns.timestamp[row]), columns.key(row), columns.value(row))
        for row in range(len(columns))
    ]


def both_ways(fetched: FetchedRun, start: int, end: int) -> tuple[list[Told], list[Told], int]:
    """The results of `record_columns` and of `walk` for each batch, and the number of batches left to `walk`."""
    found: list[Told] = []
    left = 0
    for piece in record_columns(fetched, start, end):
        if isinstance(piece, RecordColumns):
            found.extend(rows(piece))
        else:
            left += 1
            found.extend(plainly(piece, start, end))
    expected = [record for batch in fetched.batches() for record in plainly(batch, start, end)]
    return found, expected, left


@pytest.fixture(autouse=True, params=["all batches at once", "batch by batch"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columnar_records, "_FEW_RECORDS", 0)
    monkeypatch.setattr(columnar_records, "_FEW_BATCHES", 1 if request.param == "all batches at once" else 1_000)


def blob(random: Random) -> bytes | None:
    return None if random.random() < 0.1 else random.randbytes(random.choice([0, 3, 30, 63, 64, 130, 9_000]))


def batches(random: Random) -> list[bytes]:
    """Consecutive batches with any codec, with gaps between their offsets, and between those of their records."""
    found = []
    offset = 0
    for _ in range(random.randint(1, 6)):
        records: list[Written] = []
        delta = random.choice([0, 0, 3])
        for _ in range(random.choice([1, 2, 9])):
            headers = [("h", blob(random))] if random.random() < 0.1 else []
            time = random.choice([5, 60, 100, 20_000, 2**41, 2**45])
            records.append((delta, time, blob(random), blob(random), headers))
            delta += random.choice([1, 1, 2, 70, 10_000])
        offset += random.choice([0, 0, 50])
        found.append(at_offset(encoded(records, random.choice([0, *CODECS])), offset))
        offset += delta
    return found


@pytest.mark.parametrize("seed", range(4))
def test_sound_batches_of_any_codec_are_taken_as_columns(seed: int) -> None:
    random = Random(seed)
    for _ in range(examples(150)):
        found, expected, left = both_ways(run(batches(random)), 0, 2**62)
        assert found == expected
        assert left == 0


def test_both_ends_are_trimmed() -> None:
    random = Random(5)
    for _ in range(200):
        start, end = random.randint(-5, 300), random.randint(-5, 3_000)
        found, expected, _ = both_ways(run(batches(random)), start, end)
        assert found == expected


def broken(batch: bytearray, random: Random) -> bytes:
    for _ in range(random.choice([0, 1, 1, 3])):
        # Everything in the header except magic and the fields that lead to the next batch.
        at = random.choice(
            [random.randrange(23, 61), random.randrange(61, len(batch)), random.randrange(61, min(len(batch), 80))]
        )
        batch[at] = random.choice([0, 1, 2, 0x7E, 0x7F, 0x80, 0xFF, random.randrange(256), batch[at] ^ 1])
    if random.random() < 0.2:
        del batch[random.randrange(61, len(batch) + 1) :]
        batch[8:12] = struct.pack(">i", len(batch) - 12)
    if random.random() < 0.1:
        batch[22] = random.randrange(16)
    return bytes(batch)


def broken_batches_both_ways(seed: int, runs: int) -> None:
    random = Random(seed)
    errors = columns = 0
    for _ in range(runs):
        some = [broken(bytearray(batch), random) for batch in batches(random)]
        start, end = random.choice([(0, 2**62), (0, 2**62), (random.randrange(200), random.randrange(2_000))])
        fetched = run(some)
        found, expected, left = both_ways(fetched, start, end)
        assert found == expected
        errors += sum(isinstance(told, str) for told in expected)
        columns += len(fetched) - left
    # Both must occur, or the test would prove nothing.
    assert errors > 0.3 * runs
    assert columns > 0.3 * runs


def test_broken_batches_give_the_same_records_and_errors() -> None:
    broken_batches_both_ways(20_261_121, 200)


@pytest.mark.soak
@pytest.mark.turn(2)
@pytest.mark.parametrize("seed", range(20))
def test_many_broken_batches_give_the_same_records_and_errors(seed: int) -> None:
    broken_batches_both_ways(seed, 500)


def test_one_broken_batch_leaves_its_neighbours_to_the_columns() -> None:
    sound = encoded([(0, 5, b"k", b"v", []), (1, 6, b"k", b"w", [])], 0)
    bad = bytearray(at_offset(sound, 2))
    bad[61] = 0x7E
    found, expected, left = both_ways(run([sound, bytes(bad), at_offset(sound, 4)]), 0, 10)
    assert (found, left) == (expected, 1)
    assert [told if isinstance(told, str) else told[0] for told in found] == [
        0,
        1,
        "CorruptRecordError: [Error 2] CorruptRecordError: the record at offset 2 does not fit its length",
        4,
        5,
    ]


@pytest.mark.parametrize("count", [-1, 0, 2, 2**31 - 1])
def test_a_wrong_number_of_records_is_told_and_costs_no_memory(count: int) -> None:
    batch = bytearray(encoded([(0, 10, b"k", b"v", [])], 0))
    batch[57:61] = struct.pack(">i", count)
    found, expected, left = both_ways(run([bytes(batch), at_offset(bytes(batch), 1)]), 0, 10)
    assert (found, left) == (expected, 2)


def test_append_time_is_the_batchs_for_all_its_records() -> None:
    batch = bytearray(encoded([(0, 10, b"k", b"v", []), (1, 50, b"k", b"v", [])], 0))
    batch[22] |= 0x08  # attributes: LogAppendTime
    found, _, left = both_ways(run([bytes(batch)]), 0, 10)
    assert [told[1] for told in found] == [50, 50]
    assert left == 0


@pytest.mark.parametrize("codec", CODECS)
def test_much_is_walked_in_parts(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columnar_records, "_RECORDS_AT_ONCE", 7)
    monkeypatch.setattr(columnar_records, "_BYTES_AT_ONCE", 200)
    records: list[Any] = [(delta, 7, b"key", b"v" * delta, []) for delta in range(12)]
    some = [at_offset(encoded(records[: 1 + n % 12], codec), 100 * n) for n in range(40)]
    found, expected, left = both_ways(run(some), 0, 10_000)
    assert (found, left) == (expected, 0)


def test_a_response_may_end_inside_a_batch() -> None:
    batch = encoded([(0, 1, b"a", b"b", [])], 0)
    for cut in range(len(batch)):
        assert chased(memoryview(batch + batch[:cut])) == ([0, len(batch)], True)


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13, 14, 48])
def test_a_length_that_cannot_be_ends_a_response(length: int) -> None:
    batch = encoded([(0, 1, b"a", b"b", [])], 0)
    broken = bytearray(batch)
    broken[8:12] = struct.pack(">i", length)
    assert chased(memoryview(batch + broken)) == ([0, len(batch)], False)
