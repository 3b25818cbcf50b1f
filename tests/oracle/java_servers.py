"""The assignors of Kafka's brokers (KIP-848, KIP-932) of several releases, called in batches: one JVM per release."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import starmap

from assignors.brokers import ServerGroup, ServerMember, ServerTopic, Target
from tests.oracle.java_runner import JavaRunner, Thrown, hexed, joined, thrown_in, unhexed

RELEASES = ("4.0.0", "4.0.1", "4.4.0")

SHARE_RELEASES = ("4.2.0", "4.4.0")
"""The first in which share groups are production-ready, and the newest."""


@dataclass(frozen=True)
class ServerCase:
    """One call of an assignor."""

    strategy: str
    group: ServerGroup


class Servers(JavaRunner):
    """The real classes of one release; a context manager."""

    def __init__(self, release: str) -> None:
        super().__init__("ServerAssignorRunner.java", f"server-{release}", against=f"server-{RELEASES[0]}")

    def assign(self, cases: list[ServerCase]) -> list[dict[str, Target] | Thrown]:
        """Per member a target in the order of the class's maps, as in the next record."""
        return [thrown_in(answer) or _read(answer) for answer in self.ask([_line(case) for case in cases])]


def _line(case: ServerCase) -> str:
    topics = ";".join(starmap(_listed, case.group.topics.items()))
    return f"{case.strategy}\t{topics}\t{';'.join(map(_member, case.group.members))}"


def _listed(name: str, topic: ServerTopic) -> str:
    initialized = "-" if topic.initialized is None else "+".join(map(str, topic.initialized))
    return f"{hexed(name)}:{topic.topic_id}:{topic.partitions}:{initialized}"


def _member(member: ServerMember) -> str:
    target = ",".join(f"{topic_id}={'+'.join(map(str, partitions))}" for topic_id, partitions in member.target)
    return ":".join((hexed(member.member_id), hexed(member.group_instance_id), joined(",", member.topics), target))


def _read(answer: str) -> dict[str, Target]:
    members: dict[str, Target] = {}
    for member in answer.split(";") if answer else ():
        member_id, _, target = member.partition(":")
        members[unhexed(member_id)] = tuple(map(_topic, target.split(","))) if target else ()
    return members


def _topic(text: str) -> tuple[str, tuple[int, ...]]:
    topic_id, _, partitions = text.partition("=")
    return topic_id, tuple(map(int, partitions.split("+"))) if partitions else ()
