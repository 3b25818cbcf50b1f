"""How fast a job reads a backlog: a million offset commits without a round, then one round; twice.

A record batch contains one record per partition of a group, as from a commit request. The first million is the first
batch of a new process, in which the JVM loads and compiles its code and every Python process imports its modules; the
second follows at once and shows the cost of reading. With `--full` it is twenty million.
"""

from __future__ import annotations

from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.figure import Figure, Say
from tests.benchmarks.made_groups import MadeGroups
from tests.benchmarks.measured_job import measure_job, memory_of

_NAME = "backlog"
_SAY_EVERY = 10


def catch_up(
    cluster: BenchCluster, say: Say, *, groups: int = 1_000, partitions: int = 10, cold: int = 100, warm: int = 100
) -> list[Figure]:
    """Run the benchmark.

    Args:
        cluster: Broker and folder.
        say: Shows the progress.
        groups: Groups of two members each.
        partitions: Partitions per group.
        cold: Commits per partition in the first batch.
        warm: Commits per partition in the second batch.
    """
    settings = cluster.settings(_NAME, max_rounds=1)
    each = groups * partitions
    with MadeGroups(settings, groups, partitions) as made:
        made.rebalance(made.groups)
        for commits in (cold, warm):
            for begun in range(0, commits, _SAY_EVERY):
                made.commit(min(_SAY_EVERY, commits - begun))
                say(f"written {made.records:,} of {each * (cold + warm):,} records")
            made.round()
    job = measure_job(settings, cluster.folder, say)
    before, after = job.batches
    first, records = each * cold, each * warm
    seconds, from_query, from_start = after.at - before.at, before.at - job.query, before.at - job.began
    spent = {"warm": after.spent.since(before.spent), "cold": before.spent.since(job.spent_on_start)}
    told = {
        name: f"processor: {s.total:.1f} s (driver {s.driver:.1f}, jvm {s.jvm:.1f}, workers {s.workers:.1f})"
        for name, s in spent.items()
    }
    return [
        Figure(
            "catch-up, end to end into tables",
            f"{records / seconds:,.0f} records/s",
            "1,000,000/s",
            f"{records:,} commits of {groups:,} groups x {partitions} partitions in {seconds:.1f} s, "
            f"after a first batch; {told['warm']}",
        ),
        Figure(
            "  as the first batch",
            f"{first / from_query:,.0f} records/s",
            "",
            f"{first:,} in {from_query:.1f} s from the query's start; {told['cold']}",
        ),
        Figure(
            "  with the session's start",
            f"{from_start:.1f} s",
            "25 s",
            f"from the start of the process to its first rows: {first / from_start:,.0f} records/s",
        ),
        Figure("  memory", f"{sum(job.largest_memory.values()) / 2**20:,.0f} MB", "", memory_of(job)),
    ]
