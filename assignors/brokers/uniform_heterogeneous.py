"""The broker's `uniform` for members that subscribe to different topics, since 4.0.

Follows `UniformHeterogeneousAssignmentBuilder` as rewritten in 4.0.0 (KAFKA-17710): members keep those of their
partitions that they still subscribe to, the rest is dealt topic by topic to the least loaded members, then topics are
balanced in rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assignors.assignment import Assignment
from assignors.brokers.balancer import Balancer
from assignors.brokers.model import ServerGroup
from assignors.brokers.uniform_owners import NOBODY, Board, assignment, kept
from assignors.brokers.uuid import Uuid
from assignors.work import spend

__all__ = ["deal_and_balance"]

# `MAX_ITERATION_COUNT` of the class: rounds over all topics.
_ROUNDS = 16


def deal_and_balance(group: ServerGroup) -> Assignment:
    """The assignment of 4.0 and later.

    Raises:
        LeaderWouldFail: A member had a partition that the topic does not have.
        CannotTell: We cannot follow the order of the member map.
    """
    board = kept(group)

    def in_order(topic: str) -> tuple[float, int, Uuid]:
        # Most partitions per subscriber first, then fewest subscribers, then by id.
        takers = len(board.subscribers[topic])
        return -group.counts[topic] / takers, takers, group.uuids[topic]

    topics = sorted(board.subscribers, key=in_order)
    _deal_the_rest(board, topics)
    _balance(board, [topic for topic in topics if len(board.subscribers[topic]) > 1])
    return assignment(board)


def _deal_the_rest(board: Board, topics: Sequence[str]) -> None:
    if NOBODY not in board.everything:
        return
    for topic in topics:
        owners = board.owners[topic]
        free = np.flatnonzero(owners == NOBODY)
        if len(free):
            spend(len(free) + len(board.subscribers[topic]))
            takers = Balancer(board.sizes, board.subscribers[topic]).next_takers(len(free))
            owners[free] = takers
            board.changed[topic].update(takers)


def _balance(board: Board, topics: Sequence[str]) -> None:
    """Balance the topics in rounds until one full round changes nothing."""
    last_changed = NOBODY
    even: dict[int, int] = {}
    for _ in range(_ROUNDS):
        for position, topic in enumerate(topics):
            if position == last_changed:
                return
            if _balance_topic(board, topic, even) or last_changed == NOBODY:
                last_changed = position


def _balance_topic(board: Board, topic: str, even: dict[int, int]) -> bool:
    """Move partitions of one topic from its most to its least loaded subscribers; returns whether any moved.

    Args:
        board: Current owners.
        topic: The topic.
        even: Subscriber lists (by identity) that were found even, with the number of moves at that time: they stay even
            until the next move.
    """
    subscribers = board.subscribers[topic]
    if even.get(id(subscribers)) == board.moves:
        return False
    spend(len(subscribers))
    balancer = Balancer(board.sizes, subscribers)
    if balancer.spread <= 1:
        even[id(subscribers)] = board.moves
        return False
    # Only partitions that a member had when the round reached the topic are given, not those it receives meanwhile.
    # (This also limits the moves, as the members limit the skipped givers.)
    spend(2 * len(board.owners[topic]) + len(subscribers))
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
