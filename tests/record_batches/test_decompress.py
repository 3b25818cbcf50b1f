"""Each codec's output and errors, and limits on memory: never more than requested."""

from __future__ import annotations

import gzip
import random
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from kafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder
from lz4 import frame

from streaming.record_batches import MAX_CLEAR_BYTES, FetchedBatch, decompress, decompressed, walk

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
NAMES = {GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}

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


@given(st.binary(max_size=3_000), st.integers(1, 300), st.sampled_from(WRITERS))
def test_what_was_compressed_comes_back(piece: bytes, times: int, writer: tuple[int, Packs]) -> None:
    codec, packs = writer
    assert bytes(decompressed(codec, memoryview(packs(piece * times)))) == piece * times


def test_nothing_is_what_it_is() -> None:
    assert bytes(decompressed(0, memoryview(b"as it stands"))) == b"as it stands"


@pytest.mark.parametrize(("codec", "packs"), [(GZIP, gzip_encode), (ZSTD, zstd_encode), (ZSTD, streamed_zstd)])
def test_several_members_and_frames_are_read_one_after_the_other(codec: int, packs: Packs) -> None:
    assert bytes(decompressed(codec, memoryview(packs(b"one ") + packs(b"two")))) == b"one two"


Members = list[tuple[bytes, int]]
"""The content of each member of gzip, and how many zeros follow it."""


@contextmanager
def sliced(size: int) -> Iterator[None]:
    """Input is given, and output of gzip is requested, in so many bytes at once."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(decompress, "_SLICE", size)
        patched.setattr(decompress, "_GZIP_PIECE", size)
        yield


MEMBERS: st.SearchStrategy[Members] = st.lists(
    st.tuples(st.binary(max_size=200), st.integers(0, 40)), min_size=1, max_size=5
)


@given(MEMBERS, st.sampled_from([1, 7, 20, 64, 1_000]))
def test_padded_members_give_what_pythons_own_reader_gives_wherever_a_slice_ends(members: Members, slice_: int) -> None:
    body = b"".join(gzip.compress(data) + bytes(zeros) for data, zeros in members)
    with sliced(slice_):
        assert decompressed(GZIP, memoryview(body)) == gzip.decompress(body)


@pytest.mark.parametrize("codec", [GZIP, LZ4])
@given(st.binary(max_size=2_000), st.sampled_from([1, 7, 20, 64, 1_000]))
def test_data_that_is_cut_short_is_corruption_wherever_a_slice_ends(codec: int, data: bytes, slice_: int) -> None:
    body = gzip.compress(data) if codec == GZIP else frame.compress(data)
    with sliced(slice_):
        assert decompressed(codec, memoryview(body)) == data
        for end in range(1, len(body), 1 + len(body) // 50):
            with pytest.raises(CorruptRecordError, match="its data is truncated"):
                decompressed(codec, memoryview(body[:end]))


def test_zeros_before_the_first_member_are_corruption() -> None:
    with pytest.raises(CorruptRecordError):
        decompressed(GZIP, memoryview(bytes(3) + gzip.compress(b"some bytes")))


class CountedGzip:
    """A stream of zlib's that counts the bytes it is given, and those it gives back because it has not used them."""

    handled = 0

    def __init__(self, wbits: int) -> None:
        self._stream = _decompressobj(wbits)

    def decompress(self, data: memoryview, most: int) -> bytes:
        piece = self._stream.decompress(data, most)
        CountedGzip.handled += len(data) + len(self._stream.unconsumed_tail) + len(self._stream.unused_data)
        return piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class CountedLZ4(frame.LZ4FrameDecompressor):  # type: ignore[misc]  # lz4 ships no types
    """A decompressor that counts the bytes it is given, with those it has kept because it has not used them."""

    handled = 0

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        CountedLZ4.handled += len(data) + len(self._unconsumed_data)
        piece: bytes = super().decompress(data, max_length)
        return piece


_decompressobj = zlib.decompressobj


def empty_members(times: int) -> bytes:
    return gzip.compress(b"") * (10_000 * times)


def frame_of_noise(times: int) -> bytes:
    packed: bytes = frame.compress(random.Random(1).randbytes(2_000_000 * times))
    return packed


@pytest.mark.parametrize(
    ("codec", "counted", "body_of"), [(GZIP, CountedGzip, empty_members), (LZ4, CountedLZ4, frame_of_noise)]
)
def test_four_times_the_data_is_some_four_times_the_work_however_it_is_cut(
    codec: int, counted: Any, body_of: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zlib, "decompressobj", CountedGzip)
    monkeypatch.setattr(frame, "LZ4FrameDecompressor", CountedLZ4)
    handled = []
    for times in (1, 4):
        counted.handled = 0
        decompressed(codec, memoryview(body_of(times)))
        handled.append(counted.handled)
    # (With all of the rest copied for each member or piece it was sixteen times the work.)
    assert 0 < handled[1] < 6 * handled[0]


@pytest.mark.parametrize(("codec", "packs"), WRITERS)
@pytest.mark.parametrize("size", [1, 1_000, 300_000, 3_000_000])
def test_the_bound_is_exact(codec: int, packs: Packs, size: int) -> None:
    body = memoryview(packs(b"x" * size))
    assert len(decompressed(codec, body, size)) == size
    with pytest.raises(CorruptRecordError, match=f"more than {size - 1:,} bytes uncompressed"):
        decompressed(codec, body, size - 1)


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
            decompressed(codec, memoryview(broken), 100_000)
        except CorruptRecordError:
            continue


def peak_of(act: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecordError, match="bytes uncompressed"):
            act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def zeros() -> bytes:
    return bytes(4 * MAX_CLEAR_BYTES)


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_four_times_the_bound_in_a_few_kilobytes_is_never_held(codec: int, zeros: bytes) -> None:
    packs: dict[int, Packs] = {GZIP: lambda data: gzip.compress(data, 1), LZ4: frame.compress, ZSTD: streamed_zstd}
    body = memoryview(packs[codec](zeros))
    # And some copies of the compressed data.
    assert peak_of(lambda: decompressed(codec, body)) < MAX_CLEAR_BYTES + 2 * 1024 * 1024 + 3 * len(body)


@pytest.mark.parametrize("blocks", [False, True])
def test_what_a_snappy_block_claims_to_hold_is_not_set_aside(blocks: bool) -> None:
    claim = b"\xff\xff\xff\xff\x0f" + b"some bytes"
    body = b"\x82SNAPPY\x00" + bytes(8) + struct.pack(">i", len(claim)) + claim if blocks else claim
    assert peak_of(lambda: decompressed(SNAPPY, memoryview(body))) < 1024 * 1024


def bomb(codec: int, clear: int) -> bytes:
    """A batch with one record of `clear` bytes."""
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 2**31 - 1)
    builder.append(0, 1, b"key", bytes(clear), [])
    return bytes(builder.build())


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_batch_that_is_too_large_in_the_clear_is_not_walked(codec: int) -> None:
    for clear, fits in ((MAX_CLEAR_BYTES - 100, True), (MAX_CLEAR_BYTES + 100, False)):
        batch = MemoryRecords(bomb(codec, clear)).next_batch()
        records = walk(FetchedBatch(0, 0, 1, batch), 0, 1)
        if fits:
            ((_, _, key, value),) = records
            assert (key, len(value or b"")) == (b"key", clear)
        else:
            with pytest.raises(CorruptRecordError, match="it has more than 67,108,864 bytes uncompressed"):
                next(records)


@pytest.mark.parametrize(("window_log", "reads"), [(27, True), (28, False)])
def test_a_zstd_frame_may_ask_for_the_window_of_the_highest_level_and_no_more(window_log: int, reads: bool) -> None:
    # Magic, a header without size and checksum (its byte 0), the window, and one last raw block of one byte.
    frame_of_one = struct.pack("<IBB", 0xFD2FB528, 0, (window_log - 10) << 3) + b"\x09\x00\x00x"
    if reads:
        assert bytes(decompressed(ZSTD, memoryview(frame_of_one))) == b"x"
    else:
        with pytest.raises(CorruptRecordError, match="too much memory"):
            decompressed(ZSTD, memoryview(frame_of_one))
