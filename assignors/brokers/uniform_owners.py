"""Owners of all partitions while `uniform` deals to members with different subscriptions, kept in one array.

Members keep their partitions of topics that they still subscribe to. A topic whose partitions do not change hands is
returned in the form that the member's target has.
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
from assignors.brokers.model import ServerGroup, ServerMember, Uuid, texts_of
from assignors.exceptions import LeaderWouldFail
from assignors.work import spend

NOBODY = -1
"""Owner number of an unowned partition."""

# With more changed topics per member (on average) it is faster to build the whole result from the array.
_FEW_CHANGES = 2

_NOTHING = np.empty(0, dtype=np.int64)


@dataclass(slots=True)
class CurrentOwners:
    """Current owners during the computation; members are numbers in the order of the member map, topics are ids.

    Attributes:
        member_ids: Ids by number.
        subscribers: Members of each topic, ascending; contains every subscribed topic. Topics with the same subscribers
            share one list.
        everything: Owner of each partition, topic by topic; `NOBODY` for none.
        counts: Number of partitions of each topic, in the order of `everything`.
        owners: By topic: its slice of `everything`, for reading and writing.
        sizes: Number of partitions of each member as Kafka's class counts them: one that two members had counts for
            both.
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
    had = _had(group, members, wanted, list(subscribers))
    if ((had.partitions < 0) | (had.partitions >= counts[had.rows])).any():
        reason = "the broker's uniform throws ArrayIndexOutOfBoundsException on a partition that does not exist"
        raise LeaderWouldFail(reason)
    places = (stops - counts)[had.rows] + had.partitions
    if places.size and np.bincount(places).max() > 1:
        _keep_contested(current, had)
    else:
        everything[places] = had.members
        current.sizes = np.bincount(had.members, minlength=len(members)).tolist()
        current.kept = had.targets
    return current


@dataclass(slots=True)
class _Had:
    """The members' previous partitions of topics that they still subscribe to.

    Attributes:
        targets: By member: partitions by topic, as its target lists them.
        members: By partition: the member; grouped by member.
        rows: By partition: index of the topic.
        partitions: By partition: its number.
    """

    targets: list[dict[str, Partitions]]
    members: NDArray[np.int64]
    rows: NDArray[np.int64]
    partitions: NDArray[np.int64]


def _had(
    group: ServerGroup, members: Sequence[ServerMember], wanted: Sequence[tuple[Uuid, ...]], topics: Sequence[str]
) -> _Had:
    position_of = {topic: position for position, topic in enumerate(topics)}
    # Topic rows of a target, computed once for all members with the same subscription and the same topics in the
    # target.
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
            of_target = known[key] = _topics_of_target(group, topic_ids, subscribed, position_of)
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
    """The topics of a target, from the view of a member.

    Attributes:
        texts: Their ids as Kafka prints them.
        rows: Their indexes; `NOBODY` for those that it does not subscribe to.
        all_stay: Whether it subscribes to all of them, and the target spells all ids as Kafka does.
    """

    texts: tuple[str, ...]
    rows: NDArray[np.int64]
    all_stay: bool


def _topics_of_target(
    group: ServerGroup, topic_ids: tuple[str, ...], subscribed: tuple[Uuid, ...], position_of: Mapping[str, int]
) -> _TopicsOfTarget:
    mine = {uuid.text: position_of[uuid.text] for uuid in subscribed}
    texts = tuple(group.uuids[topic_id].text for topic_id in topic_ids)
    rows = np.array([mine.get(text, NOBODY) for text in texts], dtype=np.int64)
    return _TopicsOfTarget(texts, rows, all_stay=texts == topic_ids and int(rows.min()) >= 0)


def _keep_contested(current: CurrentOwners, had: _Had) -> None:
    """Settle partitions that several members had: the last one is the owner, and the others keep them as ghosts."""
    topics = list(current.subscribers)
    for number, row, partition in zip(had.members.tolist(), had.rows.tolist(), had.partitions.tolist(), strict=True):
        owners = current.owners[topics[row]]
        before = int(owners[partition])
        if before == number:
            continue  # it occurs twice in one target
        if before != NOBODY:
            current.ghosts.setdefault((topics[row], before), set()).add(partition)
        owners[partition] = number
        current.sizes[number] += 1


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
