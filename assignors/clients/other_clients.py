"""Clients that took the names `range` and `roundrobin`, but not the algorithms of Kafka's classes.

Sources: groupbalancer.go of kafka-go 0.1 to 0.4.50; balance_strategy.go of sarama 1.19 to 1.34.0; balancer.go of
sarama-cluster 2.1.15; roundRobinAssigner of kafkajs 1.0 to 2.2.4; partitions-assigners.ts and consumer.ts of
@platformatic/kafka 1.17 to 2.9; Consumer/Assignment.php of kafka-php (weiboad) 0.2.0.

Some deal in the order in which the broker lists partitions. Brokers list them ascending (`TopicImage` keeps them in a
HashMap of small integers), so we do too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from math import floor

from assignors.assignment import Assignment
from assignors.blocks import Block, deal_blocks, deal_in_turn, takers_by_topic
from assignors.context import spend
from assignors.exceptions import CannotTell
from assignors.model import Group, PartitionRacks, Recompute, Subscription
from assignors.order import by_member_id, java_by_member_id

# Most topics whose orders are tried: four have 24. A group of one topic, the usual case, has one.
_MOST_ORDERED = 4

_Takers = dict[str, list[Subscription]]


def _every(position: int, count: int, takers: int) -> range:
    return range(position, count, takers)


def _multiplied(position: int, count: int, takers: int) -> range:
    return range(position * count // takers, (position + 1) * count // takers)


def _rounded(position: int, count: int, takers: int) -> range:
    step = count / takers
    return range(floor(position * step + 0.5), floor((position + 1) * step + 0.5))


def _by_member_id(group: Group) -> _Takers:
    return takers_by_topic(by_member_id(group.members), once=False)


def _each_topic(block: Block, takers_of: Callable[[Group], _Takers] = _by_member_id) -> Recompute:
    """A leader that gives each taker of a topic its block; a member listed twice gets both of its blocks."""

    def recompute(group: Group, _racks: PartitionRacks | None) -> Assignment:
        ids = (member.member_id for member in group.members)
        return deal_blocks(ids, group.partitions_per_topic, takers_of(group), block)

    return recompute


def _by_hash(group: Group) -> _Takers:
    """Subscribers of each topic, as often as they list it, in the order of the hash.

    Raises:
        CannotTell: Two members have one hash: their order is that of a random map.
    """
    takers = takers_by_topic(group.members, once=False)
    spend(sum(map(len, takers.values())))
    ordered = {}
    for topic, members in takers.items():
        hashes = {member.member_id: _fnv_1a(topic + member.member_id) for member in members}
        if len(set(hashes.values())) < len(hashes):
            reason = "sarama before 1.34.1 sorts members by a hash, and two members have the same"
            raise CannotTell(reason)
        ordered[topic] = sorted(members, key=lambda member: hashes[member.member_id])
    return ordered


def every_order(topics: Sequence[str]) -> Iterable[tuple[str, ...]]:
    """All orders of a few topics; none of many."""
    if len(topics) <= _MOST_ORDERED:
        return permutations(topics)
    return ()


def _fnv_1a(text: str) -> int:
    """`balanceStrategyHashValue`: FNV-1a of 32 bits, over code points instead of bytes."""
    value = 2_166_136_261
    for character in text:
        value = (value ^ ord(character)) * 16_777_619 & 0xFFFF_FFFF
    return value


def _topics_of_leader(group: Group) -> list[str]:
    """The leader's existing topics in its order, once each.

    Raises:
        CannotTell: The group has no such leader.
    """
    leader = None if group.leader is None else group.member(group.leader)
    if leader is None:
        reason = "this library deals only the leader's topics, and it is not known which member led"
        raise CannotTell(reason)
    return [topic for topic in dict.fromkeys(leader.topics) if group.partitions_per_topic.get(topic)]


def _deal_to_all(group: Group, order: Sequence[Subscription], topics: Sequence[str]) -> Assignment:
    """Deal topics one after the other, in turn to all members, subscribed or not."""
    ids = (member.member_id for member in group.members)
    return deal_in_turn(ids, group.partitions_per_topic, dict.fromkeys(topics, order), order, topics)


# Blocks from i*n/m to (i+1)*n/m, rounded down: of 5 partitions the first of two members gets 2.
kafka_go_range = _each_topic(_multiplied)
# Blocks between rounded bounds: of 3 partitions the first of two members gets 2, of 9 the second of four 3.
sarama_cluster_range = _each_topic(_rounded)
# The same in sarama before 1.34.1, with members in the order of a hash of topic and member id.
sarama_range_by_hash = _each_topic(_rounded, _by_hash)
# kafka-go and sarama-cluster: each topic from its first subscriber on; sarama before 1.28 in the order of that hash.
kafka_go_roundrobin = _each_topic(_every)
sarama_roundrobin_by_hash = _each_topic(_every, _by_hash)
# kafkajs before 1.13: partition p of each of the leader's topics to member p mod m.
kafkajs_each_topic = _each_topic(
    _every, lambda group: dict.fromkeys(_topics_of_leader(group), java_by_member_id(group.members))
)


def kafkajs(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """The leader's topics in its order, in turn to all members, subscribed or not (kafkajs >= 1.13)."""
    return _deal_to_all(group, java_by_member_id(group.members), _topics_of_leader(group))


def platformatic(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """The same, with members in the order of the JoinGroup response."""
    return _deal_to_all(group, group.members, _topics_of_leader(group))


def kafka_php(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """The same as platformatic's, under the name `range`.

    Raises:
        CannotTell: The leader has several topics, and the result depends on the order in which the broker listed them.
    """
    topics = _topics_of_leader(group)
    if len(topics) < 2 or len(group.members) < 2:
        return _deal_to_all(group, group.members, topics)
    reason = "kafka-php deals topics in the order in which the broker listed them, which is not known"
    raise CannotTell(reason, tuple(_deal_to_all(group, group.members, order) for order in every_order(topics)))
