"""The broker's `range`: each topic's partitions are cut into one block per subscriber, the first ones larger.

Follows `org.apache.kafka.coordinator.group.assignor.RangeAssignor` of 4.0 and later. No stickiness, no racks.
"""

from __future__ import annotations

from assignors.assignment import Assignment
from assignors.blocks import deal_blocks, members_at, places_by_topic
from assignors.brokers.model import ServerGroup, ServerMember, texts_of
from assignors.order import utf16


def cut_ranges(group: ServerGroup) -> Assignment:
    """The assignment of the whole group."""
    in_order = _in_order(group)
    takers = members_at(places_by_topic([group.subscribed(member) for member in in_order], texts_of), in_order)
    return deal_blocks((member.member_id for member in group.members), group.counts, takers)


def _in_order(group: ServerGroup) -> list[ServerMember]:
    """Static members by instance id, then dynamic ones by member id."""
    instances = [m.group_instance_id for m in group.members if m.group_instance_id is not None]
    # Equal instance ids, which a coordinator never allows, stay in the order of the map.
    members = group.members if len(set(instances)) == len(instances) else group.in_map_order()
    return sorted(
        members,
        key=lambda member: (
            (1, utf16(member.member_id)) if member.group_instance_id is None else (0, utf16(member.group_instance_id))
        ),
    )
