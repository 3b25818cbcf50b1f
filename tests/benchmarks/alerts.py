"""The cost of one pass of the alerter: the shipped rules and one over partitions, all rows of a large cluster new."""

from __future__ import annotations

import logging
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from streaming.alerts import Alerter
from streaming.alerts.rules.rules import load_rules
from streaming.config import SHIPPED_RULES, Settings
from streaming.tables import DeltaLake, table_named
from tests.benchmarks.figure import Figure, Say

__all__ = ["alerts"]

_GROUPS, _PARTITIONS, _ROUNDS = 1_000, 10, 30

_INTERVAL_MS = 10_000

# The shipped rules read no row per partition; a rule with an alert per partition costs more.
_PER_PARTITION = """
  - name: partition_behind
    view: lag_current
    when: nullif(lag_status, 'unknown') IN ('stopped', 'stalled') AND subscribed
    for: 2 rounds
    severity: warning
    message: "{topic} {partition} of {group_id}"
"""


class _Clock:
    """A clock that the rounds advance."""

    def __init__(self) -> None:
        self.ms = round(time.time() * 1000)

    def __call__(self) -> float:
        return self.ms / 1000


def alerts(say: Say) -> list[Figure]:
    """Measure passes over single rounds, and a start over all of them."""
    logging.getLogger("streaming.alerts").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="evenkeel-bench-") as folder:
        file = Path(folder) / "alerts.yaml"
        file.write_text(SHIPPED_RULES.read_text(encoding="utf-8") + _PER_PARTITION, encoding="utf-8")
        rules, clock = load_rules(file), _Clock()
        settings = Settings(cluster="bench", lake=str(Path(folder) / "lake"))
        lake = DeltaLake(settings.lake)
        lake.create()
        alerter = Alerter(settings, rules, {}, clock, clock)
        cpu, wall = [], []
        for number in range(_ROUNDS):
            say(f"round {number + 1} of {_ROUNDS}")
            clock.ms += _INTERVAL_MS
            _write(lake, number, clock.ms)
            began = time.process_time(), time.perf_counter()
            alerter.look()
            cpu.append(time.process_time() - began[0])
            wall.append(time.perf_counter() - began[1])
        say("a start")
        began_again = time.perf_counter()
        Alerter(settings, rules, {}, clock, clock).look()
        start = time.perf_counter() - began_again
    of = f"{_GROUPS:,} groups x {_PARTITIONS} partitions, all rows new, {len(rules)} rules"
    return [
        Figure("alerts: a look", f"{statistics.median(cpu) * 1000:.0f} ms CPU", "", f"{of}, median of {_ROUNDS}"),
        Figure("  until decided", f"{statistics.median(wall) * 1000:.0f} ms", "", "the same, by the clock"),
        Figure("  a start of the alerter", f"{start:.1f} s", "", f"over {_ROUNDS} such rounds"),
    ]


def _write(lake: DeltaLake, number: int, time_ms: int) -> None:
    when = {"cluster": "bench", "round": number, "round_time": time_ms, "event_date": time_ms // 86_400_000}
    health: list[dict[str, Any]] = [
        {
            "group_id": f"group-{group}",
            "findings": [],
            "members": 3,
            "imbalance": 2.0 if group % 50 == 0 else 0.1,
            "imbalance_optimal": 0.0,
            "lag_status": "stopped" if group % 97 == 0 else "ok",
            "lag_total": number,
        }
        for group in range(_GROUPS)
    ]
    lag = [
        {**{k: row[k] for k in ("group_id", "lag_status")}, "topic": "t", "partition": partition, "lag": number}
        for row in health
        for partition in range(_PARTITIONS)
    ]
    _append(lake, "lag", number, [{**when, "ended": False, "subscribed": True, **row} for row in lag])
    _append(lake, "group_health", number, [{**when, "ended": False, **row} for row in health])
    _append(lake, "rounds", number, [{**when, "interval_ms": _INTERVAL_MS}])


def _append(lake: DeltaLake, table: str, batch: int, rows: list[dict[str, Any]]) -> None:
    names = [column.name for column in table_named(table).columns]
    lake.append(table, [[row.get(name) for name in names] for row in rows], "bench", batch)
