"""The libraries' rules without racks in a second implementation, one partition at a time.

Slow and literal on purpose: loops and comparators as in the sources (rdkafka_range_assignor.c,
rdkafka_roundrobin_assignor.c, rdkafka_assignor.c of librdkafka 2.15; group_balancer.go of franz-go 1.21;
balance_strategy.go of sarama 1.60), to verify the closed forms of `assignors`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key

from assignors import Assignment, Group, Subscription, from_pairs

Compare = Callable[[Subscription, Subscription], int]


def compare_bytes(left: str, right: str) -> int:
    a, b = left.encode(), right.encode()
    return (a > b) - (a < b)


def librdkafka_compare(left: Subscription, right: Subscription) -> int:
    """rd_kafka_group_member_cmp"""
    if left.group_instance_id is not None and right.group_instance_id is not None:
        return compare_bytes(left.group_instance_id, right.group_instance_id)
    return compare_bytes(left.member_id, right.member_id)


def franz_go_compare(left: Subscription, right: Subscription) -> int:
    """joinMemberLess"""
    if left.group_instance_id is not None:
        if right.group_instance_id is None:
            return -1
        return compare_bytes(left.group_instance_id, right.group_instance_id)
    if right.group_instance_id is not None:
        return 1
    return compare_bytes(left.member_id, right.member_id)


def member_id_compare(left: Subscription, right: Subscription) -> int:
    return compare_bytes(left.member_id, right.member_id)


def goes_in_circles(members: Sequence[Subscription], compare: Compare) -> bool:
    """Whether some three members are each before the next, in a circle."""
    return any(
        compare(a, b) < 0 and compare(b, c) < 0 and compare(a, c) >= 0
        for a in members
        for b in members
        for c in members
    )


def plain_range(group: Group, compare: Compare, *, count_twice: bool) -> Assignment:
    dealt: dict[str, list[tuple[str, int]]] = {member.member_id: [] for member in group.members}
    for topic, count in group.partitions_per_topic.items():
        takers = []
        for member in sorted(group.members, key=cmp_to_key(compare)):
            times = member.topics.count(topic)
            takers += [member.member_id] * (times if count_twice else min(times, 1))
        partition = 0
        for position, member_id in enumerate(takers):
            for _ in range(count // len(takers) + (1 if position < count % len(takers) else 0)):
                dealt[member_id].append((topic, partition))
                partition += 1
    return from_pairs(dealt)


def plain_roundrobin(group: Group, compare: Compare, order: Callable[[str, int], object]) -> Assignment:
    members = sorted(group.members, key=cmp_to_key(compare))
    dealt: dict[str, list[tuple[str, int]]] = {member.member_id: [] for member in members}
    partitions = [
        (topic, partition)
        for topic, count in group.partitions_per_topic.items()
        for partition in range(count)
        if any(topic in member.topics for member in members)
    ]
    turn = -1
    for topic, partition in sorted(partitions, key=lambda both: order(*both)):  # type: ignore[arg-type,return-value]
        while True:
            turn = (turn + 1) % len(members)
            if topic in members[turn].topics:
                break
        dealt[members[turn].member_id].append((topic, partition))
    return from_pairs(dealt)
