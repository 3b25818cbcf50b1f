"""The smallest possible maximum for a group whose members subscribe to different topics, computed as a flow.

Partitions flow from topics to subscribers. Topics with the same subscribers, and members with the same subscription,
are merged, so that regular groups have small graphs.
"""

from __future__ import annotations

from collections.abc import Mapping

from assignors.model import Group, topics_listed
from assignors.work import spend


def smallest_maximum(group: Group) -> int:
    """Number of partitions of the fullest member in the most even assignment of all partitions; exact.

    Start from the mean, rounded up, and let the partitions flow. If some do not fit, all members that they could reach,
    directly or by displacing others, are full: the topics with only these subscribers are too many for them, and their
    mean, rounded up, is the next bound. It grows each time and never exceeds the answer.

    Returns:
        0 when nothing can be assigned.

    Raises:
        TooMuchWork: The flow takes more steps than a limit allows (`assignors.work`).
    """
    counts = group.partitions_per_topic
    class_of: dict[frozenset[str], int] = {}
    wants: list[list[str]] = []  # existing topics of each class
    members: list[int] = []  # members of each class
    known: dict[int, int] = {}
    for listed in topics_listed(group.members):
        index = known.get(id(listed))
        if index is None:
            # In record order: the duration of the flow must not depend on the order of a set of strings.
            existing = [topic for topic in dict.fromkeys(listed) if counts.get(topic)]
            index = known[id(listed)] = class_of.setdefault(frozenset(existing), len(members)) if existing else -1
            if index == len(members):
                wants.append(existing)
                members.append(0)
        if index >= 0:
            members[index] += 1
    takers: dict[str, list[int]] = {}
    for index, existing in enumerate(wants):
        spend(len(existing))
        for topic in existing:
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
    """Let supply flow into the room of its classes; None if all fits, else the classes that it fills."""
    sources = list(supply)
    # By class: its partitions from each source.
    given: list[dict[int, int]] = [{} for _ in room]
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
                amount = min(amount, given[back][giver])
            room[end] -= amount
            left -= amount
            back = end
            while True:
                giver = came_from[back]
                given[back][giver] = given[back].get(giver, 0) + amount
                if giver == source:
                    break
                back = taken_from[giver]
                given[back][giver] -= amount
                if not given[back][giver]:
                    del given[back][giver]
    return None


def _search(
    source: int, sources: list[tuple[int, ...]], given: list[dict[int, int]], room: list[int]
) -> tuple[dict[int, int], dict[int, int], int | None]:
    """Breadth-first search from a source to a class with room, through sources that can give elsewhere.

    Returns:
        The source from which each class was reached, the class through which each further source was reached, and the
        class with room, or None.
    """
    came_from: dict[int, int] = {}
    taken_from: dict[int, int] = {source: -1}
    queue = [source]
    for giver in queue:
        spend(len(sources[giver]))
        for index in sources[giver]:
            if index in came_from:
                continue
            came_from[index] = giver
            if room[index]:
                return came_from, taken_from, index
            spend(len(given[index]))
            for other in given[index]:
                if other not in taken_from:
                    taken_from[other] = index
                    queue.append(other)
    return came_from, taken_from, None
