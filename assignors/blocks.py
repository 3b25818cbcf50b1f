"""Deals the partitions of topics to their takers, in blocks or in turn; equal blocks are computed once and shared.

In most groups all members have the same subscription, and the topics have few different sizes. A member then gets the
same blocks of all topics of one size, so a million partitions are a few thousand ranges.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Protocol, TypeVar

from assignors.assignment import Alike, Assignment, Partitions
from assignors.model import Subscription, topics_listed

_Topic = TypeVar("_Topic")


class _HasId(Protocol):
    @property
    def member_id(self) -> str: ...


_Member = TypeVar("_Member", bound=_HasId)

Blocks = Sequence[tuple[str, Partitions]]
"""Partitions of one topic by member id; members without any are left out."""


def in_blocks(
    member_ids: Iterable[str], topics: Iterable[tuple[str, Hashable]], blocks_of: Callable[[str], Blocks]
) -> Assignment:
    """Build an assignment from blocks.

    Args:
        member_ids: All members, in the order of the result.
        topics: Topics in the order of the result, each with a key that topics with the same blocks share.
        blocks_of: Computes the blocks of one topic; called once per key.
    """
    parts: dict[str, list[Alike]] = {member_id: [] for member_id in member_ids}
    alike: dict[Hashable, dict[str, None]] = {}
    position_of: dict[str, int] = {}
    for topic, kind in topics:
        alike.setdefault(kind, {})[topic] = None
        position_of[topic] = len(position_of)
    for names in alike.values():
        for member_id, block in blocks_of(next(iter(names))):
            parts[member_id].append(Alike(names, block))
    return {member_id: of[0] if len(of) == 1 else _joined(of, position_of) for member_id, of in parts.items()}


def _joined(parts: Iterable[Alike], position_of: Mapping[str, int]) -> dict[str, Partitions]:
    row = dict(chain.from_iterable(part.items() for part in parts))
    return {topic: row[topic] for topic in sorted(row, key=position_of.__getitem__)}


def alike(counts: Mapping[str, int], takers: Mapping[str, Sequence[_Member]]) -> dict[tuple[int, int], list[str]]:
    """Existing topics, sorted, by what they must share to be dealt alike: the list of takers, and their number."""
    result: dict[tuple[int, int], list[str]] = {}
    for topic in sorted(takers):
        if counts.get(topic):
            result.setdefault((id(takers[topic]), counts[topic]), []).append(topic)
    return result


Block = Callable[[int, int, int], range]
"""Partitions of a taker, from its position, the number of partitions, and the number of takers."""


def larger_first(position: int, count: int, takers: int) -> range:
    """Blocks in order, the first ones larger by one."""
    quota, larger = divmod(count, takers)
    start = position * quota + min(position, larger)
    return range(start, start + quota + (position < larger))


def deal_blocks(
    member_ids: Iterable[str],
    counts: Mapping[str, int],
    takers: Mapping[str, Sequence[_Member]],
    block: Block = larger_first,
    *,
    last_only: bool = False,
) -> Assignment:
    """Give each taker of a topic its block of partitions.

    Args:
        member_ids: All members, in the order of the result.
        counts: Partition counts by topic.
        takers: Subscribers of each topic in the leader's order; topics with the same ones share a list.
        block: The rule.
        last_only: Whether the later block of a member that is listed twice replaces its earlier one, whose partitions
            then stay unassigned (kafka-python); else it gets both.
    """

    def blocks(topic: str) -> Blocks:
        of_topic = takers[topic]
        found: dict[str, Partitions] = {}
        for position, member in enumerate(of_topic):
            part: Partitions = block(position, counts[topic], len(of_topic))
            earlier = found.get(member.member_id)
            if earlier and not last_only:
                part = (*earlier, *part)
            found[member.member_id] = part
        return [(member_id, part) for member_id, part in found.items() if len(part)]

    topics = [(topic, (id(takers[topic]), counts[topic])) for topic in sorted(takers) if counts.get(topic)]
    return in_blocks(member_ids, topics, blocks)


def deal_in_turn(
    member_ids: Iterable[str],
    counts: Mapping[str, int],
    takers: Mapping[str, Sequence[_Member]],
    order: Sequence[_Member],
    topics: Iterable[str],
) -> Assignment:
    """Deal each topic's partitions in turn to its takers, going on where the topic before ended.

    Args:
        member_ids: All members, in the order of the result.
        counts: Partition counts by topic.
        takers: Who may get each topic, in the order of the turns; topics with the same ones share a list.
        order: All members in that order.
        topics: Existing topics in the order in which they are dealt.
    """
    positions = positions_in(order, takers)
    firsts: dict[str, int] = {}
    turn = 0
    for topic in topics:
        of_topic = positions[id(takers[topic])]
        firsts[topic] = first = bisect_left(of_topic, turn)
        turn = of_topic[(first + counts[topic] - 1) % len(of_topic)] + 1

    def blocks(topic: str) -> Blocks:
        of_topic, count, first = takers[topic], counts[topic], firsts[topic]
        return [
            (of_topic[(first + step) % len(of_topic)].member_id, range(step, count, len(of_topic)))
            for step in range(min(count, len(of_topic)))
        ]

    kinds = ((topic, (id(takers[topic]), counts[topic], first % len(takers[topic]))) for topic, first in firsts.items())
    return in_blocks(member_ids, kinds, blocks)


def positions_in(order: Sequence[_Member], takers: Mapping[str, Sequence[_Member]]) -> dict[int, list[int]]:
    """Positions of the takers in the order of all members, by the identity of their list."""
    position_of = {member.member_id: position for position, member in enumerate(order)}
    lists = {id(of_topic): of_topic for of_topic in takers.values()}
    return {key: [position_of[member.member_id] for member in of_topic] for key, of_topic in lists.items()}


def takers_by_topic(members: Sequence[Subscription], *, once: bool) -> dict[str, list[Subscription]]:
    """Subscribers of each topic in the given order, either as often as they list it or once each.

    Topics with the same subscribers share one list.
    """
    return members_at(places_by_topic(topics_listed(members), dict.fromkeys if once else tuple), members)


def members_at(places: Mapping[str, list[int]], members: Sequence[_Member]) -> dict[str, list[_Member]]:
    """The members at the places that each topic has; topics that share a list of places share one of members."""
    lists = {id(of_topic): of_topic for of_topic in places.values()}
    takers = {shared: [members[position] for position in of_topic] for shared, of_topic in lists.items()}
    return {topic: takers[id(of_topic)] for topic, of_topic in places.items()}


def places_by_topic(
    listed: Sequence[tuple[_Topic, ...]], names: Callable[[tuple[_Topic, ...]], Iterable[str]]
) -> dict[str, list[int]]:
    """Indexes of the members of each topic, ascending; topics with the same members share one list.

    Args:
        listed: Topics of each member; equal ones are one object, whose names are read only once.
        names: Names of a member's topics. A name that occurs twice puts the member into the topic's list twice.
    """
    kinds: dict[int, list[int]] = {}
    for position, topics in enumerate(listed):
        alike = kinds.get(id(topics))
        if alike is None:
            alike = kinds[id(topics)] = []
        alike.append(position)
    kinds_of: dict[str, list[int]] = {}
    for kind, places in kinds.items():
        for name in names(listed[places[0]]):
            kinds_of.setdefault(name, []).append(kind)
    lists: dict[tuple[int, ...], list[int]] = {}
    result = {}
    for name, of_topic in kinds_of.items():
        key = tuple(of_topic)
        found = lists.get(key)
        if found is None:
            found = lists[key] = sorted(chain.from_iterable(kinds[kind] for kind in key))
        result[name] = found
    return result
