"""Rows for the tests of history."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from streaming.tables import named_to_arrow, table_named

HOUR = datetime(2026, 3, 14, 13, tzinfo=UTC)
HOUR_MS = 3_600_000
START_MS = int(HOUR.timestamp() * 1000)


def rows_of(table: str, rows: Iterable[dict[str, Any]]) -> pa.Table:
    """Rows of a table, times in ms; each of the cluster c if it does not say so."""
    given = [{"cluster": "c", "findings": [], "ended": False, **row} for row in rows]
    return named_to_arrow(table_named(table), given)


def rounds(*times: int, interval: int = 10_000) -> list[dict[str, Any]]:
    """Rounds at these ms of the hour, numbered from 100 in steps of 10, with `elapsed_ms` as the job counts it."""
    found: list[dict[str, Any]] = []
    elapsed = 0
    for number, time in enumerate(times):
        if number:
            elapsed += min(max(time - times[number - 1], 0), 3 * interval)
        found.append(
            {
                "round": 100 + 10 * number,
                "round_time": START_MS + time,
                "elapsed_ms": elapsed,
                "interval_ms": interval,
            }
        )
    return found
