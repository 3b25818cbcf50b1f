"""Recomputed assignments of leaders and of brokers (KIP-848), beside Kafka's own classes on the same groups."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64encode
from dataclasses import replace
from pathlib import Path

from assignors import Assignment, Group, Subscription, assign, pack
from assignors.brokers import ServerGroup, ServerMember, ServerTopic, assign_on_server
from tests.benchmarks.assign_times import NEWCOMER, Size, best, checksum, compared, java_times
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

_SERVER_SOURCE = Path(__file__).with_name("AssignServerTimes.java")

_SERVER_SIZES = (
    Size("server-range", "RangeAssignor", 2_000, 500, 2_000, joins=False),
    Size("server-uniform", "UniformAssignor", 2_000, 500, 2_000),
    Size("server-uniform", "UniformAssignor", 1_000, 100, 500, 5, full_aim="1 x", join_aim="1 x"),
    Size("server-uniform", "UniformAssignor", 10, 1, 100, full_aim="1 ms", join_aim="1 ms"),
)

_MASK = (1 << 64) - 1


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


def _brokers(size: Size, say: Say) -> list[Figure]:
    say(f"{size.name}, Java")
    java = java_times(_SERVER_SOURCE, size)
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
