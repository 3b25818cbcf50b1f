"""Blocks of partitions that are cut alike from many topics: worked out once, and shared.

Most groups subscribe alike, and their topics have few different sizes. What a member gets of one topic it then gets of
all like it, so that a million partitions are a few thousand ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from assignors.assignment import Assignment, Partitions
from assignors.model import Subscription, topics_listed

__all__ = ["Blocks", "in_blocks", "takers_by_topic"]

Blocks = Sequence[tuple[str, Partitions]]
"""Partitions of one topic by member id; members without any are left out."""


def in_blocks(
    member_ids: Iterable[str], topics: Iterable[tuple[str, Hashable]], blocks_of: Callable[[str], Blocks]
) -> Assignment:
    """Put an assignment together.

    Args:
        member_ids: All members, in the order of the result.
        topics: Topics in the order of the result, each with what it shares with those that are cut alike.
        blocks_of: Cuts one topic; asked once for all that are alike.
    """
    result: dict[str, dict[str, Partitions]] = {member_id: {} for member_id in member_ids}
    alike: dict[Hashable, dict[str, None]] = {}
    place: dict[str, int] = {}
    for topic, kind in topics:
        alike.setdefault(kind, {})[topic] = None
        place[topic] = len(place)
    several: set[str] = set()
    for names in alike.values():
        for member_id, block in blocks_of(next(iter(names))):
            if result[member_id]:
                several.add(member_id)
                result[member_id].update(dict.fromkeys(names, block))
            else:
                result[member_id] = dict.fromkeys(names, block)
    if len(alike) > 1:
        for member_id in several:
            row = result[member_id]
            result[member_id] = {topic: row[topic] for topic in sorted(row, key=place.__getitem__)}
    return result


def takers_by_topic(members: Sequence[Subscription], *, once: bool) -> dict[str, list[Subscription]]:
    """Subscribers of each topic in the given order, as often as they list it, or once each.

    Topics with the same subscribers share one list.
    """
    listed = topics_listed(members)
    kind_of = list(map(id, listed))
    times_by_topic: dict[str, dict[int, int]] = {}
    for kind, topics in dict(zip(kind_of, listed, strict=True)).items():
        for topic in topics:
            times = times_by_topic.setdefault(topic, {})
            times[kind] = 1 if once else times.get(kind, 0) + 1
    lists: dict[Hashable, list[Subscription]] = {}
    result = {}
    for topic, times in times_by_topic.items():
        key = tuple(times.items())
        takers = lists.get(key)
        if takers is None:
            takers = [m for m, kind in zip(members, kind_of, strict=True) for _ in range(times.get(kind, 0))]
            lists[key] = takers
        result[topic] = takers
    return result
