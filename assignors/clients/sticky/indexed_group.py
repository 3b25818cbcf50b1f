"""One call of a sticky assignor in numbers: members and topics are indexes, each partition is one number.

Partition ids run over all existing topics in Java's string order, so ascending ids are ascending (topic, partition).
Claimed partitions that their topic does not have ("phantoms") get ids above these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from assignors.assignment import Alike, Assignment, Partitions
from assignors.context import spend
from assignors.exceptions import LeaderWouldFail
from assignors.hash_map import in_hash_order
from assignors.model import Group, Subscription, TopicPartitions, topics_listed
from assignors.order import sorted_utf16

Ids = npt.NDArray[np.int32]
"""Partition ids; their order may matter."""

_NONE: Ids = np.empty(0, dtype=np.int32)


class IndexedGroup:
    """Members and partitions of one group as a leader's sticky assignor sees them.

    Attributes:
        members: Members in the order in which the leader walks them.
        listed: Topics that each member lists; equal ones are one object.
        ranks: Index of each member in the order of member ids.
        topics: Topics that exist and have a subscriber, sorted as Java sorts strings.
        index: Index of each topic in `topics`.
        counts: Partition counts.
        base: Id of partition 0 of each topic.
        total: Number of partitions; ids from here on are phantoms.
        remembered: Highest generation of the leader's earlier decisions; -1 for none.
        phantoms: Topic index and number of each phantom.
    """

    __slots__ = (
        "_base",
        "_counts",
        "_names",
        "_phantom_ids",
        "_record_order",
        "_row_of",
        "base",
        "counts",
        "index",
        "listed",
        "members",
        "phantoms",
        "ranks",
        "remembered",
        "topics",
        "total",
    )

    def __init__(
        self,
        group: Group,
        members: Sequence[Subscription],
        listed: Sequence[tuple[str, ...]],
        topics: Sequence[str],
        ranked: Iterable[str],
    ) -> None:
        """Index a group.

        Args:
            group: The group.
            members: Its members, in the order in which the leader walks them.
            listed: See the attribute.
            topics: Topics that exist and have a subscriber, in the leader's order of strings.
            ranked: Member ids in that order.
        """
        self.members = members
        self._record_order = [member.member_id for member in group.members]
        self.listed = listed
        self.remembered = max(group.remembered_generation, -1)
        by_id = {member.member_id: position for position, member in enumerate(members)}
        self.ranks = [0] * len(members)
        for rank, member_id in enumerate(ranked):
            self.ranks[by_id[member_id]] = rank
        self.topics = topics
        self.index = {topic: position for position, topic in enumerate(topics)}
        self.counts = [group.partitions_per_topic[topic] for topic in topics]
        self._counts = np.array(self.counts, dtype=np.int32)
        self._base = np.zeros(len(topics) + 1, dtype=np.int32)
        np.cumsum(self._counts, out=self._base[1:])
        self.base: list[int] = self._base.tolist()
        self.total = self.base[-1]
        self.phantoms: list[tuple[int, int]] = []
        self._phantom_ids: dict[tuple[int, int], int] = {}
        self._row_of = np.repeat(np.arange(len(topics), dtype=np.int32), self._counts)
        self._names: dict[bytes, dict[str, None]] = {}

    @classmethod
    def of_java(cls, group: Group) -> IndexedGroup:
        """Index a group for a Java leader: members in the order of its HashMap.

        Raises:
            CannotTell: So many member ids share a bucket that the map stores them as a tree.
            LeaderWouldFail: The group has no members.
        """
        if not group.members:
            reason = "Java divides by the number of members: a group has at least one"
            raise LeaderWouldFail(reason)
        by_id = {member.member_id: member for member in group.members}
        order = in_hash_order(by_id)
        listed = dict(zip(by_id, topics_listed(group.members), strict=True))
        wanted = _wanted(group, listed.values())
        members = [by_id[member_id] for member_id in order]
        return cls(group, members, [listed[m] for m in order], sorted_utf16(wanted), sorted_utf16(by_id))

    @classmethod
    def of_others(cls, group: Group, members: Sequence[Subscription]) -> IndexedGroup:
        """Index a group for C or Python: members as given, strings in the order of their bytes or code points."""
        listed = topics_listed(members)
        wanted = _wanted(group, listed)
        return cls(group, members, listed, sorted(wanted), sorted(member.member_id for member in members))

    def ids_of(self, partitions: TopicPartitions) -> Ids:
        """Ids of claimed partitions, in order; partitions of topics that do not exist are left out."""
        return self.ids_of_each([partitions])[0]

    def ids_of_each(self, claims: Iterable[TopicPartitions]) -> list[Ids]:
        """The same for each member's claims."""
        names: list[tuple[str, ...]] = []
        lengths: list[int] = []
        listed: list[int] = []
        for claimed in claims:
            topics = []
            for topic, partitions in claimed:
                topics.append(topic)
                lengths.append(len(partitions))
                listed += partitions
            names.append(tuple(topics))
        spend((len(listed) + len(lengths)) // 2)
        numbers = np.array(listed, dtype=np.int32)
        members = np.repeat(np.repeat(np.arange(len(names)), list(map(len, names))), lengths)
        rows = np.repeat(self._rows(names), lengths)
        if rows.min(initial=0) < 0:
            exist = rows >= 0
            members, rows, numbers = members[exist], rows[exist], numbers[exist]
        ids: Ids = self._base[rows] + numbers
        beyond = (numbers < 0) | (numbers >= self._counts[rows])
        if beyond.any():
            spend(int(np.count_nonzero(beyond)))
            for at in np.flatnonzero(beyond).tolist():
                ids[at] = self._phantom(int(rows[at]), int(numbers[at]))
            known = self._row_of.size - self.total
            self._row_of = np.append(self._row_of, np.array([row for row, _ in self.phantoms[known:]], dtype=np.int32))
        return np.split(ids, np.cumsum(np.bincount(members, minlength=len(names)))[:-1])

    def existing(
        self, newest: Mapping[tuple[str, int], int], before: Mapping[tuple[str, int], int]
    ) -> tuple[list[list[int]], dict[int, int]]:
        """Owners of those claimed partitions that exist.

        Args:
            newest: Newest owner by topic and number.
            before: The one before, where there are two.

        Returns:
            Ids of each newest owner, in the order given; and the owner before, by id.
        """
        ids = {
            partition: self.base[row] + partition[1]
            for partition in newest
            if (row := self.index.get(partition[0])) is not None and 0 <= partition[1] < self.counts[row]
        }
        owned: list[list[int]] = [[] for _ in self.members]
        for partition, member in newest.items():
            if partition in ids:
                owned[member].append(ids[partition])
        return owned, {ids[partition]: member for partition, member in before.items() if partition in ids}

    def _rows(self, names: Sequence[tuple[str, ...]]) -> Ids:
        """Topic index of each name, member after member; -1 for topics that do not exist."""
        known: dict[tuple[str, ...], Ids] = {}
        found = []
        last: tuple[str, ...] = ()
        rows = _NONE
        for listed in names:
            if listed is not last and listed != last:
                known_rows = known.get(listed)
                if known_rows is None:
                    known_rows = np.array([self.index.get(name, -1) for name in listed], dtype=np.int32)
                    known[listed] = known_rows
                last, rows = listed, known_rows
            found.append(rows)
        return _joined(found)

    def topics_of(self, ids: Ids) -> Ids:
        """Topic index of each id."""
        return self._row_of.take(ids)

    def numbers_of(self, ids: Ids, rows: Ids) -> Ids:
        """Partition number of each id, given its topic index."""
        numbers: Ids = ids - self._base.take(rows)
        if self.phantoms:
            for at in np.flatnonzero(ids >= self.total).tolist():
                numbers[at] = self.phantoms[int(ids[at]) - self.total][1]
        return numbers

    def topic_and_number(self, partition: int) -> tuple[int, int]:
        """Topic index and partition number of one id."""
        if partition >= self.total:
            return self.phantoms[partition - self.total]
        row = int(self._row_of[partition])
        return row, partition - self.base[row]

    def assignment(self, lists: Sequence[Ids]) -> Assignment:
        """Convert the members' ids to an assignment; members in record order, topics sorted."""
        result: dict[str, Mapping[str, Partitions]] = {member_id: {} for member_id in self._record_order}
        ids = _joined(list(map(np.sort, lists)))
        rows = self.topics_of(ids)
        numbers = self.numbers_of(ids, rows)
        sizes = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        if int(ids.max(initial=-1)) >= self.total:
            order = np.lexsort((numbers, rows, np.repeat(np.arange(len(lists)), sizes)))
            rows, numbers = rows[order], numbers[order]
        held = np.flatnonzero(sizes)
        if not held.size:
            return result
        stops = np.cumsum(sizes)[held]
        starts = stops - sizes[held]
        # A run is one topic of one member. If a member has as many runs as partitions, it has one partition of each
        # topic.
        begins_run, varies = np.ones((2, rows.size), dtype=bool)
        begins_run[1:] = rows[1:] != rows[:-1]
        begins_run[starts] = True
        runs = np.add.reduceat(begins_run, starts, dtype=np.int64)
        varies[1:] = numbers[1:] != numbers[:-1]
        varies[starts] = False
        varied = np.logical_or.reduceat(varies, starts)
        for member, start, stop, of_member, differ in zip(
            held.tolist(), starts.tolist(), stops.tolist(), runs.tolist(), varied.tolist(), strict=True
        ):
            mine: Mapping[str, Partitions]
            if of_member == stop - start and not differ:
                mine = Alike(self._names_of(rows[start:stop]), (int(numbers[start]),))
            else:
                begins = np.flatnonzero(begins_run[start:stop]).tolist()
                mine = self._several_of_each(rows[start:stop], numbers[start:stop], begins)
            result[self.members[member].member_id] = mine
        return result

    def assignment_of_sets(self, sets: Iterable[Collection[int]]) -> Assignment:
        """The same from ordered sets."""
        return self.assignment([np.fromiter(ids, dtype=np.int32, count=len(ids)) for ids in sets])

    def _names_of(self, rows: Ids) -> dict[str, None]:
        """Names of topics. They recur from member to member, so they are shared."""
        key = rows.tobytes()
        names = self._names.get(key)
        if names is None:
            names = self._names[key] = dict.fromkeys(self.topics[row] for row in rows.tolist())
        return names

    def _several_of_each(self, rows: Ids, numbers: Ids, begins: Sequence[int]) -> dict[str, Partitions]:
        names = map(self.topics.__getitem__, rows[begins].tolist())
        listed = tuple(numbers.tolist())
        bounds = pairwise([*begins, len(listed)])
        return {name: listed[begin:end] for name, (begin, end) in zip(names, bounds, strict=True)}

    def _phantom(self, row: int, number: int) -> int:
        known = self._phantom_ids.get((row, number))
        if known is None:
            known = self._phantom_ids[row, number] = self.total + len(self.phantoms)
            self.phantoms.append((row, number))
        return known


def _wanted(group: Group, listed: Iterable[tuple[str, ...]]) -> list[str]:
    """Existing topics with a subscriber."""
    counts = group.partitions_per_topic
    subscribed: set[str] = set()
    for topics in {id(topics): topics for topics in listed}.values():
        subscribed.update(topics)
    return [topic for topic in subscribed if counts.get(topic)]


def _joined(arrays: Sequence[Ids]) -> Ids:
    if arrays:
        return np.concatenate(arrays)
    return _NONE
