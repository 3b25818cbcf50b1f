"""Recomputed assignments compared with Kafka's own classes: clients, brokers, and small groups for all strategies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from assignors import Assignment, Group, assign, pack
from tests.benchmarks.assign_everyday import everyday
from tests.benchmarks.assign_groups import client_group
from tests.benchmarks.assign_server import server_assignments
from tests.benchmarks.assign_times import Size, best, checksum, compared, java_times
from tests.benchmarks.figure import Figure, Say

__all__ = ["assignments"]

_SOURCE = Path(__file__).with_name("AssignTimes.java")
_COOPERATIVE = "CooperativeStickyAssignor"

_SIZES = (
    Size("range", "RangeAssignor", 2_000, 500, 2_000, joins=False, full_aim="5 x"),
    Size("roundrobin", "RoundRobinAssignor", 2_000, 500, 2_000, joins=False, full_aim="5 x"),
    Size("cooperative-sticky", _COOPERATIVE, 2_000, 500, 2_000, full_aim="2 x", join_aim="10 x"),
    Size("cooperative-sticky", _COOPERATIVE, 1_000, 100, 500, 5, join_aim="1,000 ms", java_limit=True),
    Size("cooperative-sticky", _COOPERATIVE, 10, 1, 100, full_aim="1 ms", join_aim="1 ms"),
)


def assignments(say: Say) -> list[Figure]:
    """Time our code and Java's; a figure per group for a first assignment, and one for a member that joins.

    Raises:
        RuntimeError: Java failed, or its result differs.
    """
    figures: list[Figure] = []
    for size in _SIZES:
        figures += _clients(size, say)
    return [*figures, *server_assignments(say), *everyday(say)]


def _clients(size: Size, say: Say) -> list[Figure]:
    say(f"{size.name}, Java")
    java = java_times(_SOURCE, size)
    say(f"{size.name}, ours")

    def timed(name: str, group: Group, aim: str, place: int) -> tuple[Figure, Assignment]:
        ms, result = best(size.runs, assign, size.strategy, group)
        theirs = java[place] if place < len(java) else None
        sum_ = checksum(result, lambda topic: int(topic.removeprefix("topic")))
        return compared(name, ms, aim, sum_, theirs), result

    figure, first = timed(size.name, client_group(size), size.full_aim, 0)
    figures = [figure]
    if size.joins:
        group = client_group(size, first)
        packed = replace(group, members=tuple(replace(member, owned=pack(member.owned)) for member in group.members))
        figures.append(timed("  one member joins", packed, size.join_aim, 1)[0])
        figures.append(timed("  the same, owned partitions as tuples", group, size.join_aim, 1)[0])
    return figures
