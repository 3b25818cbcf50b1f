"""The strategy `roundrobin`: the partitions of all topics, in order, are dealt to the members in turn.

Follows `org.apache.kafka.clients.consumer.RoundRobinAssignor` and its counterparts. Partitions are not dealt one by
one: a member gets every k-th partition of a topic from a first one on, a `range` with a step.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from assignors.assignment import Assignment, PartitionId, from_pairs
from assignors.blocks import deal_in_turn, positions_in, takers_by_topic
from assignors.clients.other_clients import every_order
from assignors.clients.range import Order, without_patterns
from assignors.context import spend
from assignors.exceptions import CannotTell, LeaderWouldFail
from assignors.model import Group, PartitionRacks, Recompute, Subscription, topics_listed
from assignors.order import (
    by_member_id,
    franz_go_order,
    java_by_member_id,
    java_order,
    kafka_python_order,
    librdkafka_order,
    record_order,
    sorted_utf16,
)


def _dealing(order: Order, sort: Callable[[Iterable[str]], list[str]] = sorted) -> Recompute:
    """A leader that takes members and topics in an order of its own."""

    def recompute(group: Group, _racks: PartitionRacks | None) -> Assignment:
        return _deal(group, order(group.members), sort(_topics(group)))

    return recompute


# Java before 2.4 ignores instance ids. It never uses racks.
java_before_static = _dealing(java_by_member_id, sorted_utf16)
java = _dealing(java_order, sorted_utf16)
# kgo/group_balancer.go `roundRobinBalancer`: like Java, in byte order.
franz_go = _dealing(franz_go_order)
# rdkafka_roundrobin_assignor.c >= 1.5.3.
librdkafka = without_patterns(_dealing(librdkafka_order))
# kafka-python before 2.3 and aiokafka: ignore instance ids.
kafka_python_before_static = _dealing(by_member_id)
# consumer/assignor/roundrobin.rs of krafka: like Java, but it does not sort the members.
krafka = _dealing(record_order)


def _with_equal_subscriptions(recompute: Recompute) -> Recompute:
    """rdkafka_roundrobin_assignor.c before 1.5."""

    def checked(group: Group, racks: PartitionRacks | None) -> Assignment:
        if _differ(group):
            reason = "librdkafka before 1.5 runs past the end of its member list when subscriptions differ"
            raise CannotTell(reason)
        return recompute(group, racks)

    return checked


# Before 1.3 it does not know instance ids.
librdkafka_before_static = _with_equal_subscriptions(without_patterns(_dealing(by_member_id)))
librdkafka_before_bounds = _with_equal_subscriptions(librdkafka)


@without_patterns
def librdkafka_asserting(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """rdkafka_roundrobin_assignor.c 1.5.0: as 1.5.2, but where that goes round an assertion fails.

    Raises:
        CannotTell: It goes round. librdkafka aborts, or goes on to later members if it was built without assertions.
    """
    return _wrapping(group, asserts=True)


@without_patterns
def librdkafka_wrapping(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """rdkafka_roundrobin_assignor.c 1.5.2: the turn wraps at the topic's number of subscribers, not at the group's.

    Only that many of the group's first members get partitions of the topic (#3159).

    Raises:
        LeaderWouldFail: None of them subscribes to it: librdkafka then searches without end.
    """
    return _wrapping(group, asserts=False)


def _wrapping(group: Group, *, asserts: bool) -> Assignment:
    if not _differ(group):  # both numbers are the same
        return librdkafka(group, None)
    order = librdkafka_order(group.members)
    takers = takers_by_topic(order, once=True)
    wanted = [frozenset(member.topics) for member in order]
    topics = sorted(_topics(group))
    spend(sum(group.partitions_per_topic[topic] for topic in topics))
    dealt: dict[str, list[PartitionId]] = {member.member_id: [] for member in group.members}
    turn = -1
    for topic in topics:
        size = len(takers[topic])
        takes = [topic in of_member for of_member in wanted[:size]]
        if not any(takes):
            reason = "librdkafka 1.5.0 to 1.5.2 does not find a subscriber among the first members"
            raise LeaderWouldFail(reason)
        for partition in range(group.partitions_per_topic[topic]):
            turn = (turn + 1) % size
            while not takes[turn]:
                if asserts and turn + 1 == size:
                    reason = "librdkafka 1.5.0 aborts here, unless it was built without assertions"
                    raise CannotTell(reason)
                turn = (turn + 1) % size
            dealt[order[turn].member_id].append((topic, partition))
    return from_pairs(dealt)


def kafka_python(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """kafka-python >= 2.3: only the last run of static and of dynamic members counts, and none may be skipped.

    Raises:
        LeaderWouldFail: The turn comes to a member that does not subscribe to the topic. kafka-python then looks up the
            next member by a pair in a dict keyed by member id, a KeyError.
    """
    order = kafka_python_order(group.members)
    topics = sorted(_topics(group))
    listed = topics_listed(order)
    sets = {id(names): frozenset(names) for names in listed}
    wanted = [sets[id(names)] for names in listed]
    turn = 0
    for topic in topics:
        count = group.partitions_per_topic[topic]
        for step in range(min(count, len(order))):
            if topic not in wanted[(turn + step) % len(order)]:
                reason = "kafka-python >= 2.3 raises KeyError when roundrobin must skip a member"
                raise LeaderWouldFail(reason)
        turn += count
    return _deal(group, order, topics)


def sarama(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """balance_strategy.go >= 1.28: partitions in the order of the strings "topic-partition", p10 before p2."""
    counts = {topic: group.partitions_per_topic[topic] for topic in _topics(group)}
    if sum(counts.values()) > _SARAMA_MOST:
        reason = "too many partitions to sort as sarama does"
        raise CannotTell(reason)
    order = by_member_id(group.members)
    takers = takers_by_topic(order, once=True)
    positions = positions_in(order, takers)
    dealt: dict[str, list[PartitionId]] = {member.member_id: [] for member in group.members}
    spend(2 * sum(counts.values()))
    everything = ((topic, number) for topic, count in counts.items() for number in range(count))
    in_order = sorted((f"{topic}-{number}", topic, number) for topic, number in everything)
    turn = 0
    for _, topic, partition in in_order:
        of_topic = positions[id(takers[topic])]
        taker = of_topic[bisect_left(of_topic, turn) % len(of_topic)]
        dealt[order[taker].member_id].append((topic, partition))
        turn = (taker + 1) % len(order)
    return from_pairs(dealt)


def kafka_node(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """lib/assignment/roundrobin.js of kafka-node: like Java before 2.4, with topics in the order of the metadata.

    Raises:
        CannotTell: There are several topics, and the order in which the broker listed them is not known.
    """
    order, topics = java_by_member_id(group.members), sorted(_topics(group))
    if len(topics) < 2:
        return _deal(group, order, topics)
    reason = "kafka-node deals topics in the order in which the broker listed them, which is not known"
    raise CannotTell(reason, tuple(_deal(group, order, listed) for listed in every_order(topics)))


# Sorting strings costs about a microsecond per partition: a larger group is not worth the seconds for one candidate.
_SARAMA_MOST = 200_000


def _topics(group: Group) -> Iterable[str]:
    """Topics that exist and have a subscriber."""
    counts = group.partitions_per_topic
    kinds = {id(topics): topics for topics in topics_listed(group.members)}.values()
    return {topic for topics in kinds for topic in topics if counts.get(topic)}


def _differ(group: Group) -> bool:
    """Whether members subscribe to different topics."""
    return len({frozenset(member.topics) for member in group.members}) > 1


def _deal(group: Group, order: Sequence[Subscription], topics: Sequence[str]) -> Assignment:
    """Deal each topic's partitions in turn to its subscribers."""
    counts, takers = group.partitions_per_topic, takers_by_topic(order, once=True)
    return deal_in_turn((member.member_id for member in group.members), counts, takers, order, topics)
