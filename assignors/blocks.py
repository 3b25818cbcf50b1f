"""Equal blocks of partitions of many topics: computed once and shared.

In most groups all members have the same subscription, and the topics have few different sizes. A member then gets the
same blocks of all topics of one size, so a million partitions are a few thousand ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Protocol, TypeVar

from assignors.assignment import Alike, Assignment, Partitions
from assignors.context import note
from assignors.model import Subscription, topics_listed
from assignors.steps import CutIntoBlocks

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


def cut(
    member_ids: Iterable[str],
    counts: Mapping[str, int],
    takers: Mapping[str, Sequence[_Member]],
    *,
    last_block_only: bool = False,
    listed: Mapping[str, Sequence[_Member]] | None = None,
) -> Assignment:
    """Give the k-th taker of each topic its k-th block of partitions, the first ones larger.

    A member listed twice is next to itself, so its blocks join.

    Args:
        member_ids: All members, in the order of the result.
        counts: Partition counts by topic.
        takers: Subscribers of each topic in the leader's order; topics with the same ones share a list.
        last_block_only: Whether a member's later block replaces its earlier one instead, whose partitions then stay
            unassigned (kafka-python).
        listed: All subscribers, where the leader forgets some.
    """

    def blocks(topic: str) -> Blocks:
        of_topic = takers[topic]
        quota, larger = divmod(counts[topic], len(of_topic))
        found: dict[str, Partitions] = {}
        start = stop = 0
        before = None
        for position, member in enumerate(of_topic):
            if member is not before or last_block_only:
                start = stop
            stop += quota + (position < larger)
            if stop > start:
                found[member.member_id] = range(start, stop)
            elif last_block_only:
                found.pop(member.member_id, None)
            before = member
        return list(found.items())

    def steps() -> Iterable[CutIntoBlocks]:
        alike: dict[Hashable, list[str]] = {}
        for topic, kind in topics:
            alike.setdefault(kind, []).append(topic)
        for names in alike.values():
            ids = [member.member_id for member in takers[names[0]]]
            everybody = {member.member_id for member in (listed or takers)[names[0]]}
            left_out = sorted(everybody.difference(ids))
            yield CutIntoBlocks.of(names, counts[names[0]], ids, blocks(names[0]), left_out)

    topics = [(topic, (id(takers[topic]), counts[topic])) for topic in sorted(takers) if counts.get(topic)]
    note(steps)
    return in_blocks(member_ids, topics, blocks)


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
