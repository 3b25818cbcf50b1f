"""All strategies by name. A new strategy needs its own file and a name here."""

from __future__ import annotations

from assignors.assignment import Assignment
from assignors.clients import RANGE, ROUND_ROBIN_ASSIGNER, ROUNDROBIN
from assignors.clients.sticky import COOPERATIVE_STICKY, STICKY
from assignors.exceptions import UnknownStrategy
from assignors.model import Group
from assignors.strategy import JAVA, Library, PartitionRacks, Strategy, parse_library
from assignors.work import is_limited, spend

_OF_KAFKA = (RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY)
_STRATEGIES = {strategy.name: strategy for strategy in (*_OF_KAFKA, ROUND_ROBIN_ASSIGNER)}


def known_strategies() -> tuple[str, ...]:
    """Names of the strategies of Kafka's own clients: those that another client could run in a group's place."""
    return tuple(strategy.name for strategy in _OF_KAFKA)


def find_strategy(name: str) -> Strategy | None:
    """The strategy with this protocol name, whichever client has it; None if none is registered."""
    return _STRATEGIES.get(name)


def strategy_named(name: str) -> Strategy:
    """The strategy with this protocol name.

    Raises:
        UnknownStrategy: None is registered under this name.
    """
    strategy = find_strategy(name)
    if strategy is None:
        message = f"Strategy {name!r} is not known: use one of {', '.join(_STRATEGIES)}."
        raise UnknownStrategy(message)
    return strategy


def assign(
    strategy: str | Strategy,
    group: Group,
    library: Library | str | None = None,
    partition_racks: PartitionRacks | None = None,
) -> Assignment:
    """Recompute the assignment of a group's leader.

    Args:
        strategy: Protocol name, for example "range", or a strategy itself, registered or not.
        group: Members and partition counts at the decision.
        library: The leader's library, as a value or as text ("java:3.7.1", "3.7.1"); None means the newest Java.
        partition_racks: Racks of the replicas of each partition by topic; None when unknown.

    Returns:
        Partitions by topic by member id; every member is included. Topics are sorted, unless the strategy's docstring
        says otherwise; compare with `same`.

    Raises:
        UnknownStrategy: The strategy is not registered.
        UnknownLibrary: The text cannot be parsed as a library.
        CannotTell: The result cannot be recomputed exactly; `reason` says why. `TooMuchWork` if the work would exceed a
            limit (`assignors.work`).
        LeaderWouldFail: This library throws on this input, so it did not lead.
    """
    if is_limited():
        spend(_least_work(group))
    of_library = parse_library(library) if isinstance(library, str) else library or Library(JAVA)
    chosen = strategy_named(strategy) if isinstance(strategy, str) else strategy
    return chosen.era(of_library).recompute(group, partition_racks)


def _least_work(group: Group) -> int:
    """Units of work that any strategy needs: it walks the members, compares their topics, and deals the partitions."""
    listed = sum(len(member.topics) for member in group.members)
    return len(group.members) + listed // 8 + sum(group.partitions_per_topic.values()) // 4
