"""The four codecs of record batches, within limits: 32 KB of zstd can hold a gigabyte, and a reader must survive it.

kafka-python's own functions decompress any input as a whole, so they are not used. Each codec here accepts what its
function there accepts: several members of gzip, several frames of zstd, one frame of LZ4 whatever follows it, snappy
with Java's blocks and without.

Snappy with blocks, as Java writes it (xerial): 16 bytes of header, then per block an int32 size and the block. A snappy
block begins with its decompressed size, as a varint of 32 bits.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from typing import Final

import snappy
import zstandard
from kafka.errors import CorruptRecordError
from lz4 import frame

MAX_CLEAR_BYTES: Final = 64 * 1024 * 1024
"""A batch with a larger decompressed size is not read.

The largest one that anybody has reason to write is a single record of the probe (`events.MAX_RECORD_BYTES`, 32 MB);
coordinators and clients fill batches of 1 MB. Readers hold a few copies of one batch, so this also limits their memory.
"""

_NONE, _GZIP, _SNAPPY, _LZ4, _ZSTD = range(5)

_GZIP_HEADER = 31
"""zlib's code for a gzip header and trailer and a window of 32 KB."""

_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16

_VARINT_BYTES = 5
"""Bytes of the longest varint of 32 bits."""

# Output requested at once: the packages allocate this much before they know how little comes.
_PIECE = 128 * 1024

# zlib copies the input it has not used yet after each piece. Most batches fit into one piece.
_GZIP_PIECE = 1024 * 1024

# Input given at once where it may be copied often: to lz4, which copies what it has not used after each piece, and to
# further members of gzip, after which zlib does. With all the rest given to each of them, 4 MB of empty members took
# 32 s; with less than this, calls cost more than copies.
_SLICE = 64 * 1024

_PADDING = re.compile(rb"\x00*")

_size = struct.Struct(">i")
# A frame may ask for a window of 128 MB whatever it holds, which is libzstd's own limit and what level 22 asks for, so
# Java's clients write and read it. The system gives a process only the part that is written: no more than the output.
_MOST_WINDOW = 128 * 1024 * 1024
_zstd = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW)


def decompressed(codec: int, body: memoryview, most: int = MAX_CLEAR_BYTES) -> bytes | memoryview:
    """Decompress everything after a batch's header.

    Args:
        codec: 0 to 7, from the attributes.
        body: Everything after the header.
        most: Decompressed bytes at the most; never are more held, except for one piece.

    Raises:
        CorruptRecordError: The result is larger, there is no such codec, or the bytes do not follow it.
    """
    if codec == _NONE:
        return body
    try:
        if codec == _GZIP:
            return _joined(_gunzipped(body), most)
        if codec == _SNAPPY:
            return _joined(_unsnapped(bytes(body), most), most)
        if codec == _LZ4:
            return _joined(_unlz4(body), most)
        if codec == _ZSTD:
            return _joined(_unzstd(body), most)
    except CorruptRecordError:
        raise
    except Exception as error:  # each package has its own exceptions, and here all mean the same
        message = f"it cannot be decompressed: {error}"
        raise CorruptRecordError(message) from error
    message = f"there is no codec {codec}"
    raise CorruptRecordError(message)


def _joined(pieces: Iterator[bytes], most: int) -> bytes:
    first = next(pieces, b"")
    second = next(pieces, None)
    if second is None and len(first) <= most:
        return first
    held, size = [first], len(first)
    while second is not None and size <= most:
        held.append(second)
        size += len(second)
        second = next(pieces, None)
    if size > most:
        _too_large(most)
    return b"".join(held)


def _gunzipped(body: memoryview) -> Iterator[bytes]:
    at, size, slice_ = 0, len(body), _GZIP_PIECE
    while at < size:
        stream = zlib.decompressobj(_GZIP_HEADER)
        while not stream.eof:
            given = body[at : at + slice_]
            piece = stream.decompress(given, _GZIP_PIECE)
            at += len(given) - len(stream.unused_data if stream.eof else stream.unconsumed_tail)
            if piece:
                yield piece
            elif not (given or stream.eof):
                _cut_short()
        # As in Python's own gzip reader: a member may be padded with zeros.
        if at < size and (padding := _PADDING.match(body, at)):
            at = padding.end()
        slice_ = _SLICE


def _unsnapped(body: bytes, most: int) -> Iterator[bytes]:
    if len(body) < _XERIAL_HEADER or not body.startswith(_XERIAL):
        yield _unsnapped_block(body, most)
        return
    at = _XERIAL_HEADER
    while at < len(body):
        (size,) = _size.unpack_from(body, at)
        at += _size.size
        if not 0 <= size <= len(body) - at:
            _cut_short()
        yield _unsnapped_block(body[at : at + size], most)
        at += size


def _unsnapped_block(block: bytes, most: int) -> bytes:
    size = 0
    for place, byte in enumerate(block[:_VARINT_BYTES]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    # The package trusts this size, and allocates it.
    if size > most:
        _too_large(most)
    clear: bytes = snappy.decompress(block)
    return clear


def _unlz4(body: memoryview) -> Iterator[bytes]:
    stream = frame.LZ4FrameDecompressor()
    at = 0
    while not stream.eof:
        given = body[at : at + _SLICE] if stream.needs_input else b""
        if stream.needs_input and not given:
            _cut_short()
        at += len(given)
        yield stream.decompress(given, _PIECE)


def _unzstd(body: memoryview) -> Iterator[bytes]:
    with _zstd.stream_reader(body, read_across_frames=True) as stream:
        while piece := stream.read(_PIECE):
            yield piece


def _too_large(most: int) -> None:
    message = f"it has more than {most:,} bytes uncompressed"
    raise CorruptRecordError(message)


def _cut_short() -> None:
    message = "it cannot be decompressed: its data is truncated"
    raise CorruptRecordError(message)
