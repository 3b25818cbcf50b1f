"""Whole record batches from Kafka: fetched, found by their headers, decompressed within limits, walked."""

from __future__ import annotations

from streaming.record_batches.batches import (
    APPEND_TIME,
    CODEC,
    HEADER,
    FetchedBatch,
    FetchedRun,
    Missing,
    epochs_of,
)
from streaming.record_batches.decompress import MAX_CLEAR_BYTES, decompressed
from streaming.record_batches.walk import Record, walk
from streaming.record_batches.whole_batches import ask_offsets, take_whole_batches

__all__ = [
    "APPEND_TIME",
    "CODEC",
    "HEADER",
    "MAX_CLEAR_BYTES",
    "FetchedBatch",
    "FetchedRun",
    "Missing",
    "Record",
    "ask_offsets",
    "decompressed",
    "epochs_of",
    "take_whole_batches",
    "walk",
]
