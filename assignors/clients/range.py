"""The strategy `range`: each topic's partitions are cut into one block per subscriber, the first ones larger.

Follows `org.apache.kafka.clients.consumer.RangeAssignor` and its counterparts in other libraries, which differ in the
order of members, in topics listed twice in one subscription, and in racks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assignors.assignment import Assignment, Partitions
from assignors.blocks import Blocks, group_by_kind, in_blocks, takers_by_topic
from assignors.clients.patterns import without_patterns
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
from assignors.steps import CutIntoBlocks
from assignors.strategy import PartitionRacks, Recompute
from assignors.trace import note

Order = Callable[[Sequence[Subscription]], list[Subscription]]
"""The order in which a leader takes its members."""


def _cutting(order: Order, *, once: bool = True) -> Recompute:
    """A leader without racks; `once` says whether a topic listed twice counts once."""

    def recompute(group: Group, _racks: PartitionRacks | None) -> Assignment:
        return _cut(group, takers_by_topic(order(group.members), once=once))

    return recompute


# Java before 2.4, and kafka-node (lib/assignment/range.js): ignore instance ids.
java_before_static = _cutting(java_by_member_id, once=False)
# Java 2.4 to 3.4: a topic listed twice counts the member twice.
java_before_racks = _cutting(java_order, once=False)
# rdkafka_range_assignor.c before 1.3, which does not know instance ids, and 1.3 to 2.1.
librdkafka_before_static = without_patterns(_cutting(by_member_id))
librdkafka_before_racks = without_patterns(_cutting(librdkafka_order))
# balance_strategy.go >= 1.34.1: member ids in byte order, without instance ids.
sarama = _cutting(by_member_id)
# consumer/assignor/range.rs of krafka: like Java without racks, but it does not sort the members.
krafka = _cutting(record_order)


def java(group: Group, racks: PartitionRacks | None) -> Assignment:
    """Java >= 3.5: a topic counts once; racks may matter (KIP-881)."""
    takers = takers_by_topic(java_order(group.members), once=True)
    return java_range_in_racks(group, takers, racks) or _cut(group, takers)


def franz_go(group: Group, racks: PartitionRacks | None) -> Assignment:
    """kgo/group_balancer.go `rangeBalancer`: like Java before racks, in byte order, with its own pass for racks."""
    takers = takers_by_topic(franz_go_order(group.members), once=False)
    refuse_any_rack_match(group, takers, racks)
    return _cut(group, takers)


@without_patterns
def librdkafka(group: Group, racks: PartitionRacks | None) -> Assignment:
    """rdkafka_range_assignor.c >= 2.2, with racks (KIP-881)."""
    takers = takers_by_topic(librdkafka_order(group.members), once=True)
    return librdkafka_range_in_racks(group, takers, racks) or _cut(group, takers)


def kafka_python_before_static(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """kafka-python before 2.3 and aiokafka: ignore instance ids."""
    return _cut(group, takers_by_topic(by_member_id(group.members), once=False), last_block_only=True)


def kafka_python(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """kafka-python >= 2.3: per topic, only the last run of static and of dynamic subscribers counts."""
    listed = takers_by_topic(group.members, once=False)
    return _cut(group, {topic: kafka_python_order(of) for topic, of in listed.items()}, last_block_only=True)


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

    def step(alike: Sequence[str]) -> CutIntoBlocks:
        topic = alike[0]
        ids = [member.member_id for member in takers[topic]]
        left_out = {member.member_id for member in group.members if topic in member.topics}.difference(ids)
        return CutIntoBlocks.of(alike, counts[topic], ids, blocks(topic), sorted(left_out))

    note(lambda: map(step, group_by_kind(topics)))
    return in_blocks((member.member_id for member in group.members), topics, blocks)
