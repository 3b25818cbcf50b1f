"""The outcome of each strategy for one group: how even the result is, and how many partitions move."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from assignors.assignment import Assignment, counts, same
from assignors.clients.sticky.claims import read_kafka_python, read_sticky, write_kafka_python, write_sticky
from assignors.exceptions import AssignorError
from assignors.measures.measure import Balance, Load, balance, imbalance_optimal, loads, moves, optimal_moves
from assignors.model import Group, PartitionRacks, Subscription, TopicPartitions
from assignors.registry import assign, known_strategies
from assignors.strategy import KAFKA_PYTHON, Library, Strategy, parse_library

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
    """The result of one strategy for a group.

    Attributes:
        assignment: Partitions by topic by member.
        partitions_moved: Partitions whose owner would change, as counted by `moves`.
        bounds: The best values that any strategy could reach.
        partitions: Balance of the partition counts; None without members.
        load: Balance of the loads; None without a given load.
        generations: Rebalances until the assignment is final: 2 if a cooperative strategy must take partitions back
            first.
    """

    assignment: Assignment
    partitions_moved: int
    bounds: Bounds
    partitions: Balance | None
    load: Balance | None
    generations: int = 1


def bounds_of(group: Group, current: Assignment) -> Bounds:
    """Compute the best values that any strategy could reach."""
    return Bounds(optimal_moves(current, group), imbalance_optimal(group))


def outcome(
    group: Group,
    current: Assignment,
    assignment: Assignment,
    bounds: Bounds,
    load: Load | None = None,
    *,
    generations: int = 1,
) -> Outcome:
    """Measure an assignment of a group against the members' current partitions."""
    ids = [member.member_id for member in group.members]
    return Outcome(
        assignment,
        moves(current, assignment),
        bounds,
        balance(counts(assignment, ids).values()),
        None if load is None else balance(loads(assignment, load, ids).values()),
        generations,
    )


def what_if(
    group: Group,
    strategies: Iterable[str | Strategy] | None = None,
    current: Assignment | None = None,
    *,
    library: Library | str | None = None,
    partition_racks: PartitionRacks | None = None,
    load: Load | None = None,
    bounds: Bounds | None = None,
) -> dict[str, Outcome | AssignorError]:
    """Compute each strategy's result for this group.

    A sticky strategy uses the owned partitions in the members' subscriptions. If no member states any in that
    strategy's format (for instance because the group runs another strategy), members are taken to state those of
    `current`, all in one generation.

    Args:
        group: Members and partition counts.
        strategies: Names, or strategies themselves; None means all known ones.
        current: The current owners, including members that left; None takes the members' own statements.
        library: As for `assign`.
        partition_racks: As for `assign`.
        load: Load of the partitions, for the balance of loads.
        bounds: The result of `bounds_of` for the group and `current`, if already computed.

    Returns:
        The outcome by the strategy's name, or the error that says why there is none.
    """
    now = _owned(group) if current is None else current
    best = bounds_of(group, now) if bounds is None else bounds
    result: dict[str, Outcome | AssignorError] = {}
    for strategy in known_strategies() if strategies is None else strategies:
        name = strategy if isinstance(strategy, str) else strategy.name
        try:
            of_library = parse_library(library) if isinstance(library, str) else library
            asked = informed(group, name, now, of_library)
            assignment, generations = _settled(strategy, name, asked, of_library, partition_racks)
            result[name] = outcome(group, now, assignment, best, load, generations=generations)
        except AssignorError as error:
            result[name] = error
    return result


def _owned(group: Group) -> Assignment:
    return {member.member_id: dict(member.owned) for member in group.members}


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


def _settled(
    strategy: str | Strategy,
    name: str,
    group: Group,
    library: Library | None,
    partition_racks: PartitionRacks | None,
) -> tuple[Assignment, int]:
    """The final assignment, which no further rebalance would change, and the number of rebalances until then."""
    assignment = assign(strategy, group, library, partition_racks)
    generations = 1
    while name == "cooperative-sticky" and generations < _MOST_GENERATIONS:
        following = _telling(group, name, assignment, library)
        again = assign(strategy, following, library, partition_racks)
        if same(again, assignment):
            break
        assignment = again
        generations += 1
    return assignment, generations
