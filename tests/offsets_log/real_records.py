"""Records that Kafka's own classes wrote, of every type, version and release: what tests damage and play with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_DATA = Path(__file__).parent / "data"


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_DATA / name).read_text(encoding="utf-8").split("\n")[:-1]]


GOLDEN = _lines("golden.jsonl")
"""Chosen shapes, by Kafka 4.3.1 (`tests/oracle/offsets_log_records.py`)."""

RELEASES = _lines("releases.jsonl")
"""Random ones, by every release (`tests/oracle/record_releases.py`)."""

REAL: list[tuple[bytes, bytes | None]] = [
    *((bytes.fromhex(row["key"]), None if row["value"] is None else bytes.fromhex(row["value"])) for row in GOLDEN),
    *((bytes.fromhex(row["hex_key"]), bytes.fromhex(row["hex_value"])) for row in RELEASES),
]
"""Key and value of all of them."""
