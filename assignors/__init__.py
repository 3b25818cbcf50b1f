"""Exact recomputation of Kafka's and RocketMQ's assignment strategies; usable without the rest of Evenkeel.

from assignors import Group, Subscription, assign

group = Group((Subscription("a", ("t",)), Subscription("b", ("t",))), {"t": 3})
assign("range", group)  # {"a": {"t": range(0, 2)}, "b": {"t": range(2, 3)}}

This package has the strategies of Kafka's clients and users' own ones; `assignors.brokers` has those of Kafka's
brokers, `assignors.rocketmq` those of RocketMQ.
"""

from __future__ import annotations

from assignors.assignment import (
    Assignment,
    Difference,
    Partitions,
    counts,
    differences,
    from_pairs,
    from_topics,
    owners,
    same,
    to_pairs,
)
from assignors.clients.possible_leaders import (
    Leaders,
    declared_leaders,
    possible_leaders,
    topics_without_metadata,
    with_hidden_inputs,
)
from assignors.clients.sticky.claims import claimed_partitions
from assignors.context import Work, at_most, spend
from assignors.custom import CustomStrategies, CustomStrategy, custom_strategies
from assignors.exceptions import (
    AssignorError,
    BadGroup,
    BadStrategy,
    CannotTell,
    LeaderWouldFail,
    TooMuchWork,
    UnknownLibrary,
    UnknownStrategy,
)
from assignors.measures.invariants import (
    BEYOND_COUNT,
    DOUBLY_ASSIGNED,
    NOT_SUBSCRIBED,
    BrokenPromise,
    Violation,
    broken_promises,
    violations,
)
from assignors.measures.measure import (
    Bounds,
    Load,
    imbalance,
    imbalance_optimal,
    load_imbalance_optimal,
    loads,
    moves,
    optimal_moves,
)
from assignors.model import Group, PartitionRacks, Subscription
from assignors.registry import assign, find_strategy, known_strategies, strategy_named
from assignors.strategy import CUSTOM, JAVA, Era, Library, Strategy, parse_library

__all__ = [
    "BEYOND_COUNT",
    "CUSTOM",
    "DOUBLY_ASSIGNED",
    "JAVA",
    "NOT_SUBSCRIBED",
    "Assignment",
    "AssignorError",
    "BadGroup",
    "BadStrategy",
    "Bounds",
    "BrokenPromise",
    "CannotTell",
    "CustomStrategies",
    "CustomStrategy",
    "Difference",
    "Era",
    "Group",
    "LeaderWouldFail",
    "Leaders",
    "Library",
    "Load",
    "PartitionRacks",
    "Partitions",
    "Strategy",
    "Subscription",
    "TooMuchWork",
    "UnknownLibrary",
    "UnknownStrategy",
    "Violation",
    "Work",
    "assign",
    "at_most",
    "broken_promises",
    "claimed_partitions",
    "counts",
    "custom_strategies",
    "declared_leaders",
    "differences",
    "find_strategy",
    "from_pairs",
    "from_topics",
    "imbalance",
    "imbalance_optimal",
    "known_strategies",
    "load_imbalance_optimal",
    "loads",
    "moves",
    "optimal_moves",
    "owners",
    "parse_library",
    "possible_leaders",
    "same",
    "spend",
    "strategy_named",
    "to_pairs",
    "topics_without_metadata",
    "violations",
    "with_hidden_inputs",
]
