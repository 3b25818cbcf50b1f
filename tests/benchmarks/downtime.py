"""A job that was down while rounds continued: how many times faster than real time is the backlog read?

Groups commit each partition twice a round, every end offset grows, and the job's batches have the default number of
rounds. The first batch belongs to a new process; the others count.
"""

from __future__ import annotations

from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.figure import Figure, Say
from tests.benchmarks.made_groups import MadeGroups
from tests.benchmarks.measured_job import measure_job, memory_of

_NAME = "downtime"
_GROUPS, _PARTITIONS = 1_000, 10
_COMMITS_A_ROUND = 2
_INTERVAL_S = 10
"""Interval of rounds in a live cluster; these are written as fast as possible."""


def downtime(cluster: BenchCluster, say: Say, *, missed: int = 60, rounds_a_batch: int = 20) -> list[Figure]:
    """Run the benchmark.

    Args:
        cluster: Broker and folder.
        say: Shows the progress.
        missed: Rounds that were missed.
        rounds_a_batch: Most rounds in one batch of the job.
    """
    settings = cluster.settings(_NAME, max_rounds=rounds_a_batch)
    with MadeGroups(settings, _GROUPS, _PARTITIONS) as made:
        made.rebalance(made.groups)
        for number in range(missed):
            say(f"writing round {number + 1} of {missed}")
            made.commit(_COMMITS_A_ROUND)
            made.round()
    job = measure_job(settings, cluster.folder, say)
    first, last = job.batches[0], job.batches[-1]
    rounds = missed - first.rows.get("rounds", 0)
    if not rounds:
        raise RuntimeError(f"all {missed} rounds lay in the first batch: nothing is left to measure")
    seconds, spent = last.at - first.at, last.spent.since(first.spent)
    lag = sum(batch.rows.get("lag", 0) for batch in job.batches[1:])
    return [
        Figure(
            "downtime: a backlog with rounds in it",
            f"{rounds * _INTERVAL_S / seconds:,.0f} x as it came in",
            "10 x",
            f"{rounds} rounds of {_GROUPS:,} groups x {_PARTITIONS} partitions in {seconds:.1f} s, "
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
