"""Record batches as kafka-python writes them."""

from __future__ import annotations

import struct

from kafka.record.default_records import DefaultRecordBatchBuilder

CODECS = [0, 1, 2, 3, 4]  # none, gzip, snappy, lz4, zstd

Written = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def encoded(records: list[Written], codec: int) -> bytes:
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 2**30)
    for delta, time, key, value, headers in records:
        builder.append(delta, time, key, value, headers)
    return bytes(builder.build())


def varint(number: int) -> bytes:
    """A number as records hold it: zigzag, seven bits a byte."""
    unsigned = number << 1 if number >= 0 else (-number << 1) - 1
    out = bytearray()
    while unsigned >= 0x80:
        out.append(unsigned & 0x7F | 0x80)
        unsigned >>= 7
    return bytes([*out, unsigned])


def forged(
    records: list[tuple[bytes, bytes, bytes, bytes]], base_timestamp: int = 0, base_offset: int = 0, last_delta: int = 0
) -> bytes:
    """An uncompressed batch of records that no client writes.

    Args:
        records: The encoded numbers of timestamp and offset, key, value.
        base_timestamp: Timestamp of the header.
        base_offset: Offset of the header.
        last_delta: Last offset of the header, minus the first.
    """
    body = b""
    for timestamp, offset, key, value in records:
        rest = b"\0" + timestamp + offset + varint(len(key)) + key + varint(len(value)) + value + b"\0"
        body += varint(len(rest)) + rest
    offsets = base_offset, 49 + len(body), 0, 2, 0, 0, last_delta
    return struct.pack(">qiiBIhiqqqhii", *offsets, base_timestamp, 0, -1, -1, -1, len(records)) + body
