"""The broker's `uniform` for members that subscribe to different topics, since 4.0.

Follows `UniformHeterogeneousAssignmentBuilder` as rewritten in 4.0.0 (KAFKA-17710) and its `MemberAssignmentBalancer`:
members keep those of their partitions that they still subscribe to, the rest is dealt topic by topic to the least
loaded members, then topics are balanced in rounds. The owners of all partitions are kept in one array. A topic whose
partitions do not change hands is returned in the form that the member's target has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice

import numpy as np
from numpy.typing import NDArray

from assignors.assignment import Assignment, Partitions
from assignors.blocks import places_by_topic
from assignors.brokers.model import ServerGroup, ServerMember, Uuid, texts_of
from assignors.context import spend
from assignors.exceptions import LeaderWouldFail

# Owner number of an unowned partition.
NOBODY = -1

# With more changed topics per member (on average) it is faster to build the whole result from the array.
_FEW_CHANGES = 2

# `MAX_ITERATION_COUNT` of the class: rounds over all topics.
_ROUNDS = 16

_Numbers = NDArray[np.signedinteger]


def deal_and_balance(group: ServerGroup) -> Assignment:
    """The assignment of 4.0 and later.

    Raises:
        LeaderWouldFail: A member had a partition that the topic does not have.
        CannotTell: We cannot follow the order of the member map.
    """
    current = kept(group)

    def in_order(topic: str) -> tuple[float, int, Uuid]:
        # Most partitions per subscriber first, then fewest subscribers, then by id.
        takers = len(current.subscribers[topic])
        return -group.counts[topic] / takers, takers, group.uuids[topic]

    topics = sorted(current.subscribers, key=in_order)
    _deal_the_rest(current, topics)
    _balance(current, [topic for topic in topics if len(current.subscribers[topic]) > 1])
    return assignment(current)


@dataclass(slots=True)
class CurrentOwners:
    """Current owners during the computation; members are numbers in the order of the member map, topics are ids.

    Attributes:
        member_ids: Ids by number.
        subscribers: Members of each subscribed topic, ascending; topics with the same subscribers share one list.
        everything: Owner of each partition, topic by topic; `NOBODY` for none.
        counts: Number of partitions of each topic, in the order of `everything`.
        owners: By topic: its slice of `everything`, for reading and writing.
        sizes: Partitions of each member as Kafka's class counts them: one that two members had counts for both.
        ghosts: Partitions that a member keeps although a later member had them too and is their owner.
        kept: Partitions that each member keeps, as its target lists them; None if several had the same partition.
        changed: By topic: members whose partitions of it differ from those they kept.
        moves: Number of moves so far.
    """

    member_ids: list[str]
    subscribers: dict[str, list[int]]
    everything: NDArray[np.int32]
    counts: NDArray[np.int64]
    owners: dict[str, NDArray[np.int32]]
    sizes: list[int]
    ghosts: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    kept: list[dict[str, Partitions]] | None = None
    changed: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    moves: int = 0

    def give(self, topic: str, partition: int, taker: int) -> None:
        """Move a partition from its owner to another member."""
        owners = self.owners[topic]
        giver = int(owners[partition])
        self.sizes[giver] -= 1
        if ghosts := self.ghosts.get((topic, giver)):
            ghosts.discard(partition)
        owners[partition] = taker
        self.sizes[taker] += 1
        self.changed[topic].update((giver, taker))
        self.moves += 1


def kept(group: ServerGroup) -> CurrentOwners:
    """The owners before anything is dealt: members own what they keep.

    Raises:
        LeaderWouldFail: A member had a partition that the topic does not have.
        CannotTell: We cannot follow the order of the member map.
    """
    members = group.in_map_order()
    wanted = [group.subscribed(member) for member in members]
    subscribers = places_by_topic(wanted, texts_of)
    counts = np.array([group.counts[topic] for topic in subscribers], dtype=np.int64)
    stops = np.cumsum(counts)
    everything = np.full(int(counts.sum()), NOBODY, dtype=np.int32)
    owners = dict(zip(subscribers, np.split(everything, stops[:-1]), strict=True)) if subscribers else {}
    current = CurrentOwners(
        [member.member_id for member in members], subscribers, everything, counts, owners, [0] * len(members)
    )
    targets, member_of, row_of, partitions = _had(group, members, wanted, subscribers)
    if ((partitions < 0) | (partitions >= counts[row_of])).any():
        reason = "the broker's uniform throws ArrayIndexOutOfBoundsException on a partition that does not exist"
        raise LeaderWouldFail(reason)
    places = (stops - counts)[row_of] + partitions
    if places.size and np.bincount(places).max() > 1:
        in_order = np.argsort(member_of, kind="stable")
        _keep_contested(current, member_of[in_order], row_of[in_order], partitions[in_order])
    else:
        everything[places] = member_of
        current.sizes = np.bincount(member_of, minlength=len(members)).tolist()
        current.kept = targets
    return current


def _had(
    group: ServerGroup, members: Sequence[ServerMember], wanted: Sequence[tuple[Uuid, ...]], topics: Iterable[str]
) -> tuple[list[dict[str, Partitions]], _Numbers, _Numbers, _Numbers]:
    # The members' previous partitions of topics that they still subscribe to: by member, as its target lists them; and
    # by partition: the member, the index of the topic, and its number.
    row = {topic: position for position, topic in enumerate(topics)}
    number_of = {member.member_id: number for number, member in enumerate(members)}
    lists = {id(subscribed): subscribed for subscribed in wanted}
    subscriptions = {key: frozenset(texts_of(subscribed)) for key, subscribed in lists.items()}
    targets: list[dict[str, Partitions]] = [{} for _ in members]
    rows = []
    numbers = []
    for member in group.members:
        number = number_of[member.member_id]
        subscribed = subscriptions[id(wanted[number])]
        for topic_id, partitions in member.target:
            topic = group.uuids[topic_id].text
            rows.append(row[topic] if topic in subscribed else NOBODY)
            numbers.append(number)
            if partitions and topic in subscribed:
                targets[number][topic] = partitions
    row_of = np.repeat(np.array(rows, dtype=np.int64), group.lengths)
    member_of = np.repeat(np.array(numbers, dtype=np.int64), group.lengths)
    stays = row_of >= 0
    return targets, member_of[stays], row_of[stays], group.partitions[stays]


def _keep_contested(
    current: CurrentOwners, member_of: _Numbers, row_of: _Numbers, partitions: NDArray[np.int32]
) -> None:
    """Settle partitions that several members had: the last one is the owner, and the others keep them as ghosts."""
    topics = list(current.subscribers)
    for number, row, partition in zip(member_of.tolist(), row_of.tolist(), partitions.tolist(), strict=True):
        owners = current.owners[topics[row]]
        before = int(owners[partition])
        if before == number:
            continue  # it occurs twice in one target
        if before != NOBODY:
            current.ghosts.setdefault((topics[row], before), set()).add(partition)
        owners[partition] = number
        current.sizes[number] += 1


class Balancer:
    """Two ranges of a topic's subscribers: the least loaded, who receive next, and the most loaded, who give next.

    Subscribers are sorted by size; the left range grows to the right and the right one to the left. The members of a
    range take (or give) in turn; after all have, the range's level rises (falls) by one, and members at that level join
    it. Sizes are read live: the caller changes them between two calls, whenever it moves a partition. `next_takers`
    changes them itself; use it only on a balancer that is never asked for givers.

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

    `even` has the subscriber lists (by identity) that were found even, with the number of moves at that time: they stay
    even until the next move.
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
        current.give(topic, partition, taker)
        moved = True
    return moved


def assignment(current: CurrentOwners) -> Assignment:
    """The resulting assignment; `current` must not be used afterwards."""
    owned = current.kept
    changes = sum(map(len, current.changed.values()))
    if owned is None or changes > _FEW_CHANGES * len(owned):
        owned = _written_out(current)
    else:
        for topic, numbers in current.changed.items():
            owners = current.owners[topic]
            spend(len(numbers) * (2 + len(owners) // 64))
            for number in numbers:
                partitions = np.flatnonzero(owners == number).tolist()
                if partitions:
                    owned[number][topic] = partitions
                else:
                    owned[number].pop(topic, None)
    return dict(zip(current.member_ids, owned, strict=True))


def _written_out(current: CurrentOwners) -> list[dict[str, Partitions]]:
    """Each member's partitions, built from the owner of every partition."""
    owned: list[dict[str, Partitions]] = [{} for _ in current.member_ids]
    topics = list(current.subscribers)
    # NumPy's stable sort of 16-bit numbers takes linear time.
    narrow = current.everything.astype(np.uint16) if len(owned) <= 1 << 16 else current.everything
    by_owner = np.argsort(narrow, kind="stable")
    numbers, rows = current.everything[by_owner], np.repeat(np.arange(len(topics)), current.counts)[by_owner]
    partitions = (by_owner - (np.cumsum(current.counts) - current.counts)[rows]).tolist()
    # End of each owner's run of partitions of one topic.
    ends = np.flatnonzero((np.diff(numbers, append=NOBODY) != 0) | (np.diff(rows, append=NOBODY) != 0))
    start = 0
    for number, row, last in zip(numbers[ends].tolist(), rows[ends].tolist(), ends.tolist(), strict=True):
        owned[number][topics[row]] = partitions[start : last + 1]
        start = last + 1
    for (topic, owner), ghosts in current.ghosts.items():
        if ghosts:
            owned[owner][topic] = sorted(ghosts.union(owned[owner].get(topic, ())))
    return owned
