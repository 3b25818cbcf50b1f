"""The racks of members and replicas, and whether they affect a leader's result (KIP-881).

`TopicRacks` are those of one topic, for `range`. `RackInfo` are those of all topics together, for the sticky strategies
(`AbstractStickyAssignor.RackInfo`, since 3.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from assignors.clients.sticky.indexed_group import Ids, IndexedGroup
from assignors.context import spend
from assignors.exceptions import CannotTell
from assignors.model import Group, PartitionRacks, Subscription

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


class RackInfo:
    """The racks of a group in which they matter.

    Attributes:
        of_members: Rack of each member; None for a member that counts as being in all racks. (For librdkafka a member
            with an empty text as rack is in none.)
        of_partitions: Racks of the replicas of each partition, by id.
    """

    __slots__ = ("_consumers", "of_members", "of_partitions")

    def __init__(self, of_members: Sequence[str | None], of_partitions: Sequence[frozenset[str]]) -> None:
        self.of_members = of_members
        self.of_partitions = of_partitions
        members: dict[str, int] = {}
        for rack in of_members:
            if rack is not None:
                members[rack] = members.get(rack, 0) + 1
        self._consumers = [sum(members.get(rack, 0) for rack in racks) for racks in of_partitions]

    def matches(self, member: int, ids: Ids) -> npt.NDArray[np.bool_]:
        """Whether a member may keep each partition; without a rack it may keep all; phantoms have no racks."""
        spend(ids.size // 4)
        rack = self.of_members[member]
        if rack is None:
            return np.ones(ids.size, dtype=bool)
        known = len(self.of_partitions)
        return np.fromiter(
            (p < known and rack in self.of_partitions[p] for p in ids.tolist()), dtype=bool, count=ids.size
        )

    def fits(self, member: int, partition: int) -> bool:
        """Whether a member has no rack, or one of the partition's."""
        rack = self.of_members[member]
        return rack is None or rack in self.of_partitions[partition]

    def by_consumers(self, ids: Ids) -> list[int]:
        """Partitions sorted by the number of members in their racks; the sort is stable."""
        return sorted(ids.tolist(), key=self._consumers.__getitem__)

    def next_in_rack(self, partition: int, members: Sequence[int], first: int) -> int:
        """Index of the next member in a rack of the partition, cyclic from `first` on; -1 if there is none."""
        racks = self.of_partitions[partition]
        if not racks:
            return -1
        for step in range(len(members)):
            position = (first + step) % len(members)
            if self.of_members[members[position]] in racks:
                spend(step // 4)
                return position
        spend(len(members) // 4)
        return -1


def rack_info(
    indexed: IndexedGroup, racks: PartitionRacks | None, of_members: Sequence[str | None] | None = None
) -> RackInfo | None:
    """Racks of a group, or None where the plain algorithm runs.

    Racks matter if the members' and the replicas' racks overlap, and some partition lacks replicas in one of the racks
    (`useRackAwareAssignment`, over all topics together).

    Args:
        indexed: The group.
        racks: Racks of the replicas.
        of_members: Racks of the members, as in `RackInfo`; None where an empty rack means no rack, as in Java.

    Raises:
        CannotTell: Members have racks and the replicas' racks are not known.
    """
    if of_members is None:
        of_members = [member.rack or None for member in indexed.members]
    wanted = {rack for rack in of_members if rack}
    if not wanted:
        return None
    of_partitions: list[frozenset[str]] = []
    known: dict[tuple[str, ...], frozenset[str]] = {}
    for topic, count in zip(indexed.topics, indexed.counts, strict=True):
        of_partitions += replica_racks(topic, count, racks, known)
    everywhere: frozenset[str] = frozenset().union(*set(of_partitions))
    if wanted.isdisjoint(everywhere) or set(of_partitions) == {everywhere}:
        return None
    return RackInfo(of_members, of_partitions)
