"""`range` of the broker: each topic's partitions are cut into one block per subscriber, the first ones larger.

Follows `org.apache.kafka.coordinator.group.assignor.RangeAssignor` of 3.9 and later. No racks, no stickiness.
"""

from __future__ import annotations

from assignors.assignment import Assignment, Partitions
from assignors.order import utf16
from assignors.server.hash_order import members_in_hash_order
from assignors.server.model import ServerGroup, ServerMember

__all__ = ["cut_ranges"]


def cut_ranges(group: ServerGroup) -> Assignment:
    """What 3.9 and later assign."""
    result: dict[str, dict[str, Partitions]] = {member.member_id: {} for member in group.members}
    takers: dict[str, list[str]] = {}
    if group.homogeneous and group.members:
        # (One list for all topics: their blocks are worked out once per partition count.)
        everybody = [member.member_id for member in _in_order(group)]
        takers = dict.fromkeys((uuid.text for uuid in group.subscribed(group.members[0])), everybody)
    else:
        for member in _in_order(group):
            for uuid in group.subscribed(member):
                takers.setdefault(uuid.text, []).append(member.member_id)
    cut: dict[tuple[int, int], list[range]] = {}
    for topic_id in sorted(takers):
        of_topic, count = takers[topic_id], group.counts[topic_id]
        blocks = cut.get((count, len(of_topic)))
        if blocks is None:
            blocks = cut[count, len(of_topic)] = _blocks(count, len(of_topic))
        for member_id, block in zip(of_topic, blocks, strict=False):
            result[member_id][topic_id] = block
    return result


def _blocks(count: int, takers: int) -> list[range]:
    """Blocks of those takers that get any."""
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
        # Equal instance ids, which a coordinator never lets happen, stay in the order of the map.
        by_id = {member_id: by_id[member_id] for member_id in members_in_hash_order(by_id)}
    return sorted(
        by_id.values(),
        key=lambda member: (
            (1, utf16(member.member_id)) if member.group_instance_id is None else (0, utf16(member.group_instance_id))
        ),
    )
