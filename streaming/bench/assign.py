"""Recomputing assignments, beside Kafka's own classes on the same groups in the same run.

Groups as in Kafka's own scale tests: members m, topics t with as many partitions each, subscriptions equal or in
disjoint buckets. Java is warmed up first; both sides show their best of several. A checksum holds that both computed
the same.
"""

from __future__ import annotations

import os
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from assignors import Assignment, Group, Subscription, assign
from streaming.bench.figure import Figure, Say
from streaming.jars import classpath
from streaming.java import find_java

__all__ = ["assignments"]

_SOURCE = Path(__file__).with_name("AssignTimes.java")
_JARS = "broker"  # kafka-clients of the newest release is among them
_RUNS = 5
# Java takes minutes for a change among different subscriptions: longer than this nobody waits for it here.
_JAVA_LIMIT_S = 60
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class _Size:
    """A group, and what we mean to reach: how many times faster than Java, or a time in ms."""

    strategy: str
    java_class: str
    members: int
    topics: int
    partitions: int
    buckets: int = 1
    full_aim: str = ""
    join_aim: str = ""
    java_limit: bool = False

    @property
    def name(self) -> str:
        total = self.topics * self.partitions
        different = ", different subscriptions" if self.buckets > 1 else ""
        return f"{self.strategy}, {self.members:,} members x {total:,} partitions{different}"


_SIZES = (
    _Size("range", "RangeAssignor", 2_000, 500, 2_000, full_aim="5 x"),
    _Size("roundrobin", "RoundRobinAssignor", 2_000, 500, 2_000, full_aim="5 x"),
    _Size("cooperative-sticky", "CooperativeStickyAssignor", 2_000, 500, 2_000, full_aim="2 x", join_aim="10 x"),
    _Size("cooperative-sticky", "CooperativeStickyAssignor", 1_000, 100, 500, 5, join_aim="1,000 ms", java_limit=True),
    _Size("cooperative-sticky", "CooperativeStickyAssignor", 10, 1, 100, full_aim="1 ms", join_aim="1 ms"),
)


def assignments(say: Say) -> list[Figure]:
    """Time ours and Java's; a figure a group for a first assignment, and one for a member that joins.

    Raises:
        RuntimeError: Java failed, or did not compute the same.
    """
    figures = []
    for size in _SIZES:
        say(f"{size.name}, Java")
        java = _java(size)
        say(f"{size.name}, ours")
        ours = [_best(size, None)]
        if "sticky" in size.strategy:
            ours.append(_best(size, ours[0][1]))
        for number, (ms, result) in enumerate(ours):
            theirs = java[number] if number < len(java) else None
            if theirs is not None and theirs[1] != _checksum(result):
                message = f"{size.name}: Java computed something else"
                raise RuntimeError(message)
            note = (
                f"Java over {_JAVA_LIMIT_S} s"
                if theirs is None
                else f"Java {theirs[0]:,.1f} ms: {theirs[0] / ms:.1f} x"
            )
            name, aim = (size.name, size.full_aim) if number == 0 else ("  one member joins", size.join_aim)
            figures.append(Figure(name, f"{ms:,.1f} ms", aim, note))
    return figures


def _java(size: _Size) -> list[tuple[float, int]]:
    """Best time in ms and checksum, of a first assignment and of a join; what took too long is missing."""
    runs = 1 if size.java_limit else _RUNS
    sizes = (size.members, size.topics, size.partitions, size.buckets, runs)
    jars = os.pathsep.join(map(str, classpath(_JARS)))
    command = [str(find_java()), "-Xmx4g", "-cp", jars, str(_SOURCE), size.java_class, *map(str, sizes)]
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=_JAVA_LIMIT_S if size.java_limit else 600
        )
        output = run.stdout
    except subprocess.TimeoutExpired as expired:
        output = (expired.stdout or b"").decode() if isinstance(expired.stdout, bytes) else expired.stdout or ""
    except subprocess.CalledProcessError as error:
        message = f"Java ended with {error.returncode}: {str(error.stderr)[-300:]}"
        raise RuntimeError(message) from None
    return [(float(ms), int(sum_)) for ms, sum_ in (line.split() for line in output.splitlines())]


def _best(size: _Size, before: Assignment | None) -> tuple[float, Assignment]:
    group = _group(size, before)
    runs = _RUNS if size.members > 100 else 50

    def once() -> tuple[float, Assignment]:
        start = time.perf_counter()
        result = assign(size.strategy, group)
        return (time.perf_counter() - start) * 1000, result

    return _smallest(once, runs)


def _smallest(once: Callable[[], tuple[float, Assignment]], runs: int) -> tuple[float, Assignment]:
    best, result = once()
    for _ in range(runs - 1):
        best = min(best, once()[0])
    return best, result


def _group(size: _Size, before: Assignment | None) -> Group:
    members = [_member(size, number, f"member{number}", before) for number in range(size.members)]
    if before is not None:
        members.append(_member(size, 0, "newcomer", before))
    return Group(tuple(members), {f"topic{topic}": size.partitions for topic in range(size.topics)})


def _member(size: _Size, number: int, member_id: str, before: Assignment | None) -> Subscription:
    bucket = number % size.buckets
    topics = range(bucket * size.topics // size.buckets, (bucket + 1) * size.topics // size.buckets)
    had = None if before is None else before.get(member_id)
    owned = () if had is None else tuple((topic, tuple(partitions)) for topic, partitions in sorted(had.items()))
    return Subscription(
        member_id,
        tuple(sorted(f"topic{topic}" for topic in topics)),
        owned=owned,
        generation=None if had is None else 1,
        user_data=struct.pack(">i", -1 if had is None else 1),
    )


def _checksum(result: Assignment) -> int:
    total = 0
    for member_id, topics in result.items():
        member = len(result) if member_id == "newcomer" else int(member_id.removeprefix("member")) + 1
        for topic, partitions in topics.items():
            number = int(topic.removeprefix("topic"))
            total += member * (len(partitions) * (number * 1_000_003 + 1) + sum(partitions))
    return total & _MASK
