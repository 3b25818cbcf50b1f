"""One call of a sticky assignor laid out in numbers: members and topics by index, partitions by one number each.

Partition ids run over all existing topics in Java's string order, so that ascending ids are ascending (topic,
partition). Partitions that a member claims and that its topic does not have ("phantoms") get ids above them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from assignors.assignment import Assignment, Partitions
from assignors.exceptions import CannotTell, LeaderWouldFail
from assignors.hash_map import in_hash_order_or_none
from assignors.model import Group, Subscription, TopicPartitions
from assignors.order import sorted_utf16

__all__ = ["Board", "Ids"]

Ids = npt.NDArray[np.int64]
"""Partition ids, in an order that may count."""

_NONE: Ids = np.empty(0, dtype=np.int64)


class Board:
    """Members and partitions of one group as a leader's sticky assignor has them.

    Attributes:
        members: Members in the order in which the leader walks them.
        ranks: Place of each member when sorted by member id.
        topics: Topics that exist and have a subscriber, sorted as Java sorts strings.
        index: Place of each topic in `topics`.
        counts: Partition counts.
        base: Id of partition 0 of each topic.
        total: Partitions in all; ids from here on are phantoms.
        listing: Whether the order of the members' lists is asked for, and not only what is in them.
        remembered: Highest generation of the leader's earlier decisions; -1 for none.
        phantoms: Topic index and number of each phantom.
    """

    __slots__ = (
        "_alone",
        "_base",
        "_counts",
        "_images",
        "_names",
        "_phantom_ids",
        "_record_order",
        "_row_of",
        "_rows",
        "base",
        "counts",
        "index",
        "listing",
        "members",
        "phantoms",
        "ranks",
        "remembered",
        "topics",
        "total",
    )

    def __init__(
        self, group: Group, members: Sequence[Subscription], topics: Sequence[str], ranked: Iterable[str]
    ) -> None:
        """Lay out a group.

        Args:
            group: The group.
            members: Its members, in the order in which the leader walks them.
            topics: Topics that exist and have a subscriber, in the leader's order of strings.
            ranked: Member ids in that order.
        """
        self.members = members
        self.listing = False
        self._record_order = [member.member_id for member in group.members]
        self.remembered = max(group.remembered_generation, -1)
        by_id = {member.member_id: place for place, member in enumerate(members)}
        self.ranks = [0] * len(members)
        for rank, member_id in enumerate(ranked):
            self.ranks[by_id[member_id]] = rank
        self.topics = topics
        self.index = {topic: place for place, topic in enumerate(topics)}
        self.counts = [group.partitions_per_topic[topic] for topic in topics]
        self._counts = np.array(self.counts, dtype=np.int64)
        self._base = np.zeros(len(topics) + 1, dtype=np.int64)
        np.cumsum(self._counts, out=self._base[1:])
        self.base: list[int] = self._base.tolist()
        self.total = self.base[-1]
        self.phantoms: list[tuple[int, int]] = []
        self._phantom_ids: dict[tuple[int, int], int] = {}
        self._row_of = np.repeat(np.arange(len(topics), dtype=np.int64), self._counts)
        self._rows: dict[tuple[str, ...], tuple[Ids, bool, bool]] = {}
        # Ids that stand for exactly these partitions, topics sorted: what keeps all it had need not be built anew.
        self._images: dict[int, tuple[Ids, TopicPartitions]] = {}
        self._names: dict[bytes, dict[str, None]] = {}
        self._alone: list[tuple[int]] = []

    @classmethod
    def of_java(cls, group: Group) -> Board:
        """Lay out a group for a Java leader: members in the order of its HashMap.

        Raises:
            CannotTell: So many member ids fall into one bucket that the map keeps them as a tree.
            LeaderWouldFail: There is no member.
        """
        if not group.members:
            reason = "Java divides by the number of members: a group has at least one"
            raise LeaderWouldFail(reason)
        by_id = {member.member_id: member for member in group.members}
        order = in_hash_order_or_none(by_id)
        if order is None:
            reason = "member ids collide so often that the order of the leader's map is not followed"
            raise CannotTell(reason)
        wanted = _wanted(group, group.members)
        members = [by_id[member_id] for member_id in order]
        return cls(group, members, sorted_utf16(wanted), sorted_utf16(by_id))

    @classmethod
    def of_others(cls, group: Group, members: Sequence[Subscription]) -> Board:
        """Lay out a group for C or Python: members as given, strings in the order of their bytes or code points."""
        wanted = _wanted(group, members)
        return cls(group, members, sorted(wanted), sorted(member.member_id for member in members))

    def ids_of(self, partitions: TopicPartitions) -> Ids:
        """Ids of claimed partitions in their order; those of topics that do not exist are left out."""
        if not partitions:
            return _NONE
        names, numbers = zip(*partitions, strict=True)
        known = self._rows.get(names)
        if known is None:
            rows = np.array([self.index.get(name, -1) for name in names], dtype=np.int64)
            known = self._rows[names] = rows, bool((rows >= 0).all()), bool((rows[1:] > rows[:-1]).all())
        rows, all_exist, ascend = known
        lengths = list(map(len, numbers))
        size = sum(lengths)
        parts = np.fromiter(chain.from_iterable(numbers), dtype=np.int64, count=size)
        if size != len(lengths) or min(lengths) != 1:
            rows = np.repeat(rows, lengths)
        if not all_exist:
            exist = rows >= 0
            rows, parts = rows[exist], parts[exist]
        ids: Ids = self._base[rows] + parts
        beyond = (parts < 0) | (parts >= self._counts[rows])
        if beyond.any():
            for place in np.flatnonzero(beyond).tolist():
                ids[place] = self._phantom(int(rows[place]), int(parts[place]))
        elif all_exist and ascend:
            self._images[id(ids)] = ids, partitions
        return ids

    def topics_of(self, ids: Ids) -> Ids:
        """Topic index of each id."""
        rows = np.searchsorted(self._base, ids, side="right") - 1
        if self.phantoms:
            for place in np.flatnonzero(ids >= self.total).tolist():
                rows[place] = self.phantoms[int(ids[place]) - self.total][0]
        return rows

    def numbers_of(self, ids: Ids, rows: Ids) -> Ids:
        """Partition number of each id, given its topic index."""
        numbers: Ids = ids - self._base[rows]
        if self.phantoms:
            for place in np.flatnonzero(ids >= self.total).tolist():
                numbers[place] = self.phantoms[int(ids[place]) - self.total][1]
        return numbers

    def place(self, partition: int) -> tuple[int, int]:
        """Topic index and number of one id."""
        if partition >= self.total:
            return self.phantoms[partition - self.total]
        row = int(np.searchsorted(self._base, partition, side="right")) - 1
        return row, partition - self.base[row]

    def assignment(self, lists: Sequence[Ids]) -> Assignment:
        """Write the members' ids out as an assignment; members in record order, topics sorted."""
        result: Assignment = {member_id: {} for member_id in self._record_order}
        for member, ids in zip(self.members, lists, strict=True):
            image = self._images.get(id(ids))
            result[member.member_id] = dict(image[1]) if image else self._by_topic(ids)
        return result

    def assignment_of_sets(self, sets: Iterable[Collection[int]]) -> Assignment:
        """The same from ordered sets."""
        return self.assignment([np.fromiter(ids, dtype=np.int64, count=len(ids)) for ids in sets])

    def pairs(self, lists: Sequence[Ids]) -> dict[str, list[tuple[str, int]]]:
        """Write the members' ids out as pairs in their order; members in record order."""
        result: dict[str, list[tuple[str, int]]] = {member_id: [] for member_id in self._record_order}
        for member, ids in zip(self.members, lists, strict=True):
            rows = self.topics_of(ids)
            numbers = self.numbers_of(ids, rows)
            names = map(self.topics.__getitem__, rows.tolist())
            result[member.member_id] = list(zip(names, numbers.tolist(), strict=True))
        return result

    def _by_topic(self, ids: Ids) -> dict[str, Partitions]:
        if not ids.size:
            return {}
        real = not self.phantoms or int(ids.max()) < self.total
        if not real:
            rows = self.topics_of(ids)
            numbers = self.numbers_of(ids, rows)
            order = np.lexsort((numbers, rows))
            rows, numbers = rows[order], numbers[order]
        else:
            ids = np.sort(ids)
            rows = self._row_of[ids]
            numbers = ids - self._base[rows]
        starts = np.flatnonzero(rows[1:] != rows[:-1]) + 1
        if real and starts.size + 1 == ids.size:
            return self._one_of_each(rows, numbers)
        listed = tuple(numbers.tolist())
        begins = [0, *starts.tolist()]
        ends = [*begins[1:], len(listed)]
        return {
            self.topics[row]: listed[begin:end]
            for row, begin, end in zip(rows[begins].tolist(), begins, ends, strict=True)
        }

    def _one_of_each(self, rows: Ids, numbers: Ids) -> dict[str, Partitions]:
        """One partition of each of some topics: names and numbers repeat from member to member, so they are shared."""
        key = rows.tobytes()
        names = self._names.get(key)
        if names is None:
            names = self._names[key] = dict.fromkeys(self.topics[row] for row in rows.tolist())
        for number in range(len(self._alone), int(numbers.max()) + 1):
            self._alone.append((number,))
        if (numbers == numbers[0]).all():
            return dict.fromkeys(names, self._alone[int(numbers[0])])
        return dict(zip(names, map(self._alone.__getitem__, numbers.tolist()), strict=True))

    def _phantom(self, row: int, number: int) -> int:
        known = self._phantom_ids.get((row, number))
        if known is None:
            known = self._phantom_ids[row, number] = self.total + len(self.phantoms)
            self.phantoms.append((row, number))
        return known


def _wanted(group: Group, members: Iterable[Subscription]) -> list[str]:
    """Topics that exist and that a member subscribes to."""
    counts = group.partitions_per_topic
    subscribed: set[str] = set()
    for topics in {member.topics for member in members}:
        subscribed.update(topics)
    return [topic for topic in subscribed if counts.get(topic)]
