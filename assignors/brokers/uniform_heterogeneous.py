"""The broker's `uniform` for members that subscribe to different topics, since 4.0.

Follows `UniformHeterogeneousAssignmentBuilder` as rewritten in 4.0.0 (KAFKA-17710) and its `MemberAssignmentBalancer`:
members keep those of their partitions that they still subscribe to, the rest is dealt topic by topic to the least
loaded members, then topics are balanced in rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

import numpy as np

from assignors.assignment import Assignment, PartitionId
from assignors.brokers.model import ServerGroup, Uuid
from assignors.brokers.uniform_owners import NOBODY, CurrentOwners, assignment, kept
from assignors.trace import Note, note, notes
from assignors.work import spend


class Balancer:
    """Two ranges of a topic's subscribers: the least loaded, who receive next, and the most loaded, who give next.

    Subscribers are sorted by size; the left range grows to the right and the right one to the left.

    The members of a range take (or give) in turn; after all have, the range's level rises (falls) by one, and members
    at that level join it. Sizes are read live: the caller changes them between two calls, whenever it moves a
    partition. `next_takers` changes them itself; use it only on a balancer that is never asked for givers.

    Attributes:
        spread: Difference between the largest and the smallest size at the start.
    """

    def __init__(self, sizes: list[int], members: Sequence[int]) -> None:
        self._sizes = sizes
        self._members = sorted(members, key=sizes.__getitem__)
        lowest, highest = sizes[self._members[0]], sizes[self._members[-1]]
        self.spread = highest - lowest
        self._low_end = 0
        self._low_level = lowest - 1
        self._low_next = 0
        self._high_start = self._high_end = len(members)
        self._high_level = highest + 1
        self._high_next = len(members) - 1

    @property
    def balanced(self) -> bool:
        """Whether the levels of the two ranges differ by one at most."""
        return self._high_level - self._low_level <= 1

    def next_taker(self) -> int:
        """The next member to receive a partition."""
        if self._low_next >= self._low_end:
            self._low_level += 1
            self._extend_low()
            self._low_next = 0
        member = self._members[self._low_next]
        self._low_next += 1
        return member

    def next_takers(self, count: int) -> list[int]:
        """The next `count` members to receive a partition, in order; their sizes are already increased."""
        takers: list[int] = []
        members, sizes = self._members, self._sizes
        while len(takers) < count:
            self._low_level += 1
            self._extend_low()
            left = count - len(takers)
            # Full turns until the next member joins.
            turns = -(-left // self._low_end)
            if self._low_end < len(members):
                turns = min(turns, sizes[members[self._low_end]] - self._low_level)
            dealt = min(left, turns * self._low_end)
            takers += islice(cycle(members[: self._low_end]), dealt)
            full, more = divmod(dealt, self._low_end)
            for position in range(self._low_end):
                sizes[members[position]] += full + (position < more)
            self._low_level += turns - 1
        return takers

    def next_giver(self) -> int | None:
        """The next member to give a partition; None when no member is left."""
        if self._high_next < self._high_start:
            if 0 < self._high_start >= self._high_end:
                # All of the range was excluded: start again from the member before it.
                self._high_level = self._sizes[self._members[self._high_start - 1]]
            else:
                self._high_level -= 1
            while self._high_start and self._sizes[self._members[self._high_start - 1]] == self._high_level:
                self._high_start -= 1
            self._high_next = self._high_end - 1
        if self._high_next < 0:
            return None
        member = self._members[self._high_next]
        self._high_next -= 1
        return member

    def exclude_last_giver(self) -> None:
        """Exclude the last result of `next_giver` from its range: it has nothing to give."""
        members, gave, last = self._members, self._high_next + 1, self._high_end - 1
        members[gave], members[last] = members[last], members[gave]
        self._high_end = last

    def _extend_low(self) -> None:
        while self._low_end < len(self._members) and self._sizes[self._members[self._low_end]] == self._low_level:
            self._low_end += 1


# `MAX_ITERATION_COUNT` of the class: rounds over all topics.
_ROUNDS = 16


def deal_and_balance(group: ServerGroup) -> Assignment:
    """The assignment of 4.0 and later.

    Raises:
        LeaderWouldFail: A member had a partition that the topic does not have.
        CannotTell: We cannot follow the order of the member map.
    """
    current = kept(group)
    note(lambda: [Note("kept", "subscribed", _owned_now(current))])

    def in_order(topic: str) -> tuple[float, int, Uuid]:
        # Most partitions per subscriber first, then fewest subscribers, then by id.
        takers = len(current.subscribers[topic])
        return -group.counts[topic] / takers, takers, group.uuids[topic]

    topics = sorted(current.subscribers, key=in_order)
    _deal_the_rest(current, topics)
    _balance(current, [topic for topic in topics if len(current.subscribers[topic]) > 1])
    return assignment(current)


def _owned_now(current: CurrentOwners) -> list[tuple[PartitionId, str]]:
    owned = [
        ((topic, partition), current.member_ids[owner])
        for topic, owners in current.owners.items()
        for partition, owner in enumerate(owners.tolist())
        if owner != NOBODY
    ]
    ghosts = [
        ((topic, partition), current.member_ids[owner])
        for (topic, owner), partitions in current.ghosts.items()
        for partition in sorted(partitions)
    ]
    return owned + ghosts


def _deal_the_rest(current: CurrentOwners, topics: Sequence[str]) -> None:
    if NOBODY not in current.everything:
        return
    for topic in topics:
        owners = current.owners[topic]
        free = np.flatnonzero(owners == NOBODY)
        if len(free):
            spend(len(free) + len(current.subscribers[topic]))
            takers = Balancer(current.sizes, current.subscribers[topic]).next_takers(len(free))
            owners[free] = takers
            if (log := notes()) is not None:
                ids = current.member_ids
                dealt = zip(free.tolist(), takers, strict=True)
                log.append(Note("given", "least", [((topic, p), ids[taker]) for p, taker in dealt]))
            current.changed[topic].update(takers)


def _balance(current: CurrentOwners, topics: Sequence[str]) -> None:
    """Balance the topics in rounds until one full round changes nothing."""
    last_changed = NOBODY
    even: dict[int, int] = {}
    for _ in range(_ROUNDS):
        for position, topic in enumerate(topics):
            if position == last_changed:
                return
            if _balance_topic(current, topic, even) or last_changed == NOBODY:
                last_changed = position


def _balance_topic(current: CurrentOwners, topic: str, even: dict[int, int]) -> bool:
    """Move partitions of one topic from its most to its least loaded subscribers; returns whether any moved.

    Args:
        current: Current owners.
        topic: The topic.
        even: Subscriber lists (by identity) that were found even, with the number of moves at that time: they stay even
            until the next move.
    """
    subscribers = current.subscribers[topic]
    if even.get(id(subscribers)) == current.moves:
        return False
    spend(len(subscribers))
    balancer = Balancer(current.sizes, subscribers)
    if balancer.spread <= 1:
        even[id(subscribers)] = current.moves
        return False
    # Only partitions that a member had when the round reached the topic are given, not those it receives meanwhile.
    # This also limits the moves, as the members limit the skipped givers.
    spend(2 * len(current.owners[topic]) + len(subscribers))
    to_give: dict[int, list[int]] = {}
    for partition, owner in enumerate(current.owners[topic].tolist()):
        to_give.setdefault(owner, []).append(partition)
    moved = False
    while not balancer.balanced:
        giver = balancer.next_giver()
        while giver is not None and not to_give.get(giver):
            balancer.exclude_last_giver()
            giver = balancer.next_giver()
        if giver is None:
            break
        partition = to_give[giver].pop()
        taker = balancer.next_taker()
        if balancer.balanced:
            break
        if (log := notes()) is not None:
            taken = (topic, partition), current.member_ids[taker]
            log.append(Note("moved", "balance", [taken], current.member_ids[giver]))
        current.give(topic, partition, taker)
        moved = True
    return moved
