"""What each strategy would do with one group: how even the result, and how many partitions would move."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from assignors.assignment import Assignment, counts, same
from assignors.clients.sticky import read_kafka_python, read_sticky, write_kafka_python, write_sticky
from assignors.exceptions import AssignorError
from assignors.library import KAFKA_PYTHON, Library, parse_library
from assignors.measures.measure import Balance, Load, balance, imbalance_least, least_moves, loads, moves
from assignors.model import Group, Subscription, TopicPartitions
from assignors.registry import assign, known_strategies
from assignors.strategy import PartitionRacks, Strategy

__all__ = ["Bounds", "Outcome", "bounds_of", "outcome", "what_if"]

# A cooperative rebalance gives up in one generation what it hands over in the next; nothing is left for a third.
_MOST_GENERATIONS = 3


@dataclass(frozen=True, slots=True)
class Bounds:
    """The best that any strategy could do with a group; the same for all of them.

    Attributes:
        moves_least: The least moves after which the group could be balanced; None where it is too large to tell.
        imbalance_least: The least imbalance that any assignment could have; None when nothing can be assigned.
    """

    moves_least: int | None
    imbalance_least: float | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one strategy would make of a group.

    Attributes:
        assignment: Partitions by topic by member.
        moves: Partitions whose owner would change, as `moves` counts them.
        bounds: The best that any strategy could do.
        partitions: Balance of the partition counts; None without members.
        load: Balance of the loads; None when no load was given.
        generations: Rebalances until the assignment stands: 2 where a cooperative strategy has to take partitions
            back first.
    """

    assignment: Assignment
    moves: int
    bounds: Bounds
    partitions: Balance | None
    load: Balance | None
    generations: int = 1

    @property
    def stickiness_cost(self) -> int | None:
        """Moves beyond the least; below 0 where a strategy leaves a group less even than possible and moves less."""
        least = self.bounds.moves_least
        return None if least is None else self.moves - least


def bounds_of(group: Group, current: Assignment) -> Bounds:
    """Work out what any strategy could do at best."""
    return Bounds(least_moves(current, group), imbalance_least(group))


def outcome(
    group: Group,
    current: Assignment,
    assignment: Assignment,
    bounds: Bounds,
    load: Load | None = None,
    *,
    generations: int = 1,
) -> Outcome:
    """Measure an assignment of a group against what its members have now."""
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
    """Work out what each strategy would make of this very group.

    A sticky strategy goes by what members say they own. Where none says so in that strategy's way (the group runs
    another strategy, for instance), they are taken to say what they have in `current`, all in one generation.

    Args:
        group: Members and partition counts.
        strategies: Names, or strategies themselves; None for all that are known.
        current: Who has what now, members that left included; None takes what the members say they own.
        library: As for `assign`.
        partition_racks: As for `assign`.
        load: Load of the partitions, for the balance of loads.
        bounds: What `bounds_of` gives for the group and `current`, where that is known already.

    Returns:
        The outcome by the strategy's name; where it cannot be told, the error that says why.
    """
    now = _owned(group) if current is None else current
    best = bounds_of(group, now) if bounds is None else bounds
    result: dict[str, Outcome | AssignorError] = {}
    for strategy in known_strategies() if strategies is None else strategies:
        name = strategy if isinstance(strategy, str) else strategy.name
        try:
            of_library = parse_library(library) if isinstance(library, str) else library
            asked = _informed(group, name, now, of_library)
            assignment, generations = _settled(strategy, name, asked, of_library, partition_racks)
            result[name] = outcome(group, now, assignment, best, load, generations=generations)
        except AssignorError as error:
            result[name] = error
    return result


def _owned(group: Group) -> Assignment:
    return {member.member_id: dict(member.owned) for member in group.members}


def _informed(group: Group, name: str, current: Assignment, library: Library | None) -> Group:
    """The group with members that tell a sticky strategy what they have, if none tells anything."""
    if name == "sticky" and not any(_told_sticky(member, library) for member in group.members):
        return _telling(group, name, current, 1, library)
    if name == "cooperative-sticky" and not any(member.owned for member in group.members):
        return _telling(group, name, current, 1, library)
    return group


def _told_sticky(member: Subscription, library: Library | None) -> bool:
    # (User data may be another strategy's: Java's cooperative-sticky has four bytes.)
    data = member.user_data
    return bool((read_kafka_python(data) if _is_kafka_python(library) else read_sticky(data)[0]).partitions)


def _is_kafka_python(library: Library | None) -> bool:
    return library is not None and library.name == KAFKA_PYTHON


def _telling(group: Group, name: str, current: Assignment, generation: int, library: Library | None) -> Group:
    """The group with members that say they have this since one generation; who has nothing says nothing."""
    write = write_kafka_python if _is_kafka_python(library) else write_sticky

    def of(member: Subscription) -> Subscription:
        had: TopicPartitions = tuple(
            (topic, tuple(partitions)) for topic, partitions in current.get(member.member_id, {}).items()
        )
        if not had:
            return replace(member, owned=(), generation=None, user_data=None)
        # `sticky` looks at its user data alone; `cooperative-sticky` keeps nothing but the generation there.
        told = write(had, generation) if name == "sticky" else generation.to_bytes(4, "big")
        return replace(member, owned=had, generation=generation, user_data=told)

    return replace(group, members=tuple(map(of, group.members)))


def _settled(
    strategy: str | Strategy,
    name: str,
    group: Group,
    library: Library | None,
    partition_racks: PartitionRacks | None,
) -> tuple[Assignment, int]:
    """What stands when no further rebalance would change it, and after how many."""
    assignment = assign(strategy, group, library, partition_racks)
    generations = 1
    while name == "cooperative-sticky" and generations < _MOST_GENERATIONS:
        following = _telling(group, name, assignment, generations + 1, library)
        again = assign(strategy, following, library, partition_racks)
        if same(again, assignment):
            break
        assignment = again
        generations += 1
    return assignment, generations
