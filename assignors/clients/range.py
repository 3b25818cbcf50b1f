"""The strategy `range`: each topic's partitions are cut into one block per subscriber, the first ones larger.

Follows `org.apache.kafka.clients.consumer.RangeAssignor` and its counterparts in other libraries, which differ in the
order of members, in topics listed twice in one subscription, and in racks (KIP-881): Java since 3.5.0, and librdkafka
since 2.2.0, rdkafka_range_assignor.c. With racks partitions go to members in their racks first, within the quotas.
Topics with the same subscribers and the same number of partitions are dealt together: each member gets the same numbers
of all of them. Other topics are dealt alone, member by member. Remaining partitions are dealt without regard to racks.
The quotas do not depend on racks: the mean rounded down, plus one for as many members as necessary.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from assignors.assignment import Assignment
from assignors.blocks import Blocks, alike, deal_blocks, in_blocks, takers_by_topic
from assignors.clients.racks import TopicRacks, racks_by_topic, refuse_any_rack_match
from assignors.context import spend
from assignors.exceptions import CannotTell
from assignors.model import Group, PartitionRacks, Recompute, Subscription
from assignors.order import (
    by_member_id,
    franz_go_order,
    java_by_member_id,
    java_order,
    kafka_python_order,
    librdkafka_order,
    record_order,
)

Order = Callable[[Sequence[Subscription]], list[Subscription]]
"""The order in which a leader takes its members."""


_Takers = dict[str, list[Subscription]]


def without_patterns(recompute: Recompute) -> Recompute:
    """The same leader, but for groups in which a member subscribes to a text that begins with "^": CannotTell.

    No topic name can begin so. A librdkafka leader matches the text against all topics as a regular expression
    (`rd_kafka_topic_partition_match`), while every other leader finds no topic of this name. Clients do not send such
    texts by themselves: they send the topics that matched.
    """

    def checked(group: Group, racks: PartitionRacks | None) -> Assignment:
        if any(topic.startswith("^") for member in group.members for topic in member.topics):
            reason = "a subscription holds a pattern that librdkafka matches by its own rules"
            raise CannotTell(reason)
        return recompute(group, racks)

    return checked


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
    by_topic = racks_by_topic(group, takers, racks)
    # A topic that does not need racks is dealt by racks too if it is dealt together with others and any needs them.
    if any(of_topic.needed for of_topic in by_topic.values()):
        return _dealt(group, takers, by_topic, rackless_everywhere=True)
    return _cut(group, takers)


def franz_go(group: Group, racks: PartitionRacks | None) -> Assignment:
    """kgo/group_balancer.go `rangeBalancer`: like Java before racks, in byte order, with its own pass for racks."""
    takers = takers_by_topic(franz_go_order(group.members), once=False)
    refuse_any_rack_match(group, takers, racks)
    return _cut(group, takers)


@without_patterns
def librdkafka(group: Group, racks: PartitionRacks | None) -> Assignment:
    """rdkafka_range_assignor.c >= 2.2, with racks (KIP-881)."""
    takers = takers_by_topic(librdkafka_order(group.members), once=True)
    by_topic = racks_by_topic(group, takers, racks)
    # Topics that are dealt together are dealt by racks whether any of them needs racks or not.
    if any(of_topic.match for of_topic in by_topic.values()):
        return _dealt(group, takers, by_topic, rackless_everywhere=False)
    return _cut(group, takers)


def kafka_python_before_static(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """kafka-python before 2.3 and aiokafka: ignore instance ids."""
    return _cut(group, takers_by_topic(by_member_id(group.members), once=False), last_only=True)


def kafka_python(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """kafka-python >= 2.3: per topic, only the last run of static and of dynamic subscribers counts."""
    listed = takers_by_topic(group.members, once=False)
    takers = {topic: kafka_python_order(of_topic) for topic, of_topic in listed.items()}
    return _cut(group, takers, last_only=True)


def _cut(group: Group, takers: _Takers, *, last_only: bool = False) -> Assignment:
    ids = (member.member_id for member in group.members)
    return deal_blocks(ids, group.partitions_per_topic, takers, last_only=last_only)


def _dealt(group: Group, takers: _Takers, by_topic: dict[str, TopicRacks], *, rackless_everywhere: bool) -> Assignment:
    """Deal by racks; topics with the same subscribers and the same number of partitions are dealt together.

    Args:
        group: The group.
        takers: Subscribers by topic, once each, in the leader's order; topics with the same subscribers share one list.
        by_topic: The topics' racks.
        rackless_everywhere: For topics dealt together, a member without a rack counts as being in every rack, not none.
    """
    counts = group.partitions_per_topic
    kinds = alike(counts, takers)
    dealt: dict[str, Blocks] = {}
    for topics in kinds.values():
        first = topics[0]
        hand = _Hand(takers[first], counts[first])
        if first in by_topic:  # then all are in it: they have the same subscribers
            if len(topics) > 1:
                hand.deal_together([by_topic[topic].replicas for topic in topics], rackless=rackless_everywhere)
            elif by_topic[first].needed:
                hand.deal_alone(by_topic[first].replicas)
        hand.deal_rest()
        dealt[first] = hand.blocks()
    in_order = sorted((topic, kind) for kind, topics in kinds.items() for topic in topics)
    return in_blocks((member.member_id for member in group.members), in_order, dealt.__getitem__)


class _Hand:
    """Deals one topic, or several together."""

    def __init__(self, members: Sequence[Subscription], count: int) -> None:
        self._members = members
        self._quota, self._larger = divmod(count, len(members))
        self._given: list[list[int]] = [[] for _ in members]
        self._free = [True] * count

    def deal_together(self, replicas: Sequence[Sequence[frozenset[str]]], *, rackless: bool) -> None:
        """Give each partition number to the first member that has room and shares a rack with it in every topic.

        Args:
            replicas: Racks per partition, for each topic.
            rackless: Whether a member without a rack counts as being in every rack, or in none.
        """
        # Room never grows again, so a member without room is dropped for good.
        in_rack: dict[str | None, deque[int]] = {}
        for position, member in enumerate(self._members):
            if member.rack or rackless:
                in_rack.setdefault(member.rack or None, deque()).append(position)
        queues: dict[tuple[frozenset[str], ...], list[deque[int]]] = {}
        for partition, of_topics in enumerate(zip(*replicas, strict=True)):
            found = queues.get(of_topics)
            if found is None:
                spend(len(in_rack))
                common = frozenset.intersection(*of_topics)
                found = [queue for rack, queue in in_rack.items() if rack is None or rack in common]
                queues[of_topics] = found
            first = -1
            for queue in found:
                while queue and self._room(queue[0]) <= 0:
                    queue.popleft()
                if queue and (first < 0 or queue[0] < first):
                    first = queue[0]
            if first >= 0:
                self._give(first, [partition])

    def deal_alone(self, replicas: Sequence[frozenset[str]]) -> None:
        """Give each member in turn the first free partitions in its rack (without a rack: any), up to its room."""
        in_rack: dict[str, list[int]] = {member.rack: [] for member in self._members if member.rack}
        lists: dict[frozenset[str], list[list[int]]] = {}
        for partition, racks in enumerate(replicas):
            found = lists.get(racks)
            if found is None:
                spend(len(in_rack))
                found = lists[racks] = [listed for rack, listed in in_rack.items() if rack in racks]
            for listed in found:
                listed.append(partition)
        everything: Sequence[int] = range(len(replicas))
        # Partitions passed over are taken, so each list is walked once.
        walked: dict[str | None, int] = {}
        for position, member in enumerate(self._members):
            rack = member.rack or None
            fits = everything if rack is None else in_rack[rack]
            walked[rack] = self._fill_up(position, fits, walked.get(rack, 0))

    def deal_rest(self) -> None:
        """Give the free partitions to the members in turn, up to their room."""
        start = 0
        everything = range(len(self._free))
        for position in range(len(self._members)):
            start = self._fill_up(position, everything, start)

    def blocks(self) -> Blocks:
        """Each member's partitions, sorted."""
        return [
            (member.member_id, _as_range(sorted(given)))
            for member, given in zip(self._members, self._given, strict=True)
            if given
        ]

    def _fill_up(self, position: int, listed: Sequence[int], start: int) -> int:
        """Give a member free partitions of a list from `start` on, up to its room; returns where it stopped."""
        room = self._room(position)
        taken: list[int] = []
        while start < len(listed) and len(taken) < room:
            if self._free[listed[start]]:
                taken.append(listed[start])
            start += 1
        if taken:
            self._give(position, taken)
        return start

    def _room(self, position: int) -> int:
        return self._quota + (self._larger > 0) - len(self._given[position])

    def _give(self, position: int, partitions: Sequence[int]) -> None:
        given = self._given[position]
        given += partitions
        for partition in partitions:
            self._free[partition] = False
        if len(given) > self._quota:
            self._larger -= 1


def _as_range(numbers: list[int]) -> range | tuple[int, ...]:
    """Consecutive numbers as a range: the usual case if few racks match."""
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        return range(numbers[0], numbers[-1] + 1)
    return tuple(numbers)
