"""librdkafka's `cooperative-sticky` (it has no `sticky`): rdkafka_sticky_assignor.c, adjusted in rdkafka_cgrp.c.

Modelled on Java 2.4's algorithm, but its maps iterate the latest entry first, and it has bugs of its own: where it
would read freed memory or abort, the result is not recomputed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import permutations

from assignors.assignment import Assignment, PartitionId, from_pairs
from assignors.clients.racks import rack_info
from assignors.clients.range import without_patterns
from assignors.clients.sticky.balance import NEVER_ENDS, Balancing
from assignors.clients.sticky.claims import without_others
from assignors.clients.sticky.indexed_group import IndexedGroup
from assignors.clients.sticky.task import Movements, Potential, Task, largest_first, partitions_of
from assignors.context import spend
from assignors.exceptions import CannotTell, LeaderWouldFail
from assignors.model import Group, PartitionRacks, Subscription

ABORTS = "librdkafka aborts here, unless it was built without assertions"
"""It mistakes a partition's first move for its last. (Windows builds have no assertions: librdkafka.vcxproj.)"""

_FREED = "librdkafka reads freed memory here"
_OLDER_CLAIM = "librdkafka confuses the owners here: an older claim of a partition is listed after the newest one"
_TOPIC_ORDER = "the result depends on the order in which the broker listed the topics"

# With more topics that have unowned partitions we do not try all orders of them.
_MOST_ORDERED = 4


@without_patterns
def before_2_6_1(group: Group, racks: PartitionRacks | None) -> Assignment:
    """2.2.0 to 2.6.0: the check for balance counts partitions with the variable that counts members."""
    return _assign(group, racks, _SkippingBalance)


@without_patterns
def from_2_6_1(group: Group, racks: PartitionRacks | None) -> Assignment:
    """From 2.6.1 on."""
    return _assign(group, racks, _Balance)


class _Movements(Movements):
    """`PartitionMovements_t`: moves are never forgotten, and a move's pair is freed when the partition moves again.

    If the pair is the key of a list that still exists, librdkafka reads freed memory when it next looks for this list.
    """

    def __init__(self, indexed: IndexedGroup, row_of: Sequence[int]) -> None:
        super().__init__(indexed, row_of)
        self._lists: dict[tuple[int, int, int], dict[int, None]] = {}
        self._key_of: dict[tuple[int, int, int], int] = {}  # the partition whose pair is the key of the list
        self._freed: set[tuple[int, int, int]] = set()  # lists whose key was freed
        self._returned: set[int] = set()  # moved without a record: librdkafka aborts at their next move

    def actual(self, partition: int, owner: int, target: int) -> int:
        """The partition to move: `partition` itself, or the second of the list of reverse moves if there is one.

        librdkafka keeps a pointer to the first element of the reverse moves and then removes that element's record. The
        others move up, so it moves the second one to the target, without a record, and the first stays where it is.
        """
        if partition in self._returned:
            raise CannotTell(ABORTS)
        # The pair uses the present owner, where Java uses the first: it is built before the first is looked up.
        listed = self._list_of((self.row_of[partition], target, owner))
        if not listed:
            return partition
        first, *others = listed
        if first in self._returned:
            raise CannotTell(ABORTS)
        if not others:
            raise CannotTell(_FREED)
        del listed[first]
        self._returned.add(others[0])
        return others[0]

    def record(self, partition: int, source: int, target: int) -> None:
        if partition in self._returned:
            return
        row = self.row_of[partition]
        earlier = self.pair_of.get(partition)
        if earlier is not None:
            key = row, *earlier
            listed = self._list_of(key)
            # `actual` removed it if another one moved in its place, which remains and moves no more.
            listed.pop(partition, None)
            if listed and self._key_of[key] == partition:
                self._freed.add(key)
            source = earlier[0]
        self.pair_of[partition] = source, target
        key = row, source, target
        if not self._list_of(key):
            self._lists[key] = {}
            self._key_of[key] = partition
        self._lists[key][partition] = None

    def _list_of(self, key: tuple[int, int, int]) -> dict[int, None]:
        if key in self._freed:
            raise CannotTell(_FREED)
        return self._lists.get(key, {})

    def state(self) -> object:
        return self.pair_of.copy(), {key: tuple(listed) for key, listed in self._lists.items()}, len(self._returned)


class _Balance(Balancing):
    def _no_movements(self) -> Movements:
        return _Movements(self.indexed, self.topic_of)


class _SkippingBalance(_Balance):
    def _is_balanced(self) -> bool:
        sizes, most = self.sizes, self.potential.most
        spend(len(self.moving))
        order = sorted(self.moving, key=lambda member: (sizes[member], self.ranks[member]))
        if sizes[order[0]] >= sizes[order[-1]] - 1:
            return True
        at, seen = 0, set()
        while at < len(order):
            member = order[at]
            if sizes[member] == most[member]:
                at += 1
                continue
            if at in seen:
                raise LeaderWouldFail(NEVER_ENDS)
            seen.add(at)
            for row in self.potential.topics[member]:
                spend(len(self.owners[row]) // 4)
                if any(sizes[owner] > sizes[member] for owner in self.owners[row]):
                    return False
            at = most[member] + 1
        return True


def _assign(group: Group, racks: PartitionRacks | None, algorithm: type[Balancing]) -> Assignment:
    # Subscriptions without topics are not parsed, and their members are ignored; a topic counts once.
    members = [replace(m, topics=tuple(dict.fromkeys(m.topics))) for m in group.members if m.topics]
    result: Assignment = {member.member_id: {} for member in group.members}
    if not members:
        return result
    indexed = IndexedGroup.of_others(group, members)
    # A rack given as an empty text is a rack without anything in it. librdkafka members without a rack send this.
    in_racks = rack_info(indexed, racks, [member.rack for member in members])
    newest, before = _owners(members)
    existing, previous = indexed.existing(newest, before)
    potential = Potential(indexed, gap=0, counts_topics=False)
    results: list[Assignment] = []
    for partitions in _orders(indexed, potential, existing, previous):
        task = Task.keeping(indexed, potential, existing, previous, partitions, in_racks)
        dealt = algorithm(indexed, potential, task, in_racks).result()
        of_order = {**result, **_adjusted(indexed, members, dealt)}
        if of_order not in results:
            results.append(of_order)
    if len(results) > 1:
        raise CannotTell(_TOPIC_ORDER, tuple(results))
    return results[0]


def _owners(members: Sequence[Subscription]) -> tuple[dict[PartitionId, int], dict[PartitionId, int]]:
    """Newest and second newest owner of each claimed partition; one claimed twice in a generation has no owner.

    Raises:
        CannotTell: librdkafka keeps two maps, of which one has the newest owner and the other one the owner listed last
            (`prepopulateCurrentAssignments`); what it does if they differ is not recomputed.
    """
    claims: dict[PartitionId, list[tuple[int, int]]] = {}
    for position, member in enumerate(members):
        generation = -1 if member.generation is None else member.generation
        for topic, numbers in member.owned:
            spend(8 * len(numbers))
            for number in numbers:
                claims.setdefault((topic, number), []).append((generation, position))
    newest, before = {}, {}
    for partition in reversed(claims):
        of_partition = sorted(claims[partition])
        if len({generation for generation, _ in of_partition}) < len(of_partition):
            continue
        newest[partition] = of_partition[-1][1]
        if claims[partition][-1][1] != newest[partition]:
            raise CannotTell(_OLDER_CLAIM)
        if len(of_partition) > 1:
            before[partition] = of_partition[-2][1]
    return newest, before


def _orders(
    indexed: IndexedGroup, potential: Potential, existing: Sequence[Sequence[int]], previous: dict[int, int]
) -> Iterable[list[int]]:
    """Possible orders of reassignment: one, or one for each order of the topics that may matter."""
    if len({frozenset(rows) for rows in potential.topics}) > 1:
        yield potential.in_order(indexed)
        return
    queues = [
        [*(p for p in sorted(ids) if p in previous), *(p for p in sorted(ids) if p not in previous)] for ids in existing
    ]
    first = largest_first(indexed, queues)
    if not first:
        yield partitions_of(indexed, range(len(indexed.topics)))
        return
    listed = set(first)
    left = [[p for p in partitions_of(indexed, [row])[::-1] if p not in listed] for row in range(len(indexed.topics))]
    left = [partitions for partitions in left if partitions]
    if len(left) > _MOST_ORDERED:
        raise CannotTell(_TOPIC_ORDER)
    for order in permutations(left):
        spend(2 * indexed.total)
        yield [*first, *(partition for partitions in order for partition in partitions)]


def _adjusted(indexed: IndexedGroup, members: Sequence[Subscription], lists: Sequence[Iterable[int]]) -> Assignment:
    """Hold back partitions that another member owns; give owned ones that are unassigned back, even nonexistent ones.

    Follows `rd_kafka_cooperative_protocol_adjust_assignment`. If two members own a partition, the last one counts.
    """
    given, owners = without_others(indexed, lists, [member.owned for member in members])
    for partition_of_nobody, owner in owners.items():
        given[owner].append(partition_of_nobody)
    return from_pairs({member.member_id: sorted(mine) for member, mine in zip(members, given, strict=True)})
