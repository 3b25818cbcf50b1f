"""A viewer's waiting time: each panel of the page over a day of a thousand groups, without any maintenance.

The page holds the data of its panels in memory (`streaming.tables.cache`). Measured are the loading (the newest rows,
then the rest of the day in the background), a refresh after a batch, and each panel's query without the cache: a second
viewer within one refresh would get the first one's answer at no cost.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import psutil  # type: ignore[import-untyped]  # it ships no types

from dashboards.lake import PageLake, since
from dashboards.query import queries
from tests.benchmarks.day_of_rows import DaySize, write_day
from tests.benchmarks.figure import Figure, Say

__all__ = ["page"]

_TIMES = 7
_ALL = (
    "groups", "search", "since", "rebalances", "rebalance_steps", "alerts", "rounds", "unseen",
    # alerts, cost, clients, clusters, Evenkeel itself
    "alert_states", "alert_history", "deliveries", "targets", "owed", "marks", "mutes", "cost", "cost_causes",
    "clients", "libraries",
    "clusters", "open_transactions", "rounds_past", "undecoded", "gaps",
    # drift, load, topics
    "verdict_steps", "verdict_groups", "verdicts", "load", "topics",
)  # fmt: skip
_ONE = (
    "members", "verdict", "partitions", "lag", "rebalances", "what_if", "load_members", "load_partitions",
    "topic_groups", "topic_partitions", "broker_members",
)  # fmt: skip


def page(say: Say, size: DaySize | None = None) -> list[Figure]:
    """Run the benchmark.

    Args:
        say: Shows the progress.
        size: Size; None for that of docs/performance.md.
    """
    size = size or DaySize()
    with tempfile.TemporaryDirectory(prefix=f"evenkeel-bench-{psutil.Process().pid}-page-") as folder:
        day = write_day(Path(folder), size, say)
        say("the first look")
        before = psutil.Process().memory_info().rss
        lake = PageLake(folder, timedelta(hours=size.hours), timedelta(minutes=10), timedelta(seconds=3))
        first = _seconds(lake.look)
        say("reading the day")
        whole = _seconds(lambda: _read_all(lake))
        held = psutil.Process().memory_info().rss - before
        of = f"{sum(day.files.values()):,} files in {len(day.files)} tables, {size.groups:,} groups, none compacted"
        return [
            Figure("page: first look at a day", f"{first:.1f} s", "", of),
            Figure(
                "  the rest of the day, in the background", f"{whole:.0f} s", "", f"{held / 2**20:,.0f} MB more memory"
            ),
            Figure("  refresh after a batch", f"{1000 * _refresh(lake, day.next_round, say):.0f} ms", "", "median"),
            *_panels(lake, say),
        ]


def _read_all(lake: PageLake) -> None:
    while lake.read_on():
        pass


def _refresh(lake: PageLake, next_round: Callable[[], None], say: Say) -> float:
    times = []
    for number in range(_TIMES):
        say(f"refresh {number + 1} of {_TIMES}")
        next_round()
        times.append(_seconds(lake.look))
    return median(times)


def _panels(lake: PageLake, say: Say) -> list[Figure]:
    newest: datetime = lake.ask("rounds")[0]["round_time"]
    span = {"since": since(lake.past, newest), "most": 12, "step": "minute", "imbalance": lake.thresholds.imbalance}
    worst = lake.ask("groups", {"cluster": None, "group_id": None, "imbalance": span["imbalance"]})[0]
    everything = {"cluster": None, "group_id": None, "text": "checkout", "rule": None, "until": newest, "topic": None,
                  "verdict": None, "each": "yes", **span}  # fmt: skip
    one = {"cluster": worst["cluster"], "group_id": worst["group_id"], **span, "most": 200}
    one["topic"] = lake.ask("partitions", {key: one[key] for key in ("cluster", "group_id")})[0]["topic"]
    found = []
    for what, names, given in (("all groups", _ALL, everything), ("one group", _ONE, one)):
        for name in names:
            say(f"{name}, {what}")
            times, rows = _asked(lake, name, given)
            note = f"{rows:,} rows, {what}; median of {_TIMES}, worst {1000 * max(times):.0f} ms"
            found.append(Figure(f"  {name}.sql", f"{1000 * median(times):.0f} ms", "1,000 ms", note))
    return found


def _asked(lake: PageLake, name: str, given: Mapping[str, Any]) -> tuple[list[float], int]:
    wanted = {key: given[key] for key in queries()[name].parameters}
    times, rows = [], 0
    for _ in range(_TIMES + 1):
        lake.forget()
        began = time.perf_counter()
        rows = len(lake.ask(name, wanted))
        times.append(time.perf_counter() - began)
    return times[1:], rows  # without the first one, which is not warm


def _seconds(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began
