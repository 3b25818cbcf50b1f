"""The rules of the libraries that cannot be called from here, written down once more, one partition at a time.

Slow and literal on purpose: loops and comparators as in the sources (rdkafka_range_assignor.c,
rdkafka_roundrobin_assignor.c, rdkafka_assignor.c of librdkafka 2.15; group_balancer.go of franz-go 1.21;
balance_strategy.go of sarama 1.60), so that the closed forms of `assignors` have something to be compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key

from assignors import Assignment, Group, PartitionRacks, Subscription, from_pairs

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
    """Whether some three members are each before the next."""
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


class _TopicState:
    """rd_kafka_topic_assignment_state_t"""

    def __init__(self, topic: str, count: int, members: list[Subscription], racks: Sequence[Sequence[str]]) -> None:
        self.topic, self.count, self.members = topic, count, members
        self.unassigned = [True] * count
        self.partition_racks = [sorted(set(of_partition)) for of_partition in racks]
        self.assigned: dict[str, list[int]] = {member.member_id: [] for member in members}
        self.per_consumer, self.with_extra = divmod(count, len(members))
        of_members = {member.rack for member in members if member.rack}
        of_partitions = {rack for of_partition in self.partition_racks for rack in of_partition}
        self.needs_racks = bool(of_members & of_partitions) and any(
            len(of_partition) != len(of_partitions) for of_partition in self.partition_racks
        )

    def assignable(self, member: Subscription) -> int:
        return self.per_consumer + (self.with_extra > 0) - len(self.assigned[member.member_id])

    def assign(self, member: Subscription, partition: int) -> None:
        self.assigned[member.member_id].append(partition)
        assert self.unassigned[partition]
        self.unassigned[partition] = False
        if len(self.assigned[member.member_id]) > self.per_consumer:
            self.with_extra -= 1

    def assign_ranges(self, may_assign: Callable[[Subscription, int], bool]) -> None:
        for member in self.members:
            most = self.assignable(member)
            found = [p for p in range(self.count) if self.unassigned[p] and may_assign(member, p)]
            for partition in found[: max(0, most)]:
                self.assign(member, partition)

    def racks_match(self, member: Subscription, partition: int) -> bool:
        return not member.rack or member.rack in self.partition_racks[partition]


def librdkafka_range_in_racks(group: Group, racks: PartitionRacks) -> Assignment:
    """rd_kafka_range_assignor_assign_cb, librdkafka 2.2 to 2.15"""
    states = []
    for topic, count in group.partitions_per_topic.items():
        members = [m for m in sorted(group.members, key=cmp_to_key(librdkafka_compare)) if topic in m.topics]
        if members and count:
            states.append(_TopicState(topic, count, members, racks[topic]))
    buckets: dict[tuple[object, ...], list[_TopicState]] = {}
    for state in states:
        buckets.setdefault((state.count, *(member.member_id for member in state.members)), []).append(state)
    for bucket in buckets.values():
        if len(bucket) == 1:
            if bucket[0].needs_racks:
                bucket[0].assign_ranges(bucket[0].racks_match)
            continue
        for partition in range(bucket[0].count):
            for member in bucket[0].members:
                if all(
                    member.rack and member.rack in state.partition_racks[partition] and state.assignable(member) > 0
                    for state in bucket
                ):
                    for state in bucket:
                        state.assign(member, partition)
                    break
    dealt: dict[str, list[tuple[str, int]]] = {member.member_id: [] for member in group.members}
    for state in states:
        state.assign_ranges(lambda _member, _partition: True)
        for member_id, partitions in state.assigned.items():
            dealt[member_id] += [(state.topic, partition) for partition in partitions]
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
