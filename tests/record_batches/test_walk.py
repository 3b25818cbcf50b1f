from __future__ import annotations

import io
from collections.abc import Callable
from random import Random

import pytest
import snappy
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode
from kafka.errors import CorruptRecordError, KafkaError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch

from streaming.record_batches import FetchedBatch, Record, decompressed, walk
from tests.examples import examples
from tests.record_batches.encoded import CODECS, Written, encoded, forged, varint


def ours(data: bytes, start: int = 0, end: int = 2**63) -> list[Record]:
    batch = DefaultRecordBatch(data)
    return list(walk(FetchedBatch(batch.base_offset, batch.last_offset, batch.max_timestamp, batch), start, end))


def kafkas(data: bytes) -> list[Record]:
    return [(r.offset, r.timestamp, r.key, r.value) for r in DefaultRecordBatch(data)]


def by_the_kip(data: bytes) -> list[Record]:
    """The same, parsed according to KIP-98: there a record's attributes are a byte, in kafka-python a varint."""
    batch = DefaultRecordBatch(data)
    batch._maybe_uncompress()
    rest = io.BytesIO(bytes(batch._buffer[batch._pos :]))

    def varint() -> int:
        value = shift = 0
        while True:
            (byte,) = rest.read(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)

    records = []
    for _ in range(batch.records_count):
        length = varint()
        after = rest.tell() + length
        rest.read(1)
        time, offset = batch.first_timestamp + varint(), batch.base_offset + varint()
        key, value = (rest.read(size) if (size := varint()) >= 0 else None for _ in range(2))
        records.append((offset, time, key, value))
        rest.seek(after)
    return records


@st.composite
def written(draw: st.DrawFn) -> list[Written]:
    records: list[Written] = []
    delta = 0
    for _ in range(draw(st.integers(1, 12))):
        blob = st.none() | st.binary(max_size=300)
        headers = draw(st.lists(st.tuples(st.text(max_size=5), blob), max_size=2))
        records.append((delta, draw(st.integers(0, 2**45)), draw(blob), draw(blob), headers))
        delta += draw(st.integers(1, 200))
    return records


@given(written(), st.sampled_from(CODECS))
def test_records_equal_those_of_kafka_pythons_classes(records: list[Written], codec: int) -> None:
    data = encoded(records, codec)
    assert ours(data) == kafkas(data)


@given(written(), st.integers(-5, 1_000), st.integers(-5, 1_000))
def test_both_ends_are_trimmed(records: list[Written], start: int, end: int) -> None:
    data = encoded(records, 0)
    assert ours(data, start, end) == [record for record in kafkas(data) if start <= record[0] < end]


def test_append_time_is_the_batchs_for_all_its_records() -> None:
    data = bytearray(encoded([(0, 10, b"k", b"v", []), (1, 50, b"k", b"v", [])], 0))
    data[22] |= 0x08  # attributes: LogAppendTime
    assert [record[1] for record in ours(bytes(data))] == [50, 50]


@settings(max_examples=examples(300))
@given(written(), st.sampled_from(CODECS), st.randoms(use_true_random=False))
def test_broken_bytes_raise_nothing_but_kafkas_errors(records: list[Written], codec: int, random: Random) -> None:
    data = bytearray(encoded(records, codec))
    for _ in range(random.randint(1, 4)):
        data[random.randrange(61, len(data))] = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)])
    try:
        found = ours(bytes(data))
    except KafkaError:
        return
    # Our code skips headers and kafka-python parses them: only there may one accept what the other refuses.
    try:
        theirs = kafkas(bytes(data))
    except (KafkaError, UnicodeDecodeError):
        assert len(found) == len(records)
    else:
        assert found in (theirs, by_the_kip(bytes(data)))


@pytest.mark.parametrize("count", [0, 2, 2**31 - 1])
def test_a_wrong_number_of_records_is_corruption(count: int) -> None:
    data = bytearray(encoded([(0, 10, b"k", b"v", [])], 0))
    data[57:61] = count.to_bytes(4, "big")
    with pytest.raises(CorruptRecordError):
        ours(bytes(data))


def test_a_batch_cut_from_a_response_is_walked_like_any_other() -> None:
    data = encoded([(0, 1, b"a", b"b", [])], 0)
    batch = MemoryRecords(data + data[:20]).next_batch()
    assert list(walk(FetchedBatch(0, 0, 1, batch), 0, 1)) == [(0, 1, b"a", b"b")]


def at_offsets(*deltas: int, last: int) -> bytes:
    return forged(
        [(varint(0), varint(delta), b"k", b"%d" % delta) for delta in deltas], base_offset=40, last_delta=last
    )


@pytest.mark.parametrize("deltas", [(0, 2**31 - 1, 2), (0, 3), (-1, 2), (-(2**31), 2), (1, 1), (1, 0), (2, 1, 2)])
@pytest.mark.parametrize(("start", "end"), [(0, 100), (40, 41), (41, 43), (42, 43)])
def test_a_record_outside_its_place_refuses_the_whole_batch_wherever_it_is_cut(
    deltas: tuple[int, ...], start: int, end: int
) -> None:
    data = at_offsets(*deltas, last=2)
    batch = DefaultRecordBatch(data)
    records = walk(FetchedBatch(40, 42, 0, batch), start, end)
    with pytest.raises(CorruptRecordError, match="out of order or beyond the batch"):
        next(records)


def test_compaction_leaves_gaps_between_offsets_and_at_both_ends() -> None:
    assert [offset for offset, *_ in ours(at_offsets(1, 4, 7, last=9))] == [41, 44, 47]


def test_no_record_comes_out_of_a_batch_that_is_broken_further_on() -> None:
    data = encoded([(delta, 5, b"k", b"v", []) for delta in range(3)], 0)
    batch = DefaultRecordBatch(data[:-1])
    with pytest.raises(CorruptRecordError):
        next(walk(FetchedBatch(0, 2, 5, batch), 0, 3))


# Each codec as brokers and clients write it; whatever cannot be decompressed is one kind of error.


GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4

Packs = Callable[[bytes], bytes]


def streamed_zstd(data: bytes) -> bytes:
    """Compress like Java: the frame does not contain its size."""
    stream = zstandard.ZstdCompressor().compressobj()
    return bytes(stream.compress(data) + stream.flush())


def raw_snappy(data: bytes) -> bytes:
    return bytes(snappy.compress(data))


WRITERS: list[tuple[int, Packs]] = [
    (GZIP, gzip_encode),
    (SNAPPY, snappy_encode),
    (SNAPPY, raw_snappy),
    (LZ4, lz4_encode),
    (ZSTD, zstd_encode),
    (ZSTD, streamed_zstd),
]


@given(st.binary(min_size=1, max_size=3_000), st.sampled_from([1, 300, 3_000]), st.sampled_from(WRITERS))
def test_what_was_compressed_comes_back(piece: bytes, times: int, writer: tuple[int, Packs]) -> None:
    codec, packs = writer
    assert bytes(decompressed(codec, memoryview(packs(piece * times)))) == piece * times


@pytest.mark.parametrize(("codec", "packs"), [(GZIP, gzip_encode), (ZSTD, zstd_encode), (ZSTD, streamed_zstd)])
def test_several_members_and_frames_are_read_one_after_the_other(codec: int, packs: Packs) -> None:
    assert bytes(decompressed(codec, memoryview(packs(b"one ") + packs(b"two")))) == b"one two"


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_corruption(codec: int) -> None:
    with pytest.raises(CorruptRecordError, match=f"there is no codec {codec}"):
        decompressed(codec, memoryview(b"anything"))


@pytest.mark.parametrize(("codec", "packs"), WRITERS)
@given(st.binary(max_size=60), st.integers(0, 2**32))
def test_broken_bytes_are_corruption_and_nothing_else(codec: int, packs: Packs, junk: bytes, place: int) -> None:
    body = packs(b"some bytes that come twice, some bytes that come twice")
    at = place % len(body)
    for broken in (body[:at], body[:at] + junk + body[at + len(junk) :], junk):
        try:
            decompressed(codec, memoryview(broken))
        except CorruptRecordError:
            continue
