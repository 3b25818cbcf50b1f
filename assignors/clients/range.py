"""The strategy `range`: each topic's partitions are cut into one block per subscriber, the first ones larger.

Follows `org.apache.kafka.clients.consumer.RangeAssignor` and its counterparts in other libraries, which differ in the
order of members, in topics listed twice in one subscription, and in racks.
"""

from __future__ import annotations

from collections.abc import Sequence

from assignors.assignment import Assignment, Partitions
from assignors.blocks import Blocks, group_by_kind, in_blocks, takers_by_topic
from assignors.clients.other_clients import RANGE_ERAS
from assignors.clients.patterns import refuse_patterns
from assignors.clients.racks import refuse_any_rack_match
from assignors.clients.range_in_racks import java_range_in_racks, librdkafka_range_in_racks
from assignors.model import Group, Subscription
from assignors.order import (
    by_member_id,
    franz_go_order,
    java_by_member_id,
    java_order,
    kafka_python_order,
    librdkafka_order,
    record_order,
)
from assignors.strategy import Era, PartitionRacks, Strategy
from assignors.trace import Cut, notes


def _java_before_static(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """Java before 2.4, and kafka-node (lib/assignment/range.js): ignore instance ids."""
    return _cut(group, _listed(java_by_member_id(group.members)))


def _java_before_racks(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """Java 2.4 to 3.4: a topic listed twice counts the member twice."""
    return _cut(group, _listed(java_order(group.members)))


def _java(group: Group, racks: PartitionRacks | None) -> Assignment:
    """Java >= 3.5: a topic counts once; racks may matter (KIP-881)."""
    takers = _once(java_order(group.members))
    return java_range_in_racks(group, takers, racks) or _cut(group, takers)


def _franz_go(group: Group, racks: PartitionRacks | None) -> Assignment:
    """kgo/group_balancer.go `rangeBalancer`: like Java before racks, in byte order, with its own pass for racks."""
    takers = _listed(franz_go_order(group.members))
    refuse_any_rack_match(group, takers, racks)
    return _cut(group, takers)


def _librdkafka_before_static(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """rdkafka_range_assignor.c before 1.3: does not know instance ids."""
    refuse_patterns(group)
    return _cut(group, _once(by_member_id(group.members)))


def _librdkafka_before_racks(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """rdkafka_range_assignor.c 1.3 to 2.1."""
    refuse_patterns(group)
    return _cut(group, _once(librdkafka_order(group.members)))


def _librdkafka(group: Group, racks: PartitionRacks | None) -> Assignment:
    """rdkafka_range_assignor.c >= 2.2, with racks (KIP-881)."""
    refuse_patterns(group)
    takers = _once(librdkafka_order(group.members))
    return librdkafka_range_in_racks(group, takers, racks) or _cut(group, takers)


def _kafka_python_before_static(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """kafka-python before 2.3 and aiokafka: ignore instance ids."""
    return _cut(group, _listed(by_member_id(group.members)), last_block_only=True)


def _kafka_python(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """kafka-python >= 2.3: per topic, only the last run of static and of dynamic subscribers counts."""
    takers = {topic: kafka_python_order(members) for topic, members in _listed(group.members).items()}
    return _cut(group, takers, last_block_only=True)


def _sarama(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """balance_strategy.go >= 1.34.1: member ids in byte order, without instance ids."""
    return _cut(group, _once(by_member_id(group.members)))


def _krafka(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """consumer/assignor/range.rs of krafka: like Java without racks, but it does not sort the members."""
    return _cut(group, _once(record_order(group.members)))


def _listed(members: Sequence[Subscription]) -> dict[str, list[Subscription]]:
    """Subscribers of each topic in the given order, as often as they list it."""
    return takers_by_topic(members, once=False)


def _once(members: Sequence[Subscription]) -> dict[str, list[Subscription]]:
    """Subscribers of each topic in the given order, once each."""
    return takers_by_topic(members, once=True)


def _cut(group: Group, takers: dict[str, list[Subscription]], *, last_block_only: bool = False) -> Assignment:
    """Give the k-th taker of each topic its k-th block.

    A member listed twice is next to itself, so its blocks join; with `last_block_only` the later block replaces the
    earlier one instead, whose partitions then stay unassigned (kafka-python).
    """

    def blocks(topic: str) -> Blocks:
        of_topic = takers[topic]
        quota, larger = divmod(group.partitions_per_topic[topic], len(of_topic))
        found: dict[str, Partitions] = {}
        start = stop = 0
        before = None
        for position, member in enumerate(of_topic):
            if member is not before or last_block_only:
                start = stop
            stop += quota + (position < larger)
            if stop > start:
                found[member.member_id] = range(start, stop)
            elif last_block_only:
                found.pop(member.member_id, None)
            before = member
        return list(found.items())

    counts = group.partitions_per_topic
    topics = [(topic, (id(takers[topic]), counts[topic])) for topic in sorted(takers) if counts.get(topic)]
    if (kept := notes()) is not None:
        for alike in group_by_kind(topics):
            ids = [member.member_id for member in takers[alike[0]]]
            kept.append(Cut(alike, counts[alike[0]], ids, blocks(alike[0])))
    return in_blocks((member.member_id for member in group.members), topics, blocks)


RANGE = Strategy(
    name="range",
    eras=(
        Era("java", _java_before_static, since=(0, 9), before=(2, 4)),
        Era("java", _java_before_racks, since=(2, 4), before=(3, 5)),
        Era("java", _java, since=(3, 5)),
        Era("librdkafka", _librdkafka_before_static, since=(0, 9), before=(1, 3)),
        Era("librdkafka", _librdkafka_before_racks, since=(1, 3), before=(2, 2)),
        Era("librdkafka", _librdkafka, since=(2, 2)),
        Era("kafka-python", _kafka_python_before_static, since=(1, 0), before=(2, 3)),
        Era("kafka-python", _kafka_python, since=(2, 3)),
        Era("aiokafka", _kafka_python_before_static, since=(0, 1)),
        Era("franz-go", _franz_go, since=(1, 0)),
        *RANGE_ERAS,
        Era("sarama", _sarama, since=(1, 34, 1)),
        Era("kafka-node", _java_before_static, since=(1, 0)),
        Era("krafka", _krafka, since=(0, 27)),
    ),
    otherwise="this library's range is not recomputed",
    gives_unsubscribed=("kafka-php", "kafka_client"),
)
