"""The assignors of the installed kafka-python and aiokafka, called in this process, with its hash seed.

kafka-python 3.0 to 3.0.11 is 3.0.12 without the lines that 3.0.12 added to `_reassign_partition_to_consumer`, the only
difference between 3.0.11's assignors and those of 3.0.12.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any
from unittest import mock

from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky import sticky_assignor
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from assignors import Assignment, Group, from_topics

# Far beyond what the groups of the tests need: more moves than this are an endless loop.
_MOST_MOVES = 5_000

_KAFKA_PYTHON = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": sticky_assignor.StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class NeverEnds(Exception):
    """The class moves partitions back and forth."""


def ask_kafka_python(
    strategy: str, group: Group, *, others: Iterable[str] = (), before_3_0_12: bool = False
) -> Assignment | Exception:
    """The result of kafka-python's class, or its exception.

    Args:
        strategy: Its name.
        group: The group.
        others: Topics without subscribers that the leader knows.
        before_3_0_12: Whether to ask the class as it was to 3.0.11.
    """
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    owned = ConsumerProtocolSubscription.TopicPartition
    members = [
        SimpleNamespace(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=SimpleNamespace(
                topics=list(member.topics),
                user_data=member.user_data,
                owned_partitions=[owned(topic=topic, partitions=list(parts)) for topic, parts in member.owned],
                generation_id=-1 if member.generation is None else member.generation,
            ),
        )
        for member in group.members
    ]
    executor = sticky_assignor.StickyAssignmentExecutor
    with ExitStack() as patches:
        patches.enter_context(_counting_moves(sticky_assignor))
        if before_3_0_12:
            patches.enter_context(mock.patch.object(executor, "_reassign_partition_to_consumer", _reassign))
        try:
            made = _KAFKA_PYTHON[strategy]().assign(_cluster(group, others), members)
        except Exception as error:  # noqa: BLE001 (any exception is a result)
            return error
    return from_topics(
        {
            member_id: [(topic, tuple(parts)) for topic, parts in map(_entry, of.assigned_partitions) if parts]
            for member_id, of in made.items()
        }
    )


def ask_aiokafka(sticky: Any, group: Group) -> Assignment | Exception:
    """The result of aiokafka's `sticky`, or its exception; the module is given: aiokafka may not be installed."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    members = {
        member.member_id: sticky.ConsumerProtocolMemberMetadata(0, list(member.topics), member.user_data or b"")
        for member in group.members
    }
    with _counting_moves(sticky):
        try:
            made = sticky.StickyPartitionAssignor.assign(_cluster(group), members)
        except Exception as error:  # noqa: BLE001 (any exception is a result)
            return error
    return from_topics(
        {member_id: [(topic, tuple(parts)) for topic, parts in of.assignment] for member_id, of in made.items()}
    )


def _reassign(executor: Any, partition: Any, target: str) -> None:
    owner = executor.current_partition_consumer[partition]
    moved = executor.partition_movements.get_partition_to_be_moved(partition, owner, target)
    executor._move_partition(moved, target)


def _counting_moves(sticky: Any) -> Any:
    """Let the class of a module raise `NeverEnds` instead of running on."""

    class Counting(sticky.PartitionMovements):  # type: ignore[misc]
        moves = 0

        def move_partition(self, *move: Any) -> None:
            self.moves += 1
            if self.moves > _MOST_MOVES:
                raise NeverEnds
            super().move_partition(*move)

    return mock.patch.object(sticky, "PartitionMovements", Counting)


def _cluster(group: Group, others: Iterable[str] = ()) -> Any:
    subscribed = {topic for member in group.members for topic in member.topics}
    counts = {topic: count for topic, count in group.partitions_per_topic.items() if count and topic in subscribed}
    known = counts | dict.fromkeys(others, 2)
    return SimpleNamespace(
        topics=lambda: set(known),
        partitions_for_topic=lambda topic: set(range(known[topic])) if topic in known else None,
    )


def _entry(entry: Any) -> tuple[str, list[int]]:
    return (entry.topic, entry.partitions) if hasattr(entry, "topic") else tuple(entry)
