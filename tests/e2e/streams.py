"""Recorded inputs of single keys by round, and the resulting rows."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from streaming.groups import GroupConfig, Rows, unpack_inputs
from streaming.groups.rows import DriftRow
from streaming.job.operator import advance_key
from tests.e2e.lakes import read_packed, write_packed
from tests.e2e.recording import CLUSTER

STREAMS = "streams.txt"


@dataclass(frozen=True, slots=True)
class RecordedStream:
    """One key of the operator.

    Attributes:
        key: A key in the form of `streaming.records.inputs`.
        rounds: Payloads by round, in the order of the rounds; a round may have several, or none.
        rows: Rows by table, as JSON values.
    """

    key: str
    rounds: tuple[tuple[bytes, ...], ...]
    rows: dict[str, list[Any]]


def rows_of(key: str, batches: Iterable[Iterable[bytes]]) -> Rows:
    """The operator's rows for one key's payloads in these batches, with its state packed and unpacked in between."""
    state, all_rows = None, Rows()
    for payloads in map(list, batches):
        if payloads:
            state, rows = advance_key(key, payloads, state, GroupConfig(cluster=CLUSTER))
            for table in Rows.__struct_fields__:
                getattr(all_rows, table).extend(getattr(rows, table))
    return all_rows


def by_table(rows: Rows) -> dict[str, list[Any]]:
    """Rows as JSON values, with verdicts' inputs decoded: builds of zlib differ, and keys have no order."""
    found = {table: msgspec.json.decode(msgspec.json.encode(getattr(rows, table))) for table in rows.__struct_fields__}
    at = DriftRow.__struct_fields__.index("inputs")
    for row in found["drift"]:
        if row[at] is not None:
            row[at] = msgspec.json.decode(unpack_inputs(base64.b64decode(row[at])))
    return found


def counted(rows: dict[str, list[Any]]) -> dict[str, Counter[bytes]]:
    """Rows without order."""
    return {table: Counter(msgspec.json.encode(row, order="deterministic") for row in of) for table, of in rows.items()}


def read_streams() -> list[RecordedStream]:
    """The streams that the newest release recorded."""
    return [
        RecordedStream(key, tuple(tuple(base64.b64decode(p) for p in payloads) for payloads in rounds), rows)
        for key, rounds, rows in read_packed(STREAMS)
    ]


def write_streams(release: str, origin: str, streams: Iterable[RecordedStream]) -> int:
    """Store streams; returns the size of the file in bytes."""
    lines = [
        [s.key, [[base64.b64encode(p).decode() for p in payloads] for payloads in s.rounds], s.rows] for s in streams
    ]
    return write_packed(STREAMS, release, origin, lines)
