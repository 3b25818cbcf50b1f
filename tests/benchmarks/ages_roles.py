"""One process on an aged lake, measured from inside: the job's appends, a reader, the page, the alerter."""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import psutil  # type: ignore[import-untyped]  # it ships no types
import pyarrow.parquet as pq

from streaming.tables import DeltaLake, LakeReader

_GROUP = "checkout-service-0050"


def main(role: str, root: str, folder: str, batches: int) -> None:
    """Measure one role; prints the figures as JSON."""
    logging.disable(logging.WARNING)
    found = {"job": _job, "reader": _reader, "page": _page, "alerter": _alerter}[role](root, folder, batches)
    sys.stdout.write(json.dumps(found))


def _job(root: str, folder: str, batches: int) -> dict[str, Any]:
    rows = {path.stem: pq.read_table(path) for path in Path(folder).iterdir()}
    before = psutil.Process().memory_info().rss
    lake = DeltaLake(root)
    times: dict[str, list[float]] = {name: [] for name in rows}
    for batch in range(batches):
        for name, table in rows.items():
            began = time.perf_counter()
            lake.append(name, table, "bench", batch)
            times[name].append(time.perf_counter() - began)
    slowest = max(times, key=lambda name: median(times[name]))
    return {
        "slowest": median(times[slowest]),
        "table": slowest,
        "batch": median(sum(parts) for parts in zip(*times.values(), strict=True)),
        "memory": psutil.Process().memory_info().rss - before,
    }


def _reader(root: str, _folder: str, _batches: int) -> dict[str, Any]:
    before = psutil.Process().memory_info().rss
    began = time.perf_counter()
    reader = LakeReader(root)
    opened = time.perf_counter() - began
    since = datetime.now(UTC).date() - timedelta(days=30)
    found: dict[str, Any] = {"open": opened}
    for name, columns in (("lag", "max(lag)"), ("health", "max(lag_total)")):
        table = "group_health" if name == "health" else "lag"
        began = time.perf_counter()
        rows = reader.rows(
            f"SELECT event_date, {columns}, count(*) AS n FROM {table} "
            "WHERE group_id = ? AND event_date >= ? GROUP BY 1",
            [_GROUP, since],
        )
        found[name] = time.perf_counter() - began
        found[f"{name}_rows"] = sum(row["n"] for row in rows)
    return {**found, "memory": psutil.Process().memory_info().rss - before}


def _page(root: str, _folder: str, _batches: int) -> dict[str, Any]:
    from dashboards.lake import PageLake  # noqa: PLC0415 - only this role needs it

    before = psutil.Process().memory_info().rss
    began = time.perf_counter()
    lake = PageLake(root, timedelta(hours=24), timedelta(minutes=10), timedelta(seconds=3))
    lake.look()
    first = time.perf_counter() - began
    while lake.read_on():
        pass
    return {"first": first, "memory": psutil.Process().memory_info().rss - before}


def _alerter(root: str, _folder: str, _batches: int) -> dict[str, Any]:
    from streaming.alerts import Alerter  # noqa: PLC0415 - only this role needs it
    from streaming.alerts.rules.rules import load_rules  # noqa: PLC0415
    from streaming.config import SHIPPED_RULES, Settings  # noqa: PLC0415

    before = psutil.Process().memory_info().rss
    began = time.perf_counter()
    alerter = Alerter(Settings(cluster="bench", lake=root), load_rules(SHIPPED_RULES), {})
    alerter.look()
    return {"first": time.perf_counter() - began, "memory": psutil.Process().memory_info().rss - before}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
