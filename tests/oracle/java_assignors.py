"""Kafka's own client assignors of several releases, called in batches: one JVM per release and batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assignors import Assignment, Group, PartitionRacks, from_pairs
from tests.oracle.java_runner import JavaRunner, Thrown, hexed, joined, thrown_in, unhexed

RELEASES = ("2.4.1", "3.4.1", "3.5.1", "3.7.1", "4.3.1")
# One per era of the sticky strategies: 3.4.0 differs from 3.0 in its input, 4.3.1 behaves like 3.7.1.
STICKY_RELEASES = ("2.4.1", "2.5.1", "2.8.1", "3.0.2", "3.4.0", "3.4.1", "3.5.1", "3.5.2", "3.7.1", "4.3.1")


@dataclass(frozen=True)
class Case:
    """One call of an assignor."""

    strategy: str
    group: Group
    racks: PartitionRacks | None = None


def ask_java(release: str, cases: Sequence[Case]) -> list[Assignment | Thrown]:
    """Results of the real classes of one release; per member a topic's partitions in the class's order."""
    return [lists if isinstance(lists, Thrown) else from_pairs(lists) for lists in ask_java_for_lists(release, cases)]


def ask_java_for_lists(release: str, cases: Sequence[Case]) -> list[dict[str, list[tuple[str, int]]] | Thrown]:
    """The same as lists of (topic, partition) per member, in the class's order."""
    # The classes that it calls are alike in all releases; it finds the one constructor that is not by itself.
    with JavaRunner("AssignorRunner.java", f"clients-{release}", against=f"clients-{RELEASES[0]}") as classes:
        return [thrown_in(answer) or _read(answer) for answer in classes.ask([_line(case) for case in cases])]


def _line(case: Case) -> str:
    topics = ";".join(
        f"{hexed(topic)}:{count}{_racks_of(topic, case.racks)}"
        for topic, count in case.group.partitions_per_topic.items()
    )
    members = ";".join(
        ":".join(
            (
                hexed(member.member_id),
                hexed(member.group_instance_id),
                hexed(member.rack),
                joined(",", member.topics),
                ",".join(f"{hexed(topic)}={p}" for topic, parts in member.owned for p in parts),
                "-" if member.generation is None else str(member.generation),
                "-" if member.user_data is None else member.user_data.hex(),
            )
        )
        for member in case.group.members
    )
    return f"{case.strategy}\t{topics}\t{members}"


def _racks_of(topic: str, racks: PartitionRacks | None) -> str:
    if racks is None or topic not in racks:
        return ""
    return ":" + ",".join(joined("+", of_partition) for of_partition in racks[topic])


def _read(answer: str) -> dict[str, list[tuple[str, int]]]:
    members: dict[str, list[tuple[str, int]]] = {}
    for member in answer.split(";"):
        member_id, _, pairs = member.partition(":")
        members[unhexed(member_id)] = list(_pairs(pairs))
    return members


def _pairs(text: str) -> Iterable[tuple[str, int]]:
    for pair in text.split(",") if text else ():
        topic, _, partition = pair.partition("=")
        yield unhexed(topic), int(partition)
