"""Whether racks could have changed what a leader computed (KIP-881): if so, it cannot be told for now.

The rack-aware passes themselves are not recomputed yet; each function here only proves that they did nothing.
"""

from __future__ import annotations

from assignors.exceptions import CannotTell
from assignors.model import Group
from assignors.strategy import PartitionRacks

__all__ = ["refuse_any_rack_match", "refuse_needed_racks"]

_UNKNOWN = "members have racks and the replicas' racks are not known"
_MATTER = "racks matter here and rack-aware assignment is not recomputed yet"


def refuse_needed_racks(group: Group, racks: PartitionRacks | None) -> None:
    """Pass when no topic needs racks as `RangeAssignor` of Java >= 3.5 sees it.

    A topic needs racks when its subscribers' racks and its replicas' racks meet, and not every partition has
    replicas in all of the topic's racks (`AbstractPartitionAssignor.useRackAwareAssignment`). When no topic
    does, the plain algorithm runs.

    Raises:
        CannotTell: A topic needs racks, or its replicas' racks are not known.
    """
    for replicas, wanted in _topics_with_racks(group, racks):
        everywhere = frozenset().union(*replicas)
        if wanted & everywhere and any(of_partition != everywhere for of_partition in replicas):
            raise CannotTell(_MATTER)


def refuse_any_rack_match(group: Group, racks: PartitionRacks | None) -> None:
    """Pass when no subscriber's rack is a rack of any replica of its topics.

    Stricter than Java's rule, for leaders whose rack-aware passes go by other rules: librdkafka >= 2.2 deals
    topics of equal subscribers and counts by rack even where no topic needs it, franz-go looks at the leader
    replica alone. Where nothing matches, both deal plainly.

    Raises:
        CannotTell: A rack matches, or the replicas' racks are not known.
    """
    for replicas, wanted in _topics_with_racks(group, racks):
        if not wanted.isdisjoint(frozenset().union(*replicas)):
            raise CannotTell(_MATTER)


def _topics_with_racks(group: Group, racks: PartitionRacks | None) -> list[tuple[list[frozenset[str]], frozenset[str]]]:
    """Per existing topic with a subscriber that has a rack: racks of each partition, racks of the subscribers."""
    wanted: dict[str, set[str]] = {}
    for member in group.members:
        if member.rack:
            for topic in member.topics:
                if group.partitions_per_topic.get(topic):
                    wanted.setdefault(topic, set()).add(member.rack)
    result = []
    for topic, of_members in wanted.items():
        of_partitions = None if racks is None else racks.get(topic)
        if of_partitions is None or len(of_partitions) != group.partitions_per_topic[topic]:
            raise CannotTell(_UNKNOWN)
        replicas = [frozenset(rack for rack in of_partition if rack) for of_partition in of_partitions]
        result.append((replicas, frozenset(of_members)))
    return result
