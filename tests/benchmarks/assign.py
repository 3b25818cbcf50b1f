"""Recomputed assignments of leaders and of brokers (KIP-848), beside Kafka's own classes on the same groups.

Groups as in Kafka's own scale tests: members m, topics t with as many partitions each, subscriptions equal or in
disjoint buckets. Java is warmed up first; both sides show the best of several runs. A checksum verifies that both
results are the same.
"""

from __future__ import annotations

import os
import struct
import subprocess
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec

from assignors import Assignment, Group, Subscription, assign
from assignors.brokers import ServerGroup, ServerMember, ServerTopic, assign_on_server
from streaming.jars import classpath, find_java
from tests.benchmarks.figure import Figure, Say

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


_SOURCE = Path(__file__).with_name("AssignTimes.java")
_COOPERATIVE = "CooperativeStickyAssignor"

_SIZES = (
    Size("range", "RangeAssignor", 2_000, 500, 2_000, joins=False, full_aim="5 x"),
    Size("roundrobin", "RoundRobinAssignor", 2_000, 500, 2_000, joins=False, full_aim="5 x"),
    Size("cooperative-sticky", _COOPERATIVE, 2_000, 500, 2_000, full_aim="2 x", join_aim="10 x"),
    Size("cooperative-sticky", _COOPERATIVE, 1_000, 100, 500, 5, join_aim="1,000 ms", java_limit=True),
    Size("cooperative-sticky", _COOPERATIVE, 10, 1, 100, full_aim="1 ms", join_aim="1 ms"),
)

_SERVER_SOURCE = Path(__file__).with_name("AssignServerTimes.java")

_SERVER_SIZES = (
    Size("server-range", "RangeAssignor", 2_000, 500, 2_000, joins=False),
    Size("server-uniform", "UniformAssignor", 2_000, 500, 2_000),
    Size("server-uniform", "UniformAssignor", 1_000, 100, 500, 5, full_aim="1 x", join_aim="1 x"),
    Size("server-uniform", "UniformAssignor", 10, 1, 100, full_aim="1 ms", join_aim="1 ms"),
)


def assignments(say: Say) -> list[Figure]:
    """Time our code and Java's; a figure per group for a first assignment, and one for a member that joins.

    Raises:
        RuntimeError: Java failed, or its result differs.
    """
    figures: list[Figure] = []
    for size in _SIZES:
        figures += _clients(size, say)
    return [*figures, *(figure for size in _SERVER_SIZES for figure in _brokers(size, say))]


def _clients(size: Size, say: Say) -> list[Figure]:
    say(f"{size.name}, Java")
    java = _java_times(_SOURCE, size)
    say(f"{size.name}, ours")

    def timed(name: str, group: Group, aim: str, place: int) -> tuple[Figure, Assignment]:
        ms, result = _best(size.runs, assign, size.strategy, group)
        theirs = java[place] if place < len(java) else None
        sum_ = checksum(result, lambda topic: int(topic.removeprefix("topic")))
        return compared(name, ms, aim, sum_, theirs), result

    figure, first = timed(size.name, client_group(size), size.full_aim, 0)
    figures = [figure]
    if size.joins:
        figures.append(timed("  one member joins", client_group(size, first), size.join_aim, 1)[0])
    return figures


def _brokers(size: Size, say: Say) -> list[Figure]:
    say(f"{size.name}, Java")
    java = _java_times(_SERVER_SOURCE, size)
    say(f"{size.name}, ours")
    numbers = {topic_id(topic): topic for topic in range(size.topics)}
    figures = []
    before: Assignment | None = None
    lines = [(size.name, size.full_aim)]
    if size.joins:
        lines.append(("  one member joins", size.join_aim))
    for theirs, (name, aim) in zip(java, lines, strict=True):
        ms, before = _best(size.runs, assign_on_server, size.strategy, server_group(size, before))
        figures.append(compared(name, ms, aim, checksum(before, numbers.__getitem__), theirs))
    return figures


# The groups; the Java programs in this folder build the same ones.


def client_group(size: Size, before: Assignment | None = None) -> Group:
    """A group without earlier assignments; or one whose members own their assignment, plus a new member."""
    members = [_member(size, number, member_id, before) for number, member_id in enumerate(_member_ids(size))]
    if before is not None:
        members.append(_member(size, 0, NEWCOMER, before))
    return Group(tuple(members), {f"topic{topic}": size.partitions for topic in range(size.topics)})


def _member(size: Size, number: int, member_id: str, before: Assignment | None) -> Subscription:
    had = None if before is None else before.get(member_id)
    owned = () if had is None else tuple((topic, tuple(partitions)) for topic, partitions in sorted(had.items()))
    return Subscription(
        member_id,
        tuple(sorted(f"topic{topic}" for topic in size.bucket(number))),
        owned=owned,
        generation=None if had is None else 1,
        user_data=struct.pack(">i", -1 if had is None else 1),
    )


def server_group(size: Size, before: Assignment | None = None) -> ServerGroup:
    """A group without earlier targets; or one whose members have their assignment as target, plus a new member."""
    members = [_server_member(size, number, member_id, before) for number, member_id in enumerate(_member_ids(size))]
    if before is not None:
        members.append(_server_member(size, 0, NEWCOMER, before))
    return ServerGroup(
        tuple(members),
        {f"topic{topic}": ServerTopic(topic_id(topic), size.partitions) for topic in range(size.topics)},
    )


def _server_member(size: Size, number: int, member_id: str, before: Assignment | None) -> ServerMember:
    had = {} if before is None else before.get(member_id, {})
    target = tuple(
        (one, tuple(sorted(had[one])))
        for one in map(topic_id, range(size.topics))
        if one in had
    )  # fmt: skip
    return ServerMember(member_id, tuple(f"topic{topic}" for topic in size.bucket(number)), target=target)


def topic_id(topic: int) -> str:
    """Pseudo-random bits, the same here and in Java."""
    halves = (topic + 1) * 0x9E3779B97F4A7C15 & _MASK, (topic + 1) * 0xC2B2AE3D27D4EB4F & _MASK
    return urlsafe_b64encode(b"".join(half.to_bytes(8, "big") for half in halves)).rstrip(b"=").decode("ascii")


def _member_ids(size: Size) -> list[str]:
    """Ids of the members before the join, by number."""
    return [f"member{number}" for number in range(size.members)]


def _java_times(source: Path, size: Size) -> list[tuple[float, int]]:
    """Best time in ms and checksum of a first assignment and of a join; a join that took too long is missing.

    Raises:
        RuntimeError: Java failed, or did not end.
    """
    # Java needs hundreds of runs until it has compiled the code that a small group needs.
    numbers = [size.members, size.topics, size.partitions, size.buckets, size.runs]
    if size.java_limit:
        numbers.append(_JAVA_LIMIT_S)
    jars = os.pathsep.join(map(str, classpath(_JARS)))
    command = [str(find_java()), "-Xmx4g", "-cp", jars, str(source), size.java_class, *map(str, numbers)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_JAVA_STUCK_S)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{size.name}: Java was not done after {_JAVA_STUCK_S} s") from None
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"Java ended with {error.returncode}: {str(error.stderr)[-300:]}") from None
    return [(float(ms), int(sum_)) for ms, sum_ in (line.split() for line in run.stdout.splitlines())]


def _best(runs: int, call: Callable[_P, Assignment], *args: _P.args, **kwargs: _P.kwargs) -> tuple[float, Assignment]:
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
        raise RuntimeError(f"{name}: Java computed something else")
    return Figure(name, _as_text(ms), aim, f"Java {_as_text(java[0])}: {java[0] / ms:.1f} x")


def checksum(result: Assignment, topic_number: Callable[[str], int]) -> int:
    """The sum that the Java programs print."""
    total = 0
    for member_id, topics in result.items():
        member = len(result) if member_id == NEWCOMER else int(member_id.removeprefix("member")) + 1
        for topic, partitions in topics.items():
            total += member * (len(partitions) * (topic_number(topic) * 1_000_003 + 1) + sum(partitions))
    return total & _MASK


def _as_text(ms: float) -> str:
    return f"{ms:,.1f} ms" if ms >= 1 else f"{ms:.2f} ms"
