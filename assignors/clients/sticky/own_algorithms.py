"""Sticky strategies that do not follow Java's: those of franz-go, and krafka's `cooperative-sticky`.

franz-go, for equal subscriptions: pkg/kgo/internal/sticky/sticky.go, group_balancer.go. Members keep what they claim,
free partitions go one by one to the member with the fewest, and then members with too many give from the end of their
lists until all differ by at most one. All of this is the same in each process, but for one thing: free partitions are
given topic by topic, in the random order of a Go map. That order does not change which member gets the next one, so an
assignment is recognised as a possible result without trying all orders (`CannotTell.admits`).

krafka: consumer/assignor/sticky.rs and mod.rs of 0.27 and 0.28. Members keep what they own, free partitions go to the
member with the fewest, and then the fullest members give one by one to the emptiest ones. Members are taken in the
order of the JoinGroup response; racks are not used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations

from assignors.assignment import Assignment, PartitionId, from_pairs, owners, same
from assignors.blocks import takers_by_topic
from assignors.clients.racks import refuse_any_rack_match
from assignors.clients.sticky.claims import claims_by_generation, read_sticky, said_in_subscription, two_newest
from assignors.context import spend
from assignors.exceptions import CannotTell
from assignors.model import Group, PartitionRacks, Recompute, Subscription, TopicPartitions
from assignors.order import franz_go_order

_TOPIC_ORDER = "franz-go gives free partitions topic by topic, in a random order"
_CONFLICT = "members claim the same partition, which franz-go decides by generations"

# Most topics of which all orders are listed as possible results; with more they are only recognised.
_MOST_ORDERED = 4

# Most attempts to find the order of topics that gives an assignment. Only topics whose partitions go to the same
# members for a while can be confused; after so many attempts the assignment counts as not recognised.
_MOST_ATTEMPTS = 10_000


def franz_go(*, cooperative: bool, aware: bool) -> Recompute:
    """A franz-go leader of one strategy; `aware` from 1.21 on, which has racks, of the partitions' leaders."""

    def recompute(group: Group, racks: PartitionRacks | None) -> Assignment:
        if aware:
            refuse_any_rack_match(group, takers_by_topic(group.members, once=True), racks)
        return _Balancer(group, cooperative=cooperative).result()

    return recompute


_Free = tuple[str, tuple[int, ...]]
"""A topic and its free partitions, ascending."""


class _Balancer:
    """One decision: everything but the order in which topics' free partitions are given."""

    def __init__(self, group: Group, *, cooperative: bool) -> None:
        self._members = franz_go_order(group.members)
        counts = _equal_topics(group)
        total = sum(counts.values())
        spend(4 * total)
        owner = _by_owner([_claims(member, cooperative=cooperative) for member in self._members])
        kept: list[list[tuple[int, str]]] = [[] for _ in self._members]
        for (topic, number), member in owner.items():
            if 0 <= number < counts.get(topic, 0):
                kept[member].append((number, topic))
        # By number, then topic: a later thief takes from all topics alike.
        self._lists = [sorted(of_member) for of_member in kept]
        self._free = [
            (topic, numbers)
            for topic, count in sorted(counts.items())
            if (numbers := tuple(number for number in range(count) if (topic, number) not in owner))
        ]
        sizes = list(map(len, self._lists))
        self._turns = _turns(sizes, sum(len(numbers) for _, numbers in self._free))
        # A member that gives has taken no free partition: those go to members with the fewest.
        for source, target in _moves(sizes):
            self._lists[target].append(self._lists[source].pop())
        self._held_back: frozenset[PartitionId] = frozenset()
        if cooperative:
            self._held_back = self._owned_by_others()

    def result(self) -> Assignment:
        """The assignment.

        Raises:
            CannotTell: It depends on the order of topics.
        """
        if len(self._free) < 2 or len(self._members) == 1:
            return self._with_free(self._free)
        possible: list[Assignment] = []
        if len(self._free) <= _MOST_ORDERED:
            for order in permutations(self._free):
                made = self._with_free(order)
                if not any(same(made, other) for other in possible):
                    possible.append(made)
            if len(possible) == 1:
                return possible[0]
        raise CannotTell(_TOPIC_ORDER, tuple(possible), self._gives)

    def _with_free(self, order: Sequence[_Free]) -> Assignment:
        """The assignment if free partitions are given in this order of topics."""
        given = [list(of_member) for of_member in self._lists]
        turns = iter(self._turns)
        for topic, numbers in order:
            for number in numbers:
                given[next(turns)].append((number, topic))
        return from_pairs(
            {
                member.member_id: [
                    (topic, number) for number, topic in sorted(of_member) if (topic, number) not in self._held_back
                ]
                for member, of_member in zip(self._members, given, strict=True)
            }
        )

    def _gives(self, actual: Assignment) -> bool:
        """Whether some order of topics gives this assignment."""
        owner_of = owners(actual)
        position = {member.member_id: place for place, member in enumerate(self._members)}
        wanted: dict[tuple[int, ...], list[_Free]] = {}
        for topic, numbers in self._free:
            members = [owner_of.get(topic, {}).get(number, []) for number in numbers]
            if any(len(of_partition) != 1 or of_partition[0] not in position for of_partition in members):
                return False
            wanted.setdefault(tuple(position[of_partition[0]] for of_partition in members), []).append((topic, numbers))
        order = self._order_of(Counter({takers: len(topics) for takers, topics in wanted.items()}))
        return order is not None and same(self._with_free([wanted[takers].pop() for takers in order]), actual)

    def _order_of(self, left: Counter[tuple[int, ...]]) -> list[tuple[int, ...]] | None:
        """Put lists of takers into an order that makes up the turns; None if there is none, or the search is long."""
        order: list[tuple[int, ...]] = []
        # Alternatives still to be tried at each place.
        untried = [self._next(left, 0)]
        start = attempts = 0
        while untried:
            attempts += 1
            spend(len(left))
            if attempts > _MOST_ATTEMPTS:
                return None
            if start == len(self._turns):
                return order
            if untried[-1]:
                takers = untried[-1].pop()
                order.append(takers)
                left[takers] -= 1
                start += len(takers)
                untried.append(self._next(left, start))
            else:
                untried.pop()
                if order:
                    takers = order.pop()
                    left[takers] += 1
                    start -= len(takers)
        return None

    def _next(self, left: Counter[tuple[int, ...]], start: int) -> list[tuple[int, ...]]:
        return [
            takers for takers, times in left.items() if times and self._turns[start : start + len(takers)] == takers
        ]

    def _owned_by_others(self) -> frozenset[PartitionId]:
        """Partitions of a member that another one still has (`AdjustCooperative`)."""
        owned = _by_owner([member.owned for member in self._members])
        if any((topic, number) in owned for topic, numbers in self._free for number in numbers):
            raise CannotTell(_CONFLICT)
        return frozenset(
            (topic, number)
            for place, of_member in enumerate(self._lists)
            for number, topic in of_member
            if owned.get((topic, number), place) != place
        )


def _equal_topics(group: Group) -> dict[str, int]:
    """Partition counts of the existing topics, to which all members must subscribe.

    Raises:
        CannotTell: They subscribe to different topics: franz-go then searches for ways to steal, which is not followed.
    """
    counts = group.partitions_per_topic
    existing = [[topic for topic in member.topics if counts.get(topic)] for member in group.members]
    topics = frozenset(existing[0]) if existing else frozenset()
    if any(len(of_member) != len(topics) or topics != set(of_member) for of_member in existing):
        reason = "franz-go's sticky strategies are not recomputed for different subscriptions"
        raise CannotTell(reason)
    return {topic: counts[topic] for topic in topics}


def _claims(member: Subscription, *, cooperative: bool) -> TopicPartitions:
    """What a member claims: `parseMemberMetadata` reads owned partitions only if they have a generation."""
    if cooperative and member.generation is not None:
        return member.owned
    data, end = read_sticky(member.user_data)
    # A generation that is cut off makes everything unreadable; Java takes it for an older version without one.
    cut_off = data.generation is None and end < len(member.user_data or b"")
    if cut_off:
        return ()
    return data.partitions


def _by_owner(claims: Iterable[TopicPartitions]) -> dict[PartitionId, int]:
    """The claimant of each partition, as its position.

    Raises:
        CannotTell: A partition is claimed twice.
    """
    found: dict[PartitionId, int] = {}
    for place, of_member in enumerate(claims):
        for topic, numbers in of_member:
            for number in numbers:
                if found.setdefault((topic, number), place) != place:
                    raise CannotTell(_CONFLICT)
    return found


def _turns(sizes: list[int], free: int) -> tuple[int, ...]:
    """Who takes the next free partition, by `membersByPartitions`, a heap by size; `sizes` grow."""
    heap = list(range(len(sizes)))
    for place in range(len(heap) // 2 - 1, -1, -1):
        _down(heap, sizes, place)
    turns = []
    for _ in range(free):
        turns.append(heap[0])
        sizes[heap[0]] += 1
        _down(heap, sizes, 0)
    return tuple(turns)


def _down(heap: list[int], sizes: Sequence[int], place: int) -> None:
    while (child := 2 * place + 1) < len(heap):
        if child + 1 < len(heap) and sizes[heap[child + 1]] < sizes[heap[child]]:
            child += 1
        if sizes[heap[place]] <= sizes[heap[child]]:
            return
        heap[place], heap[child] = heap[child], heap[place]
        place = child


def _moves(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Who gives to whom (`balance`): the first members of the fullest level to the first ones of the emptiest."""
    levels: dict[int, list[int]] = {}
    for member, size in enumerate(sizes):
        levels.setdefault(size, []).append(member)
    while (most := max(levels)) > (fewest := min(levels)) + 1:
        count = min(len(levels[most]), len(levels[fewest]))
        sources, targets = levels[most][:count], levels[fewest][:count]
        yield from zip(sources, targets, strict=True)
        levels.setdefault(fewest + 1, []).extend(targets)
        levels.setdefault(most - 1, []).extend(sources)
        for level in (fewest, most):
            del levels[level][:count]
            if not levels[level]:
                del levels[level]


def krafka_cooperative(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """Krafka from 0.27 on."""
    members = group.members
    wanted = [frozenset(member.topics) for member in members]
    topics = sorted(frozenset().union(*wanted))
    partitions = [(topic, number) for topic in topics for number in range(group.partitions_per_topic.get(topic, 0))]
    spend(len(partitions) * (len(members) + 2))
    # The claimant of the highest generation, and of those the first.
    claims = claims_by_generation([said_in_subscription(member) for member in members], overwriting=None)
    owner, _ = two_newest(claims, claims)
    lists: list[set[PartitionId]] = [set() for _ in members]
    free = []
    for partition in partitions:
        place = owner.get(partition)
        if place is not None and partition[0] in wanted[place]:
            lists[place].add(partition)
        else:
            free.append(partition)
    kept = [frozenset(of_member) for of_member in lists]
    for partition in free:
        takers = [place for place, topics_of in enumerate(wanted) if partition[0] in topics_of]
        lists[min(takers, key=lambda place: len(lists[place]))].add(partition)
    while _one_moves(lists, kept, wanted):
        pass
    return from_pairs(
        {
            member.member_id: [partition for partition in sorted(of_member) if owner.get(partition, place) == place]
            for place, (member, of_member) in enumerate(zip(members, lists, strict=True))
        }
    )


def _one_moves(
    lists: Sequence[set[PartitionId]], kept: Sequence[frozenset[PartitionId]], wanted: Sequence[frozenset[str]]
) -> bool:
    """Move one partition to an emptier member, rather one that its owner has just been given; False if none may."""
    spend(len(lists))
    by_size = sorted(range(len(lists)), key=lambda place: len(lists[place]))
    for target in by_size:
        for source in reversed(by_size):
            if len(lists[source]) < len(lists[target]) + 2:
                break
            spend(len(lists[source]))
            possible = [partition for partition in lists[source] if partition[0] in wanted[target]]
            if possible:
                moved = min(possible, key=lambda partition: (partition in kept[source], partition))
                lists[source].remove(moved)
                lists[target].add(moved)
                return True
    return False
