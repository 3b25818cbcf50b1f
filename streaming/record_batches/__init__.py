"""Whole record batches from Kafka: fetched, found by their headers, decompressed, walked."""

from __future__ import annotations

from streaming.record_batches.batches import (
    APPEND_TIME,
    CODEC,
    HEADER,
    FetchedBatch,
    FetchedRun,
    Missing,
    decompressed,
    epochs_of,
)
from streaming.record_batches.columnar_records import pieces
from streaming.record_batches.ranges import (
    TO_THE_END,
    ClusterIdentity,
    Gone,
    OffsetRange,
    RangeReader,
    UnreadableTopicError,
    unwalkable,
)
from streaming.record_batches.walk import Record, walk
from streaming.record_batches.whole_batches import ask_offsets, take_whole_batches

__all__ = [
    "APPEND_TIME",
    "CODEC",
    "HEADER",
    "TO_THE_END",
    "ClusterIdentity",
    "FetchedBatch",
    "FetchedRun",
    "Gone",
    "Missing",
    "OffsetRange",
    "RangeReader",
    "Record",
    "UnreadableTopicError",
    "ask_offsets",
    "decompressed",
    "epochs_of",
    "pieces",
    "take_whole_batches",
    "unwalkable",
    "walk",
]
