"""How fast a job reads what has piled up: a million offset commits and no round among them, then one round; twice.

Commits lie in batches of ten records, as groups of ten partitions leave them. The first million is the first batch
of a new process, in which the JVM loads and compiles what it runs and every Python process imports; the second
million comes right after, and tells what reading costs.
"""

from __future__ import annotations

from dataclasses import dataclass

from streaming.bench.figure import Figure, Say
from streaming.bench.made_groups import MadeGroups
from streaming.bench.measured_job import JobReport, measure_job
from streaming.bench.place import Place

__all__ = ["CatchUpSize", "catch_up"]

_NAME = "backlog"
_BATCHES = 2


@dataclass(frozen=True, slots=True)
class CatchUpSize:
    """How much is measured.

    Attributes:
        groups: Groups, of two members.
        partitions: Partitions of each.
        commits: Commits of each partition in a batch.
    """

    groups: int = 1_000
    partitions: int = 10
    commits: int = 100


def catch_up(place: Place, say: Say, size: CatchUpSize | None = None) -> list[Figure]:
    """Measure it.

    Args:
        place: Where.
        say: Told how far it is.
        size: How much; None for what the README promises.
    """
    size = size or CatchUpSize()
    settings = place.settings(_NAME, max_rounds=1)
    with MadeGroups(settings, size.groups, size.partitions) as made:
        made.rebalance(made.groups)
        for _ in range(_BATCHES):
            for _ in range(size.commits):
                made.commit()
                say(f"written {made.records:,} of {_BATCHES * size.groups * size.partitions * size.commits:,} records")
            made.round()
    return _figures(size, measure_job(settings, place.folder, say))


def _figures(size: CatchUpSize, job: JobReport) -> list[Figure]:
    cold, warm = job.batches
    records = size.groups * size.partitions * size.commits
    seconds, from_query, from_start = warm.at - cold.at, cold.at - job.query, cold.at - job.began
    spent = {"warm": warm.spent.since(cold.spent), "cold": cold.spent.since(job.spent_on_start)}
    told = {
        name: f"processor: {s.total:.1f} s (driver {s.driver:.1f}, jvm {s.jvm:.1f}, workers {s.workers:.1f})"
        for name, s in spent.items()
    }
    return [
        Figure(
            "catch-up, end to end into tables",
            f"{records / seconds:,.0f} records/s",
            "100,000/s",
            f"{records:,} commits of {size.groups:,} groups x {size.partitions} partitions in {seconds:.1f} s, "
            f"after a first batch; {told['warm']}",
        ),
        Figure(
            "  as the first batch",
            f"{records / from_query:,.0f} records/s",
            "",
            f"the same number in {from_query:.1f} s from the query's start; {told['cold']}",
        ),
        Figure(
            "  with the session's start",
            f"{records / from_start:,.0f} records/s",
            "",
            f"{from_start:.1f} s from the start of the process to its first rows",
        ),
    ]
