"""The broker's `uniform` for members that all subscribe to the same topics.

Follows `UniformHomogeneousAssignmentBuilder`: members keep their partitions up to a quota, in the order of the maps;
the rest is dealt in one go, one member filled before the next. Partitions are not dealt one by one: the rest is a list
of pieces, and each member takes a slice of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain

import numpy as np

from assignors.assignment import Assignment, Partitions
from assignors.brokers.model import ServerGroup
from assignors.exceptions import LeaderWouldFail
from assignors.hash_map import in_hash_set

_Piece = tuple[str, Sequence[int]]


def keep_and_fill(group: ServerGroup, *, gives_back: bool) -> Assignment:
    """The assignment of 4.0 and later.

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
    rest, distinct = _unassigned(group, topics)
    quota, extras = divmod(sum(group.counts[topic_id] for topic_id in topics), len(order))
    unfilled: list[tuple[str, int]] = []
    ends = np.cumsum(group.lengths).tolist()
    of_member = dict(zip(result, accumulate((len(member.target) for member in group.members), initial=0), strict=False))
    for position, member in enumerate(order):
        member_id, extra = member.member_id, extras > 0
        lack = quota + extra
        for uuid, at in group.target_in_map_order(member):
            topic_id = uuid.text
            if topic_id not in distinct:
                continue
            partitions = member.target[at][1]
            kept = partitions if distinct[topic_id] else list(dict.fromkeys(partitions))
            if len(kept) > lack:
                end = ends[of_member[member_id] + at]
                numbers = group.partitions[end - len(partitions) : end] if kept is partitions else np.array(kept)
                # A number is its own hash code.
                in_set = in_hash_set(numbers.astype(np.uint32), len(partitions))
                walked = list(map(numbers.tolist().__getitem__, in_set))
                kept = walked[:lack]
                rest.append((topic_id, walked[lack:]))
            lack -= len(kept)
            if kept:
                result[member_id][topic_id] = kept
        if extra and not (gives_back and lack > 0 and len(order) - position > extras):
            extras -= 1
        elif extra:
            lack -= 1
        if lack > 0:
            unfilled.append((member_id, lack))
    _fill(result, unfilled, rest)
    return result


def _unassigned(group: ServerGroup, topics: Sequence[str]) -> tuple[list[_Piece], dict[str, bool]]:
    """Partitions of each topic that are in no target, ascending; and whether all that are exist and are in one."""
    row = {topic_id: position for position, topic_id in enumerate(topics)}
    texts = (group.uuids[topic_id].text for member in group.members for topic_id, _ in member.target)
    # Other topics come last, with no partitions.
    rows = np.array([row.get(text, len(topics)) for text in texts], dtype=np.int32)
    counts = np.array([*(group.counts[topic_id] for topic_id in topics), 0], dtype=np.int32)
    base = np.cumsum(counts, dtype=np.int32) - counts
    of_each = np.repeat(rows, group.lengths)
    places = base.take(of_each) + group.partitions
    exist = (group.partitions >= 0) & (group.partitions < counts.take(of_each))
    free = np.ones(int(counts.sum()), dtype=bool)
    free[places if exist.all() else places[exist]] = False
    listed = np.bincount(rows, weights=group.lengths, minlength=len(topics)).tolist()
    rest: list[_Piece] = []
    distinct = {}
    for topic_id, of_topic, size in zip(topics, np.split(free, base[1:-1]), listed, strict=False):
        left: Sequence[int] = np.flatnonzero(of_topic).tolist() if size else range(of_topic.size)
        rest.append((topic_id, left))
        distinct[topic_id] = of_topic.size - len(left) == size
    return rest, distinct


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
            earlier = owned.get(topic_id)
            owned[topic_id] = part if earlier is None else list(dict.fromkeys(chain(earlier, part)))
    if start < len(piece) or any(piece for _, piece in pieces):
        reason = 'the broker\'s uniform throws "Partitions were left unassigned" on these previous owners'
        raise LeaderWouldFail(reason)
