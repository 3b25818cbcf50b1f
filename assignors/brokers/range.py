"""The broker's `range`: each topic's partitions are cut into one block per subscriber, the first ones larger.

Follows `org.apache.kafka.coordinator.group.assignor.RangeAssignor` of 3.9 and later. No racks, no stickiness.
"""

from __future__ import annotations

from assignors.assignment import Assignment
from assignors.blocks import Blocks, in_blocks, places_by_topic
from assignors.brokers.hash_order import members_in_hash_order
from assignors.brokers.model import ServerGroup, ServerMember
from assignors.brokers.uuid import texts_of
from assignors.order import utf16

__all__ = ["cut_ranges"]


def cut_ranges(group: ServerGroup) -> Assignment:
    """The assignment of 3.9 and later."""
    in_order = _in_order(group)
    takers = places_by_topic([group.subscribed(member) for member in in_order], texts_of)
    counts = group.counts

    def blocks(topic_id: str) -> Blocks:
        of_topic = takers[topic_id]
        cut = _blocks(counts[topic_id], len(of_topic))
        return [(in_order[place].member_id, block) for place, block in zip(of_topic, cut, strict=False)]

    topics = ((topic_id, (counts[topic_id], id(takers[topic_id]))) for topic_id in sorted(takers))
    return in_blocks((member.member_id for member in group.members), topics, blocks)


def _blocks(count: int, takers: int) -> list[range]:
    """The blocks that are not empty, one per taker."""
    quota, larger = divmod(count, takers)
    return [
        range(index * quota + min(index, larger), (index + 1) * quota + min(index + 1, larger))
        for index in range(takers if quota else larger)
    ]


def _in_order(group: ServerGroup) -> list[ServerMember]:
    """Static members by instance id, then dynamic ones by member id."""
    by_id = {member.member_id: member for member in group.members}
    if len({m.group_instance_id for m in group.members if m.group_instance_id is not None}) < sum(
        m.group_instance_id is not None for m in group.members
    ):
        # Equal instance ids, which a coordinator never allows, stay in the order of the map.
        by_id = {member_id: by_id[member_id] for member_id in members_in_hash_order(by_id)}
    return sorted(
        by_id.values(),
        key=lambda member: (
            (1, utf16(member.member_id)) if member.group_instance_id is None else (0, utf16(member.group_instance_id))
        ),
    )
