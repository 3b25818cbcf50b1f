"""How fast a job reads what has piled up: a million offset commits and no round among them, then one round.

Commits lie in batches of ten records, as groups of ten partitions leave them. The clock runs from the query's start
to the last append, on two cores if the machine has no more; the session's start is told beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from streaming.bench.figure import Figure, Say
from streaming.bench.made_groups import MadeGroups
from streaming.bench.measured_job import measure_job
from streaming.bench.place import Place

__all__ = ["CatchUpSize", "catch_up"]

_NAME = "backlog"


@dataclass(frozen=True, slots=True)
class CatchUpSize:
    """How much is measured.

    Attributes:
        groups: Groups, of two members.
        partitions: Partitions of each.
        commits: Commits of each partition.
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
    settings = place.settings(_NAME)
    with MadeGroups(settings, size.groups, size.partitions) as made:
        made.rebalance(made.groups)
        for _ in range(size.commits):
            say(f"writing {made.records:,} of {size.groups * size.partitions * size.commits:,} records")
            made.commit()
        made.round()
        records = made.records
    job = measure_job(settings, place.folder, say)
    (last,) = job.batches
    seconds, cold = last.at - job.session, last.at - job.began
    spent = last.spent.since(job.spent_on_start)
    return [
        Figure(
            "catch-up, end to end into tables",
            f"{records / seconds:,.0f} records/s",
            "100,000/s",
            f"{records:,} records of {size.groups:,} groups x {size.partitions} partitions in {seconds:.1f} s, "
            "one batch, from a new session on",
        ),
        Figure(
            "  with the start of the session",
            f"{records / cold:,.0f} records/s",
            "",
            f"{cold:.1f} s from the start of the process to the last row",
        ),
        Figure(
            "  its processor time",
            f"{spent.total:.1f} s",
            "",
            f"driver {spent.driver:.1f} s, jvm {spent.jvm:.1f} s, workers {spent.workers:.1f} s",
        ),
    ]
