"""The assignors of the installed kafka-python and aiokafka, called in this process, with its hash seed."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from assignors import Assignment, Group, from_topics

__all__ = ["ask_aiokafka", "ask_kafka_python"]

_KAFKA_PYTHON = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def ask_kafka_python(strategy: str, group: Group, *, others: Iterable[str] = ()) -> Assignment | Exception:
    """The result of kafka-python's class, or its exception.

    Args:
        strategy: Its name.
        group: The group.
        others: Topics without subscribers that the leader knows.
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


def ask_aiokafka(sticky: Any, group: Group) -> Assignment:
    """The result of aiokafka's `sticky`, whose module is given: aiokafka may not be installed."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    members = {
        member.member_id: sticky.ConsumerProtocolMemberMetadata(0, list(member.topics), member.user_data or b"")
        for member in group.members
    }
    made = sticky.StickyPartitionAssignor.assign(_cluster(group), members)
    return from_topics(
        {member_id: [(topic, tuple(parts)) for topic, parts in of.assignment] for member_id, of in made.items()}
    )


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
