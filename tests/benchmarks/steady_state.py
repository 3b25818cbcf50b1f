"""The cost of a batch without a backlog: one round of a thousand groups that commit, some of which rebalance.

Every group commits each partition twice a round (the clients' default is every 5 s), one in a hundred rebalances in
each round, every end offset grows. The rounds are written beforehand and the job reads them one by one, as fast as it
can: the content of a batch is the same as in a live cluster. The first batches, in which the JVM compiles its code, do
not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.figure import Figure, Say
from tests.benchmarks.made_groups import MadeGroups
from tests.benchmarks.measured_job import JobReport, Spent, measure_job, memory_of
from tests.benchmarks.stages import STAGES, stage_seconds

__all__ = ["FULL", "steady_state"]

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
    rounds: int = 16
    idle: int = 0


FULL = (SteadySize(), SteadySize(idle=100_000), SteadySize(10_000, warm_up=4, rounds=6), SteadySize(1, 10_000))
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
