"""Timing of an assignment compared with Kafka's own class on the same group in the same run.

Groups as in Kafka's own scale tests: members m, topics t with as many partitions each, subscriptions equal or in
disjoint buckets. Java is warmed up first; both sides show the best of several runs. A checksum verifies that both
results are the same.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec

from assignors import Assignment
from streaming.jars import classpath
from streaming.java import find_java
from tests.benchmarks.figure import Figure

__all__ = ["NEWCOMER", "Size", "best", "checksum", "compared", "java_times"]

NEWCOMER = "newcomer"
"""Member id of the joining member; the others are member0, member1 and so on."""

_JARS = "broker"  # clients and group coordinator of the newest release are among them
_RUNS = 5
_SMALL_RUNS = 300
# Java takes minutes for some changes of groups with different subscriptions; we do not wait longer than this.
_JAVA_LIMIT_S = 60
_JAVA_STUCK_S = 600
_P = ParamSpec("_P")

_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Size:
    """A group, and the target: how many times faster than Java, or a time in ms.

    Attributes:
        strategy: Our name for the strategy.
        java_class: Java's name for it.
        members: Members before the join.
        topics: Number of topics.
        partitions: Partitions of each topic.
        buckets: Number of different subscriptions; the topics are divided among them.
        joins: Whether the strategy uses earlier assignments, so that a join is measured, too.
        full_aim: Target for a first assignment.
        join_aim: Target for a join.
        java_limit: Whether Java may take minutes for a join: then it runs once, for a minute at most.
    """

    strategy: str
    java_class: str
    members: int
    topics: int
    partitions: int
    buckets: int = 1
    joins: bool = True
    full_aim: str = ""
    join_aim: str = ""
    java_limit: bool = False

    @property
    def name(self) -> str:
        """The name in the table."""
        total = self.topics * self.partitions
        different = ", different subscriptions" if self.buckets > 1 else ""
        return f"{self.strategy}, {self.members:,} members x {total:,} partitions{different}"

    @property
    def runs(self) -> int:
        """How often our code runs."""
        return _RUNS if self.members > 100 else _SMALL_RUNS

    def bucket(self, member: int) -> range:
        """Topics of a member, by number."""
        bucket = member % self.buckets
        return range(bucket * self.topics // self.buckets, (bucket + 1) * self.topics // self.buckets)


def java_times(source: Path, size: Size) -> list[tuple[float, int]]:
    """Best time in ms and checksum of a first assignment and of a join; a join that took too long is missing.

    Raises:
        RuntimeError: Java failed, or did not end.
    """
    # (Java needs hundreds of runs until it has compiled the code that a small group needs.)
    numbers = [size.members, size.topics, size.partitions, size.buckets, size.runs]
    if size.java_limit:
        numbers.append(_JAVA_LIMIT_S)
    jars = os.pathsep.join(map(str, classpath(_JARS)))
    command = [str(find_java()), "-Xmx4g", "-cp", jars, str(source), size.java_class, *map(str, numbers)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_JAVA_STUCK_S)
    except subprocess.TimeoutExpired:
        message = f"{size.name}: Java was not done after {_JAVA_STUCK_S} s"
        raise RuntimeError(message) from None
    except subprocess.CalledProcessError as error:
        message = f"Java ended with {error.returncode}: {str(error.stderr)[-300:]}"
        raise RuntimeError(message) from None
    return [(float(ms), int(sum_)) for ms, sum_ in (line.split() for line in run.stdout.splitlines())]


def best(runs: int, call: Callable[_P, Assignment], *args: _P.args, **kwargs: _P.kwargs) -> tuple[float, Assignment]:
    """Shortest time of a call in ms, and the result."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        result = call(*args, **kwargs)
        times.append((time.perf_counter() - start) * 1000)
    return min(times), result


def compared(name: str, ms: float, aim: str, sum_: int, java: tuple[float, int] | None) -> Figure:
    """A line of the table.

    Raises:
        RuntimeError: Java's result differs.
    """
    if java is None:
        return Figure(name, f"{ms:,.1f} ms", aim, f"Java over {_JAVA_LIMIT_S} s")
    if java[1] != sum_:
        message = f"{name}: Java computed something else"
        raise RuntimeError(message)
    return Figure(name, _ms(ms), aim, f"Java {_ms(java[0])}: {java[0] / ms:.1f} x")


def checksum(result: Assignment, topic_number: Callable[[str], int]) -> int:
    """The sum that the Java programs print."""
    total = 0
    for member_id, topics in result.items():
        member = len(result) if member_id == NEWCOMER else int(member_id.removeprefix("member")) + 1
        for topic, partitions in topics.items():
            total += member * (len(partitions) * (topic_number(topic) * 1_000_003 + 1) + sum(partitions))
    return total & _MASK


def _ms(ms: float) -> str:
    return f"{ms:,.1f} ms" if ms >= 1 else f"{ms:.2f} ms"
