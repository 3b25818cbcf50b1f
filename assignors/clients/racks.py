"""The racks of subscribers and replicas per topic, and whether they affect a leader's result (KIP-881)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from assignors.exceptions import CannotTell
from assignors.model import Group, Subscription
from assignors.strategy import PartitionRacks
from assignors.work import spend

UNKNOWN_RACKS = "members have racks, and the racks of the replicas are not known"
"""Reason of `CannotTell` if a member has a rack and the replicas' racks were not given."""

_OF_LEADERS = "racks matter here, and this library uses the rack of each partition's leader, which is not known"


@dataclass(frozen=True, slots=True)
class TopicRacks:
    """The racks of one topic's replicas and subscribers.

    Attributes:
        replicas: Racks of the replicas, per partition.
        everywhere: Racks of all replicas together.
        wanted: Racks of the subscribers, without empty ones.
    """

    replicas: Sequence[frozenset[str]]
    everywhere: frozenset[str]
    wanted: frozenset[str]

    @property
    def match(self) -> bool:
        """Whether any subscriber shares a rack with any replica."""
        return not self.wanted.isdisjoint(self.everywhere)

    @property
    def needed(self) -> bool:
        """Whether the topic needs racks: they match, and some partition lacks replicas in one of the topic's racks.

        `AbstractPartitionAssignor.useRackAwareAssignment` (Java), `rd_kafka_use_rack_aware_assignment` (librdkafka).
        """
        return self.match and any(racks != self.everywhere for racks in set(self.replicas))


def racks_by_topic(
    group: Group, takers: Mapping[str, Sequence[Subscription]], racks: PartitionRacks | None
) -> dict[str, TopicRacks]:
    """Racks of each existing topic that has a subscriber with a rack.

    Args:
        group: The group.
        takers: Subscribers by topic; topics with the same subscribers may share a list.
        racks: Racks of the replicas.

    Raises:
        CannotTell: A subscriber has a rack, and the racks of its topic's replicas are not known.
    """
    if not any(member.rack for member in group.members):
        return {}
    counts = group.partitions_per_topic
    wanted_by_list: dict[int, frozenset[str]] = {}
    known: dict[tuple[str, ...], frozenset[str]] = {}
    result = {}
    for topic, of_topic in takers.items():
        wanted = wanted_by_list.get(id(of_topic))
        if wanted is None:
            wanted = wanted_by_list[id(of_topic)] = frozenset(member.rack for member in of_topic if member.rack)
        if wanted and counts.get(topic):
            replicas = replica_racks(topic, counts[topic], racks, known)
            result[topic] = TopicRacks(replicas, frozenset().union(*set(replicas)), wanted)
    return result


def replica_racks(
    topic: str, count: int, racks: PartitionRacks | None, known: dict[tuple[str, ...], frozenset[str]]
) -> list[frozenset[str]]:
    """Racks of a topic's replicas, per partition; equal sets are one object.

    Args:
        topic: The topic.
        count: Its partition count.
        racks: Racks of the replicas.
        known: Sets created before, to share them.

    Raises:
        CannotTell: The racks are not known, or are given for another number of partitions.
    """
    of_topic = None if racks is None else racks.get(topic)
    if of_topic is None or len(of_topic) != count:
        raise CannotTell(UNKNOWN_RACKS)
    spend(count)
    result = []
    for of_partition in map(tuple, of_topic):
        found = known.get(of_partition)
        if found is None:
            found = known[of_partition] = frozenset(of_partition)
        result.append(found)
    return result


def refuse_any_rack_match(
    group: Group, takers: Mapping[str, Sequence[Subscription]], racks: PartitionRacks | None
) -> None:
    """Refuse a group in which a subscriber's rack matches the rack of a replica of its topics.

    For franz-go, which uses only the racks of partition leaders; without any match it ignores racks.

    Raises:
        CannotTell: A rack matches, or the replicas' racks are not known.
    """
    of_topics: Iterable[TopicRacks] = racks_by_topic(group, takers, racks).values()
    if any(of_topic.match for of_topic in of_topics):
        raise CannotTell(_OF_LEADERS)
