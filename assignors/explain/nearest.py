"""For drift: every library and release that could have computed the assignment, and how far each is from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assignors.assignment import Assignment, Difference, differences
from assignors.brokers import assign_on_server
from assignors.exceptions import AssignorError
from assignors.explain.from_brokers import by_name
from assignors.jsonl import brokers as server
from assignors.jsonl import rocketmq
from assignors.jsonl.assign import read_client_group, read_racks
from assignors.registry import assign, find_strategy, known_strategies, strategy_named
from assignors.strategy import Library

# The releases at which the brokers' assignors began to compute something else.
_BROKERS = ("3.8.0", "3.9.0", "4.0.0", "4.0.1")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way in which the assignment could have been computed.

    Attributes:
        strategy: Its strategy.
        library: Library and first release, or the broker's release.
        line: The line of `evenkeel assign` that asks it.
        differences: Where its result differs from the actual assignment.
    """

    strategy: str
    library: str
    line: dict[str, Any]
    differences: tuple[Difference, ...]


def candidates(line: Mapping[str, Any], actual: Assignment) -> list[Candidate]:
    """All candidates that can be computed, the nearest to the actual assignment first.

    Args:
        line: The line of `evenkeel assign` of the verdict. Candidates of its own strategy are tried first, then, for
            Kafka's clients, the other strategies of the line's library.
        actual: Who owns what, by topic name.
    """
    strategy = line["strategy"]
    if not isinstance(strategy, str) or strategy.startswith(rocketmq.PREFIX):
        return []
    found: list[Candidate] = []
    seen: set[Any] = set()
    if strategy.startswith(server.PREFIX):
        group = server.read_group(line)
        for release in _BROKERS:
            try:
                result = by_name(assign_on_server(strategy, group, release), group)
            except AssignorError:
                continue
            found.append(Candidate(strategy, release, {**line, "library": release}, differences(result, actual)))
    elif find_strategy(strategy) is not None:
        group_of_client, racks = read_client_group(line), read_racks(line)
        for one in (strategy, *(other for other in known_strategies() if other != strategy)):
            for era in strategy_named(one).eras:
                if era.recompute in seen:
                    continue
                seen.add(era.recompute)
                library = Library(era.library, era.since)
                try:
                    result = assign(one, group_of_client, library, racks)
                except AssignorError:
                    continue
                asked = {**line, "strategy": one, "library": str(library)}
                found.append(Candidate(one, str(library), asked, differences(result, actual)))
    # (A stable sort: of equally near ones those of the group's own strategy come first.)
    return sorted(found, key=lambda candidate: len(candidate.differences))
