"""The broker's `uniform` for members that all subscribe to the same topics.

Follows `UniformHomogeneousAssignmentBuilder`: members keep their partitions up to a quota, in the order of the maps;
the rest is dealt in one go, one member filled before the next. Partitions are not dealt one by one: the rest is a list
of pieces, and each member takes a slice of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from assignors.assignment import Assignment, Partitions
from assignors.brokers.model import ServerGroup, ServerMember
from assignors.context import Note, notes
from assignors.exceptions import LeaderWouldFail
from assignors.hash_map import in_hash_map, in_hash_set
from assignors.steps import Shares

_Piece = tuple[str, Sequence[int]]


def keep_and_fill(group: ServerGroup, *, gives_back: bool) -> Assignment:
    """The assignment of 3.8 and later.

    Args:
        group: At least one member.
        gives_back: Since 4.0.1 (KAFKA-18688): a member below its quota leaves the extra one to a later member that may
            have it. Before, the first members of the map may have one more, whether they had that many or not.

    Raises:
        LeaderWouldFail: Partitions are left over.
        CannotTell: We cannot follow the order of a map.
    """
    result: dict[str, dict[str, Partitions]] = {member.member_id: {} for member in group.members}
    order = group.in_map_order()
    first = order[0]
    subscribed = group.subscribed(first)
    # `TopicIds.size()`, which determines the table size, counts all names, including those without a topic.
    in_set = in_hash_set([uuid.code for uuid in subscribed], listed=len(set(first.topics)))
    topics = [subscribed[position].text for position in in_set]
    if not topics:
        return result
    had: dict[str, list[Sequence[int]]] = {topic_id: [] for topic_id in topics}
    for member in group.members:
        for topic_id, partitions in member.target:
            of_topic = had.get(group.uuids[topic_id].text)
            if of_topic is not None:
                of_topic.append(partitions)
    rest: list[_Piece] = []
    distinct: dict[str, bool] = {}
    for topic_id, lists in had.items():
        free, distinct[topic_id] = _unassigned(group.counts[topic_id], lists)
        rest.append((topic_id, free))
    quota, extras = divmod(sum(group.counts[topic_id] for topic_id in topics), len(order))
    unfilled: list[tuple[str, int]] = []
    log = notes()
    if log is not None:
        log.append(Shares(quota * len(order) + extras, len(order)))
    for position, member in enumerate(order):
        member_id, extra = member.member_id, extras > 0
        lack = quota + extra
        for topic_id, partitions in _in_map_order(group, member):
            if topic_id not in distinct:
                continue
            kept = partitions if distinct[topic_id] else list(dict.fromkeys(partitions))
            if len(kept) > lack:
                walked = _in_set_order(kept, len(partitions))
                kept = walked[:lack]
                rest.append((topic_id, walked[lack:]))
                if log is not None:
                    log.append(Note("over", "share", [((topic_id, p), member_id) for p in walked[lack:]]))
            lack -= len(kept)
            if kept:
                result[member_id][topic_id] = kept
                if log is not None:
                    log.append(Note("kept", "share", [((topic_id, p), member_id) for p in kept]))
        if extra and not (gives_back and lack > 0 and len(order) - position > extras):
            extras -= 1
        elif extra:
            lack -= 1
        if lack > 0:
            unfilled.append((member_id, lack))
    _fill(result, unfilled, rest)
    return result


def _unassigned(count: int, lists: Sequence[Sequence[int]]) -> tuple[Sequence[int], bool]:
    """Partitions of a topic that are in none of these lists, ascending; and whether none is in two of them."""
    if not lists:
        return range(count), True
    size = sum(map(len, lists))
    partitions = np.fromiter(chain.from_iterable(lists), dtype=np.int64, count=size)
    taken = np.zeros(count, dtype=bool)
    taken[partitions[(partitions >= 0) & (partitions < count)]] = True
    free: list[int] = np.flatnonzero(~taken).tolist()
    return free, count - len(free) == size


def _in_map_order(group: ServerGroup, member: ServerMember) -> Iterator[_Piece]:
    """The member's target in the iteration order of its HashMap (`Assignment.fromRecord`)."""
    if len(member.target) < 2:
        for topic_id, partitions in member.target:
            yield group.uuids[topic_id].text, partitions
        return
    uuids = [group.uuids[topic_id] for topic_id, _ in member.target]
    for position in in_hash_map([uuid.code for uuid in uuids]):
        yield uuids[position].text, member.target[position][1]


def _in_set_order(partitions: Sequence[int], listed: int) -> list[int]:
    """Partitions in the iteration order of `new HashSet<>(list)`; a number is its own hash code."""
    codes = np.fromiter(partitions, dtype=np.int64, count=len(partitions)).astype(np.uint32)
    return list(map(partitions.__getitem__, in_hash_set(codes, listed)))


def _fill(
    result: dict[str, dict[str, Partitions]], unfilled: Sequence[tuple[str, int]], rest: Sequence[_Piece]
) -> None:
    pieces = iter(rest)
    topic_id, piece = next(pieces, ("", ()))
    start = 0
    for member_id, lacks in unfilled:
        owned, lack = result[member_id], lacks
        while lack > 0:
            if start == len(piece):
                following = next(pieces, None)
                if following is None:
                    return
                topic_id, piece = following
                start = 0
                continue
            part = piece[start : start + lack]
            start += len(part)
            lack -= len(part)
            if part and (log := notes()) is not None:
                log.append(Note("given", "fill", [((topic_id, p), member_id) for p in part]))
            earlier = owned.get(topic_id)
            owned[topic_id] = part if earlier is None else list(dict.fromkeys(chain(earlier, part)))
    if start < len(piece) or any(piece for _, piece in pieces):
        reason = 'the broker\'s uniform throws "Partitions were left unassigned" on these previous owners'
        raise LeaderWouldFail(reason)
