"""`uniform` of the broker for members that subscribe to different topics, since 4.0.

Follows `UniformHeterogeneousAssignmentBuilder` as rewritten in 4.0.0 (KAFKA-17710): members keep what they had and
still subscribe to, the rest is dealt topic by topic to the least loaded, then topics are balanced in rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
    """Who has what while it is being worked out; members are numbers in the order of the member map.

    Attributes:
        member_ids: Ids by number.
        subscribers: Members of each topic, ascending; every subscribed topic is in it.
        owners: Member of each partition, by topic; `_NOBODY` for none.
        sizes: Partitions of each member, as the class counts them: one that two members had counts for both.
        ghosts: Partitions that a member keeps although a later member had them too and is their owner.
    """

    member_ids: list[str]
    subscribers: dict[Uuid, list[int]]
    owners: dict[Uuid, list[int]]
    sizes: list[int]
    ghosts: dict[tuple[Uuid, int], set[int]] = field(default_factory=dict)

    def give(self, topic: Uuid, partition: int, taker: int) -> None:
        """Move a partition from its owner to another member."""
        owners = self.owners[topic]
        giver = owners[partition]
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
    # Partitions per subscriber, the most first; then the fewer subscribers; then the id.
    topics = sorted(
        board.subscribers,
        key=lambda topic: (
            -len(board.owners[topic]) / len(board.subscribers[topic]),
            len(board.subscribers[topic]),
            topic,
        ),
    )
    _deal_the_rest(board, topics)
    _balance(board, [topic for topic in topics if len(board.subscribers[topic]) > 1])
    return _assignment(board)


def _kept(group: ServerGroup) -> _Board:
    by_id = {member.member_id: member for member in group.members}
    board = _Board(members_in_hash_order(by_id), {}, {}, [0] * len(by_id))
    had = []
    for number, member_id in enumerate(board.member_ids):
        subscribed = {uuid.text: uuid for uuid in group.subscribed(by_id[member_id])}
        for uuid in subscribed.values():
            board.subscribers.setdefault(uuid, []).append(number)
        for topic_id, partitions in by_id[member_id].target:
            topic = subscribed.get(group.uuids[topic_id].text)
            if topic is not None:
                had.append((number, topic, partitions))
    board.owners = {topic: [_NOBODY] * group.counts[topic.text] for topic in board.subscribers}
    for number, topic, partitions in had:
        owners = board.owners[topic]
        distinct = set(partitions)
        if distinct and not (min(distinct) >= 0 and max(distinct) < len(owners)):
            reason = "the broker's uniform throws ArrayIndexOutOfBoundsException on a partition that is not there"
            raise LeaderWouldFail(reason)
        board.sizes[number] += len(distinct)
        for partition in distinct:
            before = owners[partition]
            if before != _NOBODY:
                board.ghosts.setdefault((topic, before), set()).add(partition)
            owners[partition] = number
    return board


def _deal_the_rest(board: _Board, topics: Sequence[Uuid]) -> None:
    for topic in topics:
        owners = board.owners[topic]
        if _NOBODY not in owners:
            continue
        free = [partition for partition, owner in enumerate(owners) if owner == _NOBODY]
        takers = Balancer(board.sizes, board.subscribers[topic]).next_takers(len(free))
        for partition, taker in zip(free, takers, strict=True):
            owners[partition] = taker


def _balance(board: _Board, topics: Sequence[Uuid]) -> None:
    """Rounds over the topics, until one full round changed nothing."""
    last_changed = _NOBODY
    for _ in range(_ROUNDS):
        for position, topic in enumerate(topics):
            if position == last_changed:
                return
            if _balance_topic(board, topic) or last_changed == _NOBODY:
                last_changed = position


def _balance_topic(board: _Board, topic: Uuid) -> bool:
    """Move partitions of one topic from its most loaded to its least loaded subscribers; whether any was moved."""
    balancer = Balancer(board.sizes, board.subscribers[topic])
    if balancer.spread <= 1:
        return False
    # What each member had when the round reached the topic: what it is given meanwhile is not given on.
    to_give: dict[int, list[int]] = {}
    for partition, owner in enumerate(board.owners[topic]):
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
        of_member: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            of_member.setdefault(owner, []).append(partition)
        for owner, partitions in of_member.items():
            result[board.member_ids[owner]][topic.text] = partitions
    for (topic, owner), ghosts in board.ghosts.items():
        if ghosts:
            owned = result[board.member_ids[owner]]
            owned[topic.text] = sorted(ghosts.union(owned.get(topic.text, ())))
    return result
