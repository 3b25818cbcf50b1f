"""The broker's `range`: each topic's partitions are cut into one block per subscriber, the first ones larger.

Follows `org.apache.kafka.coordinator.group.assignor.RangeAssignor`. Before 3.9 members keep what they had, and only the
rest is cut into blocks; since then there is no stickiness. No racks.
"""

from __future__ import annotations

from assignors.assignment import Assignment, Partitions
from assignors.blocks import deal_blocks, members_at, places_by_topic
from assignors.brokers.model import ServerGroup, ServerMember, texts_of
from assignors.exceptions import LeaderWouldFail
from assignors.order import utf16


def cut_ranges(group: ServerGroup) -> Assignment:
    """The assignment of 3.9 and later."""
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


def cut_ranges_keeping_the_target(group: ServerGroup) -> Assignment:
    """The assignment of 3.8: per topic up to a quota of partitions stay, the lowest first, in member map order.

    Raises:
        LeaderWouldFail: The group has no members, or previous owners contradict each other so that a block would reach
            beyond the remaining partitions.
        CannotTell: We cannot follow the order of the member map.
    """
    if not group.members:
        reason = "the broker's range before 3.9 throws NoSuchElementException on a group without members"
        raise LeaderWouldFail(reason)
    takers: dict[str, list[str]] = {}
    for member in group.in_map_order():
        for uuid in group.subscribed(member):
            takers.setdefault(uuid.text, []).append(member.member_id)
    had = {
        member.member_id: {group.uuids[topic_id].text: sorted(set(parts)) for topic_id, parts in member.target}
        for member in group.members
    }
    result: dict[str, dict[str, Partitions]] = {member_id: {} for member_id in had}
    for topic_id in sorted(takers):
        had_here = {member_id: had[member_id].get(topic_id, []) for member_id in takers[topic_id]}
        dealt = _deal(group.counts[topic_id], had_here)
        for member_id, partitions in dealt.items():
            if partitions:
                result[member_id][topic_id] = partitions
    return result


def _deal(count: int, had: dict[str, list[int]]) -> dict[str, list[int]]:
    """Deal one topic: partitions of each subscriber, from those it had, sorted; both dicts in the order of the map."""
    quota, larger = divmod(count, len(had))
    result: dict[str, list[int]] = {}
    lacking: dict[str, int] = {}
    for member_id, partitions in had.items():
        keep = min(len(partitions), quota)
        if len(partitions) > quota and larger:
            larger -= 1
            keep += 1
        else:
            lacking[member_id] = quota - len(partitions)
        result[member_id] = partitions[:keep]
    kept = {partition for partitions in result.values() for partition in partitions}
    left = [partition for partition in range(count) if partition not in kept]
    start = 0
    for member_id, lack in lacking.items():
        more = lack
        if larger:
            larger -= 1
            more += 1
        if more > 0:
            if start + more > len(left):
                reason = "the broker's range before 3.9 throws IndexOutOfBoundsException on these previous owners"
                raise LeaderWouldFail(reason)
            result[member_id] = list(dict.fromkeys([*result[member_id], *left[start : start + more]]))
            start += more
    return result
