"""The assignors of Kafka's brokers (KIP-848) compared with Kafka's own classes."""

from __future__ import annotations

from pathlib import Path

from assignors import Assignment
from assignors.brokers import assign_on_server
from tests.benchmarks.assign_groups import server_group, topic_id
from tests.benchmarks.assign_times import Size, best, checksum, compared, java_times
from tests.benchmarks.figure import Figure, Say

__all__ = ["server_assignments"]

_SOURCE = Path(__file__).with_name("AssignServerTimes.java")

_SIZES = (
    Size("server-range", "RangeAssignor", 2_000, 500, 2_000, joins=False),
    Size("server-uniform", "UniformAssignor", 2_000, 500, 2_000),
    Size("server-uniform", "UniformAssignor", 1_000, 100, 500, 5, full_aim="1 x", join_aim="1 x"),
    Size("server-uniform", "UniformAssignor", 10, 1, 100, full_aim="1 ms", join_aim="1 ms"),
)


def server_assignments(say: Say) -> list[Figure]:
    """Time our code and Java's; a figure per group for a first target, and one for a member that joins.

    Raises:
        RuntimeError: Java failed, or its result differs.
    """
    return [figure for size in _SIZES for figure in _brokers(size, say)]


def _brokers(size: Size, say: Say) -> list[Figure]:
    say(f"{size.name}, Java")
    java = java_times(_SOURCE, size)
    say(f"{size.name}, ours")
    numbers = {topic_id(topic): topic for topic in range(size.topics)}
    figures = []
    before: Assignment | None = None
    lines = [(size.name, size.full_aim)]
    if size.joins:
        lines.append(("  one member joins", size.join_aim))
    for theirs, (name, aim) in zip(java, lines, strict=True):
        ms, before = best(size.runs, assign_on_server, size.strategy, server_group(size, before))
        figures.append(compared(name, ms, aim, checksum(before, numbers.__getitem__), theirs))
    return figures
