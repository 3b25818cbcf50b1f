"""Records written by Kafka's own classes, of every type, version and release, for tests to use and damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_DATA = Path(__file__).parent / "data"


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_DATA / name).read_text(encoding="utf-8").split("\n")[:-1]]


GOLDEN = _lines("golden.jsonl")
"""Selected shapes, by Kafka 4.3.1 (`tests/oracle/offsets_log_records.py`)."""

RELEASES = _lines("releases.jsonl")
"""Random records, by every release (`tests/oracle/record_releases.py`)."""

REAL: list[tuple[bytes, bytes | None]] = [
    *((bytes.fromhex(row["key"]), None if row["value"] is None else bytes.fromhex(row["value"])) for row in GOLDEN),
    *((bytes.fromhex(row["hex_key"]), bytes.fromhex(row["hex_value"])) for row in RELEASES),
]
"""Keys and values of all of them."""
