"""Who has what while `uniform` deals to members that subscribe to different topics: all partitions in one array.

What members had of topics that they still subscribe to stays theirs, and what does not change hands is handed out as
their targets list it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from assignors.assignment import Assignment, Partitions
from assignors.blocks import places_by_topic
from assignors.brokers.hash_order import members_in_hash_order
from assignors.brokers.model import ServerGroup, ServerMember
from assignors.brokers.uuid import Uuid, texts_of
from assignors.exceptions import LeaderWouldFail
from assignors.work import spend

__all__ = ["NOBODY", "Board", "assignment", "kept"]

NOBODY = -1
"""Owner of a partition that nobody has."""

# Changed topics a member, on average, beyond which writing everything out anew takes less time.
_FEW_CHANGES = 2

_NOTHING = np.empty(0, dtype=np.int64)


@dataclass(slots=True)
class Board:
    """Who has what while it is being worked out; members by number in the order of the member map, topics by id.

    Attributes:
        member_ids: Ids by number.
        subscribers: Members of each topic, ascending; every subscribed topic is in it, and topics with the same
            subscribers share one list.
        everything: Member of each partition, topic by topic; `NOBODY` for none.
        counts: Partitions of each topic, in their order in `everything`.
        owners: By topic: its part of `everything`, to be read and written.
        sizes: Partitions of each member, as the class counts them: one that two members had counts for both.
        ghosts: Partitions that a member keeps although a later member had them too and is their owner.
        kept: What each member keeps of what it had, as its target lists it; None where several had a partition.
        changed: By topic: members that have other partitions of it than they kept.
        moves: How often a partition has moved.
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


def kept(group: ServerGroup) -> Board:
    """The board before anything is dealt.

    Raises:
        LeaderWouldFail: A member had a partition that the topic does not have.
        CannotTell: The order of the member map is not followed.
    """
    by_id = {member.member_id: member for member in group.members}
    members = [by_id[member_id] for member_id in members_in_hash_order(by_id)]
    wanted = [group.subscribed(member) for member in members]
    subscribers = places_by_topic(wanted, texts_of)
    counts = np.array([group.counts[topic] for topic in subscribers], dtype=np.int64)
    stops = np.cumsum(counts)
    everything = np.full(int(counts.sum()), NOBODY, dtype=np.int32)
    owners = dict(zip(subscribers, np.split(everything, stops[:-1]), strict=True)) if subscribers else {}
    board = Board([member.member_id for member in members], subscribers, everything, counts, owners, [0] * len(members))
    had = _had(group, members, wanted, list(subscribers))
    if ((had.partitions < 0) | (had.partitions >= counts[had.rows])).any():
        reason = "the broker's uniform throws ArrayIndexOutOfBoundsException on a partition that is not there"
        raise LeaderWouldFail(reason)
    places = (stops - counts)[had.rows] + had.partitions
    if places.size and np.bincount(places).max() > 1:
        _keep_contested(board, had)
    else:
        everything[places] = had.members
        board.sizes = np.bincount(had.members, minlength=len(members)).tolist()
        board.kept = had.targets
    return board


@dataclass(slots=True)
class _Had:
    """What members had of topics that they still subscribe to.

    Attributes:
        targets: By member: partitions by topic, as its target lists them.
        members: By partition: the member; those of one member after those of another.
        rows: By partition: the place of the topic.
        partitions: By partition: its number.
    """

    targets: list[dict[str, Partitions]]
    members: NDArray[np.int64]
    rows: NDArray[np.int64]
    partitions: NDArray[np.int64]


def _had(
    group: ServerGroup, members: Sequence[ServerMember], wanted: Sequence[tuple[Uuid, ...]], topics: Sequence[str]
) -> _Had:
    place = {topic: position for position, topic in enumerate(topics)}
    # What the topics of one target are to a member, worked out once for all members that are alike in both.
    known: dict[tuple[int, tuple[str, ...]], _TopicsOfTarget] = {}
    targets: list[dict[str, Partitions]] = []
    rows: list[NDArray[np.int64]] = [_NOTHING]
    lists: list[Sequence[int]] = []
    lengths = []
    for member, subscribed in zip(members, wanted, strict=True):
        lengths.append(len(member.target))
        if not member.target:
            targets.append({})
            continue
        topic_ids, listed = zip(*member.target, strict=True)
        key = id(subscribed), topic_ids
        of_target = known.get(key)
        if of_target is None:
            of_target = known[key] = _topics_of_target(group, topic_ids, subscribed, place)
        rows.append(of_target.rows)
        lists += listed
        if of_target.all_stay and all(listed):
            targets.append(dict(member.target))
        else:
            pairs = zip(of_target.texts, of_target.rows.tolist(), listed, strict=True)
            targets.append({text: partitions for text, row, partitions in pairs if row >= 0 and partitions})
    sizes = np.array(list(map(len, lists)), dtype=np.int64)
    partitions = np.fromiter(chain.from_iterable(lists), dtype=np.int64, count=int(sizes.sum()))
    member_of = np.repeat(np.repeat(np.arange(len(members)), lengths), sizes)
    row_of = np.repeat(np.concatenate(rows), sizes)
    if row_of.min(initial=0) < 0:
        stays = row_of >= 0
        member_of, row_of, partitions = member_of[stays], row_of[stays], partitions[stays]
    return _Had(targets, member_of, row_of, partitions)


@dataclass(frozen=True, slots=True)
class _TopicsOfTarget:
    """Topics of a target, as a member sees them.

    Attributes:
        texts: Their ids as Kafka prints them.
        rows: Their places; `NOBODY` for those that it does not subscribe to.
        all_stay: Whether it subscribes to all, and the target names them as Kafka does.
    """

    texts: tuple[str, ...]
    rows: NDArray[np.int64]
    all_stay: bool


def _topics_of_target(
    group: ServerGroup, topic_ids: tuple[str, ...], subscribed: tuple[Uuid, ...], place: Mapping[str, int]
) -> _TopicsOfTarget:
    mine = {uuid.text: place[uuid.text] for uuid in subscribed}
    texts = tuple(group.uuids[topic_id].text for topic_id in topic_ids)
    rows = np.array([mine.get(text, NOBODY) for text in texts], dtype=np.int64)
    return _TopicsOfTarget(texts, rows, all_stay=texts == topic_ids and int(rows.min()) >= 0)


def _keep_contested(board: Board, had: _Had) -> None:
    """Of a partition that several had, the last of them is the owner, and the others keep it all the same."""
    topics = list(board.subscribers)
    for number, row, partition in zip(had.members.tolist(), had.rows.tolist(), had.partitions.tolist(), strict=True):
        owners = board.owners[topics[row]]
        before = int(owners[partition])
        if before == number:
            continue  # it stands twice in one target
        if before != NOBODY:
            board.ghosts.setdefault((topics[row], before), set()).add(partition)
        owners[partition] = number
        board.sizes[number] += 1


def assignment(board: Board) -> Assignment:
    """What each member has; the board must not be used any more."""
    owned = board.kept
    changes = sum(map(len, board.changed.values()))
    if owned is None or changes > _FEW_CHANGES * len(owned):
        owned = _written_out(board)
    else:
        for topic, numbers in board.changed.items():
            owners = board.owners[topic]
            spend(len(numbers) * (2 + len(owners) // 64))
            for number in numbers:
                partitions = np.flatnonzero(owners == number).tolist()
                if partitions:
                    owned[number][topic] = partitions
                else:
                    owned[number].pop(topic, None)
    return dict(zip(board.member_ids, owned, strict=True))


def _written_out(board: Board) -> list[dict[str, Partitions]]:
    """What each member has, from the owner of every partition."""
    owned: list[dict[str, Partitions]] = [{} for _ in board.member_ids]
    topics = list(board.subscribers)
    # (Stable sorting of 16-bit numbers takes linear time in NumPy.)
    narrow = board.everything.astype(np.uint16) if len(owned) <= 1 << 16 else board.everything
    by_owner = np.argsort(narrow, kind="stable")
    numbers, rows = board.everything[by_owner], np.repeat(np.arange(len(topics)), board.counts)[by_owner]
    partitions = (by_owner - (np.cumsum(board.counts) - board.counts)[rows]).tolist()
    # Where each owner's run of partitions of a topic ends.
    ends = np.flatnonzero((np.diff(numbers, append=NOBODY) != 0) | (np.diff(rows, append=NOBODY) != 0))
    start = 0
    for number, row, last in zip(numbers[ends].tolist(), rows[ends].tolist(), ends.tolist(), strict=True):
        owned[number][topics[row]] = partitions[start : last + 1]
        start = last + 1
    for (topic, owner), ghosts in board.ghosts.items():
        if ghosts:
            owned[owner][topic] = sorted(ghosts.union(owned[owner].get(topic, ())))
    return owned
