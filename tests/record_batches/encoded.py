"""Record batches as kafka-python writes them."""

from __future__ import annotations

from kafka.record.default_records import DefaultRecordBatchBuilder

CODECS = [0, 1, 2, 3, 4]  # none, gzip, snappy, lz4, zstd

Written = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def encoded(records: list[Written], codec: int) -> bytes:
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 2**30)
    for delta, time, key, value, headers in records:
        builder.append(delta, time, key, value, headers)
    return bytes(builder.build())
