"""All strategies by name. A new strategy is a file of its own and one line here."""

from __future__ import annotations

from assignors.assignment import Assignment
from assignors.clients import RANGE, ROUNDROBIN
from assignors.clients.sticky import COOPERATIVE_STICKY, STICKY
from assignors.exceptions import UnknownStrategy
from assignors.library import JAVA, Library, parse_library
from assignors.model import Group
from assignors.strategy import PartitionRacks, Strategy
from assignors.work import is_limited, spend

__all__ = ["assign", "known_strategies", "strategy_named"]

_STRATEGIES = {strategy.name: strategy for strategy in (RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY)}


def known_strategies() -> tuple[str, ...]:
    """Names of all registered strategies, those that cannot be recomputed yet included."""
    return tuple(_STRATEGIES)


def strategy_named(name: str) -> Strategy:
    """The strategy of a protocol name.

    Raises:
        UnknownStrategy: None is registered under it.
    """
    strategy = _STRATEGIES.get(name)
    if strategy is None:
        message = f"Strategy {name!r} is not known: known are {', '.join(_STRATEGIES)}."
        raise UnknownStrategy(message)
    return strategy


def assign(
    strategy: str | Strategy,
    group: Group,
    library: Library | str | None = None,
    partition_racks: PartitionRacks | None = None,
) -> Assignment:
    """Recompute what a group's leader assigned.

    Args:
        strategy: Protocol name, for example "range", or a strategy itself, registered or not.
        group: Members and partition counts at the decision.
        library: The leader's library, as a value or as text ("java:3.7.1", "3.7.1"); None is the newest Java.
        partition_racks: Racks of the replicas of each partition by topic; None when not known.

    Returns:
        Partitions by topic by member id; every member is in it. Topics are sorted, except where a docstring of
        the strategy says otherwise; compare with `same`.

    Raises:
        UnknownStrategy: The strategy is not registered.
        UnknownLibrary: The library cannot be read from its text.
        CannotTell: The result cannot be recomputed exactly; `reason` says why. `TooMuchWork` where that would take
            more than a limit allows (`assignors.work`).
        LeaderWouldFail: This library throws on this input, so it did not lead.
    """
    if is_limited():
        spend(_least_work(group))
    of_library = parse_library(library) if isinstance(library, str) else library or Library(JAVA)
    chosen = strategy_named(strategy) if isinstance(strategy, str) else strategy
    return chosen.era(of_library).recompute(group, partition_racks)


def _least_work(group: Group) -> int:
    """Units that any strategy takes: it walks the members, compares what they list, and deals the partitions."""
    listed = sum(len(member.topics) for member in group.members)
    return len(group.members) + listed // 8 + sum(group.partitions_per_topic.values()) // 4
