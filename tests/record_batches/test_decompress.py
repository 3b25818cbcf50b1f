"""Each codec as brokers and clients write it; whatever cannot be decompressed is one kind of error."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from kafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode
from kafka.errors import CorruptRecordError

from streaming.record_batches import decompressed

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
