"""`uniform` of the broker for members that subscribe to different topics, since 4.0.

Follows `UniformHeterogeneousAssignmentBuilder` as rewritten in 4.0.0 (KAFKA-17710): members keep what they had and
still subscribe to, the rest is dealt topic by topic to the least loaded, then topics are balanced in rounds.
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

# `MAX_ITERATION_COUNT`: rounds over all topics.
_ROUNDS = 16


def deal_and_balance(group: ServerGroup) -> Assignment:
    """What 4.0 and later assign.

    Raises:
        LeaderWouldFail: A member had a partition that the topic does not have.
        CannotTell: The order of the member map is not followed.
    """
    board = kept(group)

    def in_order(topic: str) -> tuple[float, int, Uuid]:
        # Partitions per subscriber, the most first; then the fewer subscribers; then the id.
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
    """Rounds over the topics, until one full round changed nothing."""
    last_changed = NOBODY
    even: dict[int, int] = {}
    for _ in range(_ROUNDS):
        for position, topic in enumerate(topics):
            if position == last_changed:
                return
            if _balance_topic(board, topic, even) or last_changed == NOBODY:
                last_changed = position


def _balance_topic(board: Board, topic: str, even: dict[int, int]) -> bool:
    """Move partitions of one topic from its most loaded to its least loaded subscribers; whether any was moved.

    Args:
        board: Who has what.
        topic: The topic.
        even: Moves after which lists of subscribers (by identity) were seen to be even: until the next move they are.
    """
    subscribers = board.subscribers[topic]
    if even.get(id(subscribers)) == board.moves:
        return False
    spend(len(subscribers))
    balancer = Balancer(board.sizes, subscribers)
    if balancer.spread <= 1:
        even[id(subscribers)] = board.moves
        return False
    # What each member had when the round reached the topic: what it is given meanwhile is not given on. (It bounds the
    # moves, too, as the members bound the givers that are passed over.)
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
