# ruff: noqa: ARG002 - a strategy takes what it is given
"""Custom strategies, good and bad, which the tests find by their paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assignors import Assignment, Group, PartitionRacks


class FirstTakesAll:
    """A deterministic strategy, written as docs/assignors.md describes."""

    def assign(self, group: Group, partition_racks: PartitionRacks | None) -> Assignment:
        first, *others = sorted(member.member_id for member in group.members)
        everything = {topic: range(count) for topic, count in group.partitions_per_topic.items()}
        return {first: everything, **{member_id: {} for member_id in others}}


def reversed_range(group: Group, partition_racks: PartitionRacks | None) -> Assignment:
    """A function instead of a class."""
    [topic] = group.partitions_per_topic
    members = sorted((member.member_id for member in group.members), reverse=True)
    return {
        member_id: {topic: range(number, group.partitions_per_topic[topic], len(members))}
        for number, member_id in enumerate(members)
    }


class Dice:
    deterministic = False

    def assign(self, group: Group, partition_racks: PartitionRacks | None) -> Assignment:
        return {}


class Unmakable:
    def __init__(self, weight: int) -> None:
        self.weight = weight


def raises(group: Group, partition_racks: PartitionRacks | None) -> Assignment:
    message = "no weights for t\nand more"
    raise LookupError(message)


def leaves(group: Group, partition_racks: PartitionRacks | None) -> Assignment:
    raise SystemExit(3)


def meddles(group: Group, partition_racks: PartitionRacks | None) -> Any:
    group.partitions_per_topic["t"] = 0  # type: ignore[index]
    return {}


def tells_the_racks(group: Group, partition_racks: PartitionRacks | None) -> Assignment:
    """Takes the partitions with a replica in the rack "east"."""
    racks = {} if partition_racks is None else partition_racks
    return {"a": {topic: [p for p, of in enumerate(racks[topic]) if "east" in of] for topic in racks}}


def answers(result: Any) -> Callable[[Group, PartitionRacks | None], Any]:
    return lambda _group, _racks: result


returns_a_list = answers([])
assigns_to_a_stranger = answers({"stranger": {"t": [0]}})
assigns_halves = answers({"a": {"t": [0.5]}})
assigns_twice = answers({"a": {"t": [0, 0, 1, 2]}})
assigns_to_both = answers({"a": {"t": [0, 1]}, "b": {"t": [1, 2]}})
assigns_beyond = answers({"a": {"t": [0, 1, 2**70]}})
assigns_below = answers({"a": {"t": [-1]}})
gives_pairs = answers({"a": [("t", [0]), ("t", [1])], "b": {"t": [2], "nowhere": []}})
no_function = 42
