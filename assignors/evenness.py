"""The smallest possible maximum of a group whose members subscribe to different topics, as a flow.

Partitions flow from topics to subscribers. Topics with the same subscribers, and members with the same
subscription, are taken together, so that the graph is as small as the group is regular.
"""

from __future__ import annotations

from collections.abc import Mapping

from assignors.model import Group

__all__ = ["smallest_maximum"]


def smallest_maximum(group: Group) -> int:
    """The number of partitions of the fullest member in the most even assignment of all partitions; exact.

    Start from the mean, rounded up, and let the partitions flow. If some do not fit, all members that they could
    reach, directly or by pushing others aside, are full: the topics that only those subscribe to are too many
    for them, and their mean, rounded up, is the next bound. It grows each time and never beyond the answer.

    Returns:
        0 when nothing can be assigned.
    """
    counts = group.partitions_per_topic
    class_of: dict[frozenset[str], int] = {}
    members: list[int] = []  # members of each class
    for member in group.members:
        wanted = frozenset(topic for topic in member.topics if counts.get(topic))
        if wanted:
            index = class_of.setdefault(wanted, len(members))
            if index == len(members):
                members.append(0)
            members[index] += 1
    takers: dict[str, list[int]] = {}
    for wanted, index in class_of.items():
        for topic in wanted:
            takers.setdefault(topic, []).append(index)
    supply: dict[tuple[int, ...], int] = {}
    for topic, of_topic in takers.items():
        key = tuple(of_topic)
        supply[key] = supply.get(key, 0) + counts[topic]
    if not supply:
        return 0
    most = -(-sum(supply.values()) // sum(members))
    while (full := _full_classes(supply, [size * most for size in members])) is not None:
        confined = sum(count for key, count in supply.items() if full.issuperset(key))
        most = -(-confined // sum(members[index] for index in full))
    return most


def _full_classes(supply: Mapping[tuple[int, ...], int], room: list[int]) -> set[int] | None:
    """Let supply flow into the room of its classes; None if all fits, else the classes that are full for it."""
    sources = list(supply)
    given: list[dict[int, int]] = [dict.fromkeys(key, 0) for key in sources]
    for source, key in enumerate(sources):
        left = supply[key]
        while left:
            came_from, taken_from, end = _search(source, sources, given, room)
            if end is None:
                return set(came_from)
            amount = min(left, room[end])
            back = end
            while (giver := came_from[back]) != source:
                back = taken_from[giver]
                amount = min(amount, given[giver][back])
            room[end] -= amount
            left -= amount
            back = end
            while True:
                giver = came_from[back]
                given[giver][back] += amount
                if giver == source:
                    break
                back = taken_from[giver]
                given[giver][back] -= amount
    return None


def _search(
    source: int, sources: list[tuple[int, ...]], given: list[dict[int, int]], room: list[int]
) -> tuple[dict[int, int], dict[int, int], int | None]:
    """Breadth-first from a source to a class with room, through sources that can give elsewhere.

    Returns:
        The source by which each class was reached, the class through which each further source was reached, and
        the class with room, or None.
    """
    came_from: dict[int, int] = {}
    taken_from: dict[int, int] = {source: -1}
    queue = [source]
    for giver in queue:
        for index in sources[giver]:
            if index in came_from:
                continue
            came_from[index] = giver
            if room[index]:
                return came_from, taken_from, index
            for other, flows in enumerate(given):
                if other not in taken_from and flows.get(index):
                    taken_from[other] = index
                    queue.append(other)
    return came_from, taken_from, None
