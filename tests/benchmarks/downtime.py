"""A job that was down while rounds continued: how many times faster than real time is the backlog read?

Groups commit each partition twice a round, every end offset grows, and the job's batches have the default number of
rounds. The first batch belongs to a new process; the others count.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.figure import Figure, Say
from tests.benchmarks.made_groups import MadeGroups
from tests.benchmarks.measured_job import JobReport, measure_job, memory_of

__all__ = ["DowntimeSize", "downtime"]

_NAME = "downtime"
_COMMITS_A_ROUND = 2
_INTERVAL_S = 10
"""Interval of rounds in a live cluster; these are written as fast as possible."""


@dataclass(frozen=True, slots=True)
class DowntimeSize:
    """Size of the benchmark.

    Attributes:
        groups: Groups of two members each.
        partitions: Partitions per group.
        rounds: Rounds that were missed.
        rounds_a_batch: Most rounds in one batch of the job.
    """

    groups: int = 1_000
    partitions: int = 10
    rounds: int = 60
    rounds_a_batch: int = 20

    @classmethod
    def full(cls) -> DowntimeSize:
        """Two hours, with the job's defaults."""
        return cls(rounds=720, rounds_a_batch=60)


def downtime(cluster: BenchCluster, say: Say, size: DowntimeSize | None = None) -> list[Figure]:
    """Run the benchmark.

    Args:
        cluster: Broker and folder.
        say: Shows the progress.
        size: Size; None for a short run.
    """
    size = size or DowntimeSize()
    settings = cluster.settings(_NAME, max_rounds=size.rounds_a_batch)
    with MadeGroups(settings, size.groups, size.partitions) as made:
        made.rebalance(made.groups)
        for number in range(size.rounds):
            say(f"writing round {number + 1} of {size.rounds}")
            made.commit(_COMMITS_A_ROUND)
            made.round()
    return _figures(size, measure_job(settings, cluster.folder, say))


def _figures(size: DowntimeSize, job: JobReport) -> list[Figure]:
    first, last = job.batches[0], job.batches[-1]
    rounds = size.rounds - first.rows.get("rounds", 0)
    if not rounds:
        message = f"all {size.rounds} rounds lay in the first batch: nothing is left to measure"
        raise RuntimeError(message)
    seconds, spent = last.at - first.at, last.spent.since(first.spent)
    lag = sum(batch.rows.get("lag", 0) for batch in job.batches[1:])
    return [
        Figure(
            "downtime: a backlog with rounds in it",
            f"{rounds * _INTERVAL_S / seconds:,.0f} x as it came in",
            "10 x",
            f"{rounds} rounds of {size.groups:,} groups x {size.partitions} partitions in {seconds:.1f} s, "
            f"{len(job.batches) - 1} batches, {lag:,} rows of lag",
        ),
        Figure(
            "  its processor time a round",
            f"{spent.total / rounds:.2f} s",
            "",
            f"driver {spent.driver / rounds:.2f} s, jvm {spent.jvm / rounds:.2f} s, "
            f"workers {spent.workers / rounds:.2f} s",
        ),
        Figure("  memory", f"{sum(job.largest_memory.values()) / 2**20:,.0f} MB", "", memory_of(job)),
    ]
