"""`uniform` of the broker for members that subscribe to different topics, since 4.0.

Follows `UniformHeterogeneousAssignmentBuilder` as rewritten in 4.0.0 (KAFKA-17710): members keep what they had and
still subscribe to, the rest is dealt topic by topic to the least loaded, then topics are balanced in rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from assignors.assignment import Assignment, Partitions
from assignors.exceptions import LeaderWouldFail
from assignors.server.balancer import Balancer
from assignors.server.hash_order import members_in_hash_order
from assignors.server.model import ServerGroup
from assignors.server.uuid import Uuid

__all__ = ["deal_and_balance"]

# `MAX_ITERATION_COUNT`: rounds over all topics.
_ROUNDS = 16

_NOBODY = -1


@dataclass(slots=True)
class _Board:
    """Who has what while it is being worked out; topics by id, members by number in the order of the member map.

    Attributes:
        member_ids: Ids by number.
        subscribers: Members of each topic, ascending; every subscribed topic is in it.
        owners: Member of each partition, by topic; `_NOBODY` for none.
        sizes: Partitions of each member, as the class counts them: one that two members had counts for both.
        ghosts: Partitions that a member keeps although a later member had them too and is their owner.
    """

    member_ids: list[str]
    subscribers: dict[str, list[int]]
    owners: dict[str, NDArray[np.int32]]
    sizes: list[int]
    ghosts: dict[tuple[str, int], set[int]] = field(default_factory=dict)

    def give(self, topic: str, partition: int, taker: int) -> None:
        """Move a partition from its owner to another member."""
        owners = self.owners[topic]
        giver = int(owners[partition])
        self.sizes[giver] -= 1
        if ghosts := self.ghosts.get((topic, giver)):
            ghosts.discard(partition)
        owners[partition] = taker
        self.sizes[taker] += 1


def deal_and_balance(group: ServerGroup) -> Assignment:
    """What 4.0 and later assign.

    Raises:
        LeaderWouldFail: A member had a partition that the topic does not have.
        CannotTell: The order of the member map is not followed.
    """
    board = _kept(group)

    def in_order(topic: str) -> tuple[float, int, Uuid]:
        # Partitions per subscriber, the most first; then the fewer subscribers; then the id.
        takers = len(board.subscribers[topic])
        return -group.counts[topic] / takers, takers, group.uuids[topic]

    topics = sorted(board.subscribers, key=in_order)
    _deal_the_rest(board, topics)
    _balance(board, [topic for topic in topics if len(board.subscribers[topic]) > 1])
    return _assignment(board)


def _kept(group: ServerGroup) -> _Board:
    by_id = {member.member_id: member for member in group.members}
    board = _Board(members_in_hash_order(by_id), {}, {}, [0] * len(by_id))
    had: dict[str, list[tuple[int, Sequence[int]]]] = {}
    for number, member_id in enumerate(board.member_ids):
        subscribed = dict.fromkeys(uuid.text for uuid in group.subscribed(by_id[member_id]))
        for topic in subscribed:
            board.subscribers.setdefault(topic, []).append(number)
        for topic_id, partitions in by_id[member_id].target:
            topic = group.uuids[topic_id].text
            if topic in subscribed and partitions:
                had.setdefault(topic, []).append((number, partitions))
    for topic in board.subscribers:
        board.owners[topic] = np.full(group.counts[topic], _NOBODY, dtype=np.int32)
        if topic in had:
            _keep(board, topic, had[topic])
    return board


def _keep(board: _Board, topic: str, had: Sequence[tuple[int, Sequence[int]]]) -> None:
    """What members had of a topic stays theirs; of a partition that several had, the last of them is the owner."""
    owners = board.owners[topic]
    partitions = np.fromiter(chain.from_iterable(listed for _, listed in had), dtype=np.int64)
    if not (partitions.min() >= 0 and partitions.max() < len(owners)):
        reason = "the broker's uniform throws ArrayIndexOutOfBoundsException on a partition that is not there"
        raise LeaderWouldFail(reason)
    if np.bincount(partitions, minlength=len(owners)).max() == 1:
        owners[partitions] = np.repeat([number for number, _ in had], [len(listed) for _, listed in had])
        for number, listed in had:
            board.sizes[number] += len(listed)
        return
    for number, listed in had:
        distinct = set(listed)
        board.sizes[number] += len(distinct)
        for partition in distinct:
            before = int(owners[partition])
            if before != _NOBODY:
                board.ghosts.setdefault((topic, before), set()).add(partition)
            owners[partition] = number


def _deal_the_rest(board: _Board, topics: Sequence[str]) -> None:
    for topic in topics:
        owners = board.owners[topic]
        free = np.flatnonzero(owners == _NOBODY)
        if len(free):
            owners[free] = Balancer(board.sizes, board.subscribers[topic]).next_takers(len(free))


def _balance(board: _Board, topics: Sequence[str]) -> None:
    """Rounds over the topics, until one full round changed nothing."""
    last_changed = _NOBODY
    for _ in range(_ROUNDS):
        for position, topic in enumerate(topics):
            if position == last_changed:
                return
            if _balance_topic(board, topic) or last_changed == _NOBODY:
                last_changed = position


def _balance_topic(board: _Board, topic: str) -> bool:
    """Move partitions of one topic from its most loaded to its least loaded subscribers; whether any was moved."""
    balancer = Balancer(board.sizes, board.subscribers[topic])
    if balancer.spread <= 1:
        return False
    # What each member had when the round reached the topic: what it is given meanwhile is not given on.
    to_give: dict[int, list[int]] = {}
    for partition, owner in enumerate(board.owners[topic].tolist()):
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
        board.give(topic, partition, taker)
        moved = True
    return moved


def _assignment(board: _Board) -> Assignment:
    result: dict[str, dict[str, Partitions]] = {member_id: {} for member_id in board.member_ids}
    for topic, owners in board.owners.items():
        by_owner = np.argsort(owners, kind="stable")
        # Where each owner's run of partitions ends.
        ends = np.flatnonzero(np.diff(owners[by_owner], append=_NOBODY)) + 1
        numbers, partitions, start = owners[by_owner[ends - 1]].tolist(), by_owner.tolist(), 0
        for number, end in zip(numbers, ends.tolist(), strict=True):
            result[board.member_ids[number]][topic] = partitions[start:end]
            start = end
    for (topic, owner), ghosts in board.ghosts.items():
        if ghosts:
            owned = result[board.member_ids[owner]]
            owned[topic] = sorted(ghosts.union(owned.get(topic, ())))
    return result
