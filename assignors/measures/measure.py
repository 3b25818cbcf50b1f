"""The balance of an assignment and the cost of a change, each with the best value that any assignment could reach.

**Balanced** always means: every partition that has a subscriber is assigned, and the members' partition counts are as
even as the subscriptions allow; that is, sorted from the largest, they are the smallest possible. For equal
subscriptions this means that no two members differ by more than one partition; for different ones, that no chain of
moves can take a partition from a member to one that has at least two fewer. These sorted counts are the same for every
balanced assignment (they minimise the sum of squares as well as the maximum: Harvey, Ladner, Lovász and Tamir,
"Semi-matchings for bipartite graphs and load balancing", 2006), but which member has which count may differ. `settled`
is what a strategy would give a group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from assignors.assignment import Assignment, counts, same
from assignors.clients.sticky.claims import read_kafka_python, read_sticky, write_kafka_python, write_sticky
from assignors.context import at_most
from assignors.exceptions import TooMuchWork
from assignors.measures.optimal_imbalance import smallest_load_bounds, smallest_maximum
from assignors.measures.optimal_moves import moves_by_min_cost_flow
from assignors.model import Group, PartitionRacks, Subscription, TopicPartitions, topics_listed
from assignors.registry import assign
from assignors.strategy import KAFKA_PYTHON, Library, Strategy

# Limit for the flow that finds the smallest maximum: 0.3 s. Usual groups take some thousand steps, 500 members and 500
# topics with random subscriptions 300,000; larger groups get no figure.
_MOST_STEPS = 1_000_000

Load = Mapping[str, Sequence[float]]
"""Load of each partition by topic, in any unit that can be added, such as records per second; none below 0."""


def loads(assignment: Assignment, load: Load, members: Iterable[str]) -> dict[str, float]:
    """Load of each member: the sum over its partitions; a partition that is missing in `load` counts as 0."""
    result: dict[str, float] = {}
    for member_id in members:
        total = 0.0
        for topic, partitions in assignment.get(member_id, {}).items():
            of_topic = load.get(topic, ())
            total += sum(of_topic[partition] for partition in partitions if 0 <= partition < len(of_topic))
        result[member_id] = total
    return result


def imbalance(counts: Iterable[float]) -> float | None:
    """The fullest member relative to the mean: max / mean - 1.

    Args:
        counts: Partitions, or load, of all members, including those with none.

    Returns:
        0.0 for perfectly even; None when there are no members or nothing is assigned.
    """
    listed = list(counts)
    total = sum(listed)
    if not total:
        return None
    return max(listed) * len(listed) / total - 1


def imbalance_optimal(group: Group) -> float | None:
    """The least imbalance that any assignment of this group could have.

    Every partition with a subscriber is assigned to a subscriber, the maximum is the smallest possible, the mean is
    over all members: three partitions on five members give 2/3, which is not a defect.

    Returns:
        As `imbalance`; exact. None if nothing can be assigned, and if it is too large to compute: subscriptions differ,
        and the flow takes more than a million steps, or more than a limit allows (`assignors.context`).
    """
    total = sum(_assignable(group).values())
    if not total:
        return None
    try:
        with at_most(_MOST_STEPS):
            most = smallest_maximum(group)
    except TooMuchWork:
        return None
    return most * len(group.members) / total - 1


def load_imbalance_optimal(group: Group, load: Load) -> tuple[float, float] | None:
    """Bounds of the least imbalance of load that any assignment of this group could have.

    Every partition with a subscriber is assigned to a subscriber, the mean is over all members, as in
    `imbalance_optimal`. A partition cannot be split, so the exact answer may be out of reach.

    Args:
        group: Members and partition counts.
        load: Load of the partitions; one that is missing counts as 0.

    Returns:
        No assignment has less than the first, and one that was found has the second: where they are equal, the answer
        is exact. None if there is no load, and if it takes more than a million steps, or more than a limit allows
        (`assignors.context`).
    """
    total = sum(value for topic, count in _assignable(group).items() for value in load.get(topic, ())[:count])
    if not total:
        return None
    try:
        with at_most(_MOST_STEPS):
            least, most = smallest_load_bounds(group, load)
    except TooMuchWork:
        return None
    return least * len(group.members) / total - 1, most * len(group.members) / total - 1


def moves(before: Assignment, after: Assignment) -> int:
    """Count the partitions whose owner changed.

    A partition counts if it has an owner in both assignments and the new owner is not the old one, even if that one has
    left the group. A first owner of an unowned partition and a lost owner without a new one are not moves. A partition
    that is assigned twice (which no strategy does) has not moved while one of its owners stays.
    """
    had: dict[tuple[str, str], set[int]] = {}
    ever: dict[str, set[int]] = {}
    for member_id, topics in before.items():
        for topic, partitions in topics.items():
            had[member_id, topic] = set(partitions)
            ever.setdefault(topic, set()).update(partitions)
    kept: dict[str, set[int]] = {}
    owned: dict[str, set[int]] = {}
    for member_id, topics in after.items():
        for topic, partitions in topics.items():
            if topic not in ever:
                continue
            now = ever[topic].intersection(partitions)
            owned.setdefault(topic, set()).update(now)
            if earlier := had.get((member_id, topic)):
                kept.setdefault(topic, set()).update(now & earlier)
    return sum(len(of_topic - kept.get(topic, set())) for topic, of_topic in owned.items())


def optimal_moves(before: Assignment, group: Group) -> int | None:
    """The fewest moves, as counted by `moves`, after which a group can be balanced.

    The moves of a strategy beyond this number are its cost in stickiness. Only balance is required here, so a strategy
    whose result is less even than possible (like range) can move fewer.

    Args:
        before: Previous owners; may contain members that left and partitions that are gone.
        group: The group after the change.

    Returns:
        Exact. None if it is too large to compute (subscriptions differ, and it exceeds the limits of
        `assignors.measures.optimal_moves` or a limit of the caller), or if a partition had two owners.
    """
    counts = group.partitions_per_topic
    assignable = _assignable(group)
    total = sum(assignable.values())
    wanted = _wanted(group.members, assignable)
    owned_before: dict[str, dict[str, int]] = {}
    seen: dict[str, set[int]] = {topic: set() for topic in assignable}
    listed = 0
    for member_id, topics in before.items():
        for topic, partitions in topics.items():
            if topic in assignable:
                valid = [partition for partition in partitions if 0 <= partition < counts[topic]]
                listed += len(valid)
                seen[topic].update(valid)
                if topic in wanted.get(member_id, ()):
                    owned_before.setdefault(member_id, {})[topic] = len(valid)
    owned = sum(map(len, seen.values()))
    if owned != listed:
        return None
    if not owned:
        return 0
    if len(set(wanted.values())) == 1:
        had = [sum(owned_before.get(member.member_id, {}).values()) for member in group.members]
        return owned - _most_kept(had, total)
    try:
        return moves_by_min_cost_flow(group, owned_before, owned)
    except TooMuchWork:
        return None


def _most_kept(had: list[int], total: int) -> int:
    """Most partitions that can stay if each member ends with total / members, rounded up or down."""
    quota, larger = divmod(total, len(had))
    above = sum(1 for count in had if count > quota)
    return sum(min(count, quota) for count in had) + min(larger, above)


def _assignable(group: Group) -> Mapping[str, int]:
    """Partition counts of existing topics with a subscriber."""
    counts = group.partitions_per_topic
    kinds = {id(listed): listed for listed in topics_listed(group.members)}.values()
    return {topic: counts[topic] for listed in kinds for topic in listed if counts.get(topic)}


def _wanted(members: Sequence[Subscription], assignable: Mapping[str, int]) -> dict[str, frozenset[str]]:
    """Assignable topics of each member, by its id; members with the same list share one set."""
    sets: dict[int, frozenset[str]] = {}
    result = {}
    for member, listed in zip(members, topics_listed(members), strict=True):
        found = sets.get(id(listed))
        if found is None:
            found = sets[id(listed)] = frozenset(topic for topic in listed if topic in assignable)
        result[member.member_id] = found
    return result


# A cooperative rebalance gives up partitions in one generation and hands them over in the next; a third is not needed.
_MOST_GENERATIONS = 3


# The generation in which members say that they got their partitions. Any serves: it is the same for all of them, and
# the leader, whose last decision it is, remembers none above it.
_GENERATION = 1


@dataclass(frozen=True, slots=True)
class Bounds:
    """The best values that any strategy could reach for a group; the same for all of them.

    Attributes:
        partitions_moved_optimal: The fewest moves after which the group could be balanced; None if it is too large to
            compute.
        imbalance_optimal: The least imbalance that any assignment could have; None if nothing can be assigned.
    """

    partitions_moved_optimal: int | None
    imbalance_optimal: float | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an assignment costs a group.

    Attributes:
        partitions_moved: Partitions whose owner would change, as counted by `moves`.
        imbalance: As from `imbalance`, of the members' partitions.
        load_imbalance: The same of their loads; None without a given load, too.
    """

    partitions_moved: int
    imbalance: float | None
    load_imbalance: float | None


def bounds_of(group: Group, current: Assignment) -> Bounds:
    """Compute the best values that any strategy could reach."""
    return Bounds(optimal_moves(current, group), imbalance_optimal(group))


def outcome(group: Group, current: Assignment, assignment: Assignment, load: Load | None = None) -> Outcome:
    """Measure an assignment of a group against the members' current partitions."""
    ids = [member.member_id for member in group.members]
    return Outcome(
        moves(current, assignment),
        imbalance(counts(assignment, ids).values()),
        None if load is None else imbalance(loads(assignment, load, ids).values()),
    )


def settled(
    strategy: str | Strategy,
    group: Group,
    current: Assignment,
    library: Library | None = None,
    partition_racks: PartitionRacks | None = None,
) -> tuple[Assignment, int]:
    """What a strategy would give a group in the end.

    A sticky strategy uses the owned partitions in the members' subscriptions. If no member states any in that
    strategy's format (for instance because the group runs another strategy), members are taken to state those of
    `current`, all in one generation.

    Args:
        strategy: A name, or the strategy itself.
        group: Members and partition counts.
        current: The current owners, including members that left.
        library: As for `assign`.
        partition_racks: As for `assign`.

    Returns:
        The assignment that no further rebalance would change, and the number of rebalances until then: 2 if a
        cooperative strategy must take partitions back first.

    Raises:
        AssignorError: As `assign`.
    """
    name = strategy if isinstance(strategy, str) else strategy.name
    assignment = assign(strategy, informed(group, name, current, library), library, partition_racks)
    generations = 1
    while name == "cooperative-sticky" and generations < _MOST_GENERATIONS:
        following = _telling(group, name, assignment, library)
        again = assign(strategy, following, library, partition_racks)
        if same(again, assignment):
            break
        assignment = again
        generations += 1
    return assignment, generations


def informed(group: Group, name: str, current: Assignment, library: Library | None) -> Group:
    """The group with members that state their partitions for a sticky strategy, if none does already.

    Args:
        group: The group.
        name: A strategy; nothing changes for one that is not sticky.
        current: The partitions that they state.
        library: The library in whose form they state them; None is Java's.
    """
    if name == "sticky" and not any(_told_sticky(member, library) for member in group.members):
        return _telling(group, name, current, library)
    if name == "cooperative-sticky" and not any(member.owned for member in group.members):
        return _telling(group, name, current, library)
    return group


def _told_sticky(member: Subscription, library: Library | None) -> bool:
    # User data may be another strategy's: Java's cooperative-sticky has four bytes.
    data = member.user_data
    return bool((read_kafka_python(data) if _is_kafka_python(library) else read_sticky(data)[0]).partitions)


def _is_kafka_python(library: Library | None) -> bool:
    return library is not None and library.name == KAFKA_PYTHON


def _telling(group: Group, name: str, current: Assignment, library: Library | None) -> Group:
    """The group with members that state these partitions in one generation; a member with none states nothing."""
    write = write_kafka_python if _is_kafka_python(library) else write_sticky

    def of(member: Subscription) -> Subscription:
        had: TopicPartitions = tuple(
            (topic, tuple(partitions)) for topic, partitions in current.get(member.member_id, {}).items()
        )
        if not had:
            return replace(member, owned=(), generation=None, user_data=None)
        # `sticky` uses only its user data; `cooperative-sticky` keeps only the generation there.
        told = write(had, _GENERATION) if name == "sticky" else _GENERATION.to_bytes(4, "big")
        return replace(member, owned=had, generation=_GENERATION, user_data=told)

    return replace(group, members=tuple(map(of, group.members)), remembered_generation=_GENERATION)
