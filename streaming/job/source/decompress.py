"""The four codecs of record batches, each by the quickest call of its package.

kafka-python's own functions make a stream for every batch, which costs more than taking its records apart. What
differs from the common case in any way (several frames, bytes left over, broken ones) is left to them.
"""

from __future__ import annotations

import struct
import zlib

import snappy
import zstandard
from lz4 import frame

__all__ = ["decompressed"]

_NONE, _GZIP, _SNAPPY, _LZ4, _ZSTD = range(5)

_GZIP_HEADER = 31
"""zlib's way to say: a gzip header and trailer, a window of 32 KB."""

# Java's snappy writes blocks, each after its size, behind a header of 16 bytes.
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16

_size = struct.Struct(">i")
_zstd = zstandard.ZstdDecompressor()


def decompressed(codec: int, body: memoryview) -> bytes | memoryview | None:
    """What follows a batch's header, in the clear; None for what kafka-python must look at.

    Args:
        codec: 0 to 7, from the attributes.
        body: All that follows the header.
    """
    try:
        if codec == _NONE:
            return body
        if codec == _GZIP:
            return _whole(zlib.decompressobj(_GZIP_HEADER), body)
        if codec == _SNAPPY:
            return _unsnapped(bytes(body))
        if codec == _LZ4:
            clear: bytes = frame.decompress(body)
            return clear
        if codec == _ZSTD:
            return _whole(_zstd.decompressobj(), body)
    except Exception:  # noqa: BLE001 - each package has exceptions of its own, and all mean the same here
        return None
    return None


def _whole(stream: zlib._Decompress | zstandard.ZstdDecompressionObj, body: memoryview) -> bytes | None:
    clear = stream.decompress(body)
    return clear if stream.eof and not stream.unused_data else None


def _unsnapped(body: bytes) -> bytes | None:
    if not body.startswith(_XERIAL):
        clear: bytes = snappy.decompress(body)
        return clear
    blocks: list[bytes] = []
    at = _XERIAL_HEADER
    while at < len(body):
        (size,) = _size.unpack_from(body, at)
        at += _size.size
        if not 0 <= size <= len(body) - at:
            return None
        blocks.append(snappy.decompress(body[at : at + size]))
        at += size
    return b"".join(blocks)
