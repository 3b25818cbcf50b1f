"""The cost of a batch without a backlog: one round of a thousand groups that commit, some of which rebalance.

Every group commits each partition twice a round (the clients' default is every 5 s), one in a hundred rebalances in
each round, every end offset grows. The rounds are written beforehand and the job reads them one by one, as fast as it
can: the content of a batch is the same as in a live cluster. The first batches, in which the JVM compiles its code, do
not count.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from streaming.config import Settings
from streaming.groups import encode_rows
from streaming.job.batch import rows_by_table
from streaming.job.operator import advance_key, group_config
from streaming.job.source.connection import kept_readers
from streaming.job.source.planner import Planner
from streaming.job.source.positions import INITIAL
from streaming.job.source.read import task_rows
from streaming.job.source.settings import SourceSettings
from streaming.tables import DeltaLake
from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.figure import Figure, Say
from tests.benchmarks.made_groups import MadeGroups
from tests.benchmarks.measured_job import JobReport, Spent, measure_job, memory_of

STAGES = {
    "plan": "closing records and ends asked for, shared out among tasks",
    "source": "fetch, walk, decode, compact; events to observations",
    "core": "state unpacked, advance, state and rows packed",
    "unpack": "rows unpacked, sorted by table, made columns",
    "append": "six Delta tables, by delta-rs",
}
"""Names and contents of the stages."""


class _Clock:
    """Processor seconds of this process, by stage."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        # The time of the whole process, because delta-rs uses its own threads.
        began = time.process_time()
        yield
        self.seconds[name] += time.process_time() - began


def stage_seconds(settings: Settings, folder: Path, batches: int) -> dict[str, float]:
    """Processor seconds of each stage: the median over the last batches, of one round each.

    Args:
        settings: Those of the measured job.
        folder: Folder for a lake.
        batches: Number of batches that count; those before them are for warming up.
    """
    source = SourceSettings.of(settings).model_copy(update={"max_rounds": 1})
    reader = kept_readers(source)
    planner = Planner(source, kept_readers)
    planner.available_now()
    config = group_config(settings)
    lake = DeltaLake(str(folder / "stages"))
    lake.create()
    states: dict[str, Any] = {}
    took: list[dict[str, float]] = []
    start: dict[str, Any] = INITIAL
    while True:
        clock = _Clock()
        with clock.stage("plan"):
            end = planner.latest(start, 1)
            tasks = planner.tasks(start, end)
        if not tasks:
            break
        payloads: dict[str, list[bytes]] = {}
        with clock.stage("source"):
            for task in tasks:
                for key, payload in task_rows(task, source, reader):
                    payloads.setdefault(key, []).append(payload)
        packed: list[bytes] = []
        with clock.stage("core"):
            for key, of_key in payloads.items():
                states[key], rows = advance_key(key, of_key, states.get(key), config)
                if rows:
                    packed.append(encode_rows(rows))
        with clock.stage("unpack"):
            tables = rows_by_table(packed)
        with clock.stage("append"):
            for table, of_table in tables.items():
                lake.append(table, of_table, "stages", len(took))
        took.append(clock.seconds)
        start = end
    counted = took[-batches:]
    return {name: median(seconds[name] for seconds in counted) for name in STAGES}


_COMMITS_A_ROUND = 2
_REBALANCING = 100
"""One group in this many rebalances in a round: with a thousand groups, some deployment is always in progress."""

_MANY = 1_000
"""Number of groups up to which the target of 4 s per batch holds."""


@dataclass(frozen=True, slots=True)
class SteadySize:
    """Size of the benchmark.

    Attributes:
        groups: Groups of two members each.
        partitions: Partitions per group.
        warm_up: Rounds that do not count.
        rounds: Rounds that count.
        idle: Number of additional idle groups, of one partition each; a round contains a twentieth of them.
    """

    groups: int = 1_000
    partitions: int = 10
    warm_up: int = 8
    rounds: int = 8
    idle: int = 0


FULL = (
    SteadySize(),
    SteadySize(warm_up=4, rounds=6, idle=100_000),
    SteadySize(10_000, warm_up=3, rounds=5),
    SteadySize(1, 10_000),
)
"""A thousand groups; beside a hundred thousand idle ones; ten thousand groups; one group of ten thousand partitions."""


def steady_state(cluster: BenchCluster, say: Say, size: SteadySize = FULL[0]) -> list[Figure]:
    """Run the benchmark.

    Args:
        cluster: Broker and folder.
        say: Shows the progress.
        size: How many groups and rounds.
    """
    name = f"steady-{size.groups}-{size.partitions}-{size.idle}"
    settings = cluster.settings(name, max_rounds=1)
    with MadeGroups(settings, size.groups, size.partitions, size.idle) as made:
        made.rebalance(made.groups)
        made.rest()
        for number in range(size.warm_up + size.rounds):
            say(f"writing round {number + 1} of {size.warm_up + size.rounds}")
            made.commit(_COMMITS_A_ROUND)
            share = size.groups // _REBALANCING
            first = number * share % size.groups
            made.rebalance(made.groups[first : first + share])
            made.round()
    job = measure_job(settings, cluster.folder, say)
    say("the stages, without Spark")
    return _figures(size, job, stage_seconds(settings, cluster.folder / name, size.rounds))


def _figures(size: SteadySize, job: JobReport, stages: dict[str, float]) -> list[Figure]:
    progress = job.progress[-size.rounds :]
    spent = [after.spent.since(before.spent) for before, after in pairwise(job.batches)][-size.rounds :]
    seconds = [p["durationMs"]["triggerExecution"] / 1000 for p in progress]
    parts = {part: median(getattr(s, part) for s in spent) for part in Spent.__struct_fields__}
    total = median(s.total for s in spent)
    rows = sum(job.batches[-1].rows.values())
    idle = f" and {size.idle:,} idle groups" if size.idle else ""
    of = f"{size.groups:,} groups x {size.partitions} partitions{idle}, {rows:,} rows"
    figures = [
        Figure(
            "steady state: a batch of one round",
            f"{median(seconds):.2f} s",
            "under 15 s" if size.groups > _MANY else "under 4 s",
            f"{of}; median of {len(seconds)}, {min(seconds):.2f} to {max(seconds):.2f} s",
        ),
        Figure("  its processor time", f"{total:.2f} s", "", "; ".join(f"{n} {s:.2f} s" for n, s in parts.items())),
    ]
    for name, what in STAGES.items():
        figures.append(Figure(f"  {name}", f"{stages[name]:.2f} s", "", f"of it: {what}"))
    rest = max(0.0, total - sum(stages.values()))
    figures.append(Figure("  Spark", f"{rest:.2f} s", "", "the rest: plan, tasks, JVM ↔ Python, state store"))
    waits = (
        ("operator and source", [p["durationMs"]["addBatch"] / 1000 for p in progress]),
        ("checkpoint", [(p["durationMs"]["walCommit"] + p["durationMs"]["commitOffsets"]) / 1000 for p in progress]),
        ("append", [b.append_s for b in job.batches[-size.rounds :]]),
    )
    clock = ", ".join(f"{name} {median(values):.2f} s" for name, values in waits)
    figures.append(Figure("  by the clock", "", "", clock))
    figures.append(Figure("  memory", f"{sum(job.largest_memory.values()) / 2**20:,.0f} MB", "", memory_of(job)))
    return figures
