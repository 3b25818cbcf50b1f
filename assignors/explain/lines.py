"""Explains a line of `evenkeel assign`, and finds for drift the library or strategy that comes nearest.

The steps come from the notes of the computation itself (`assignors.context`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assignors.assignment import Assignment, Difference, differences
from assignors.brokers import assign_on_server
from assignors.context import tracing
from assignors.exceptions import AssignorError
from assignors.explain import brokers, clients
from assignors.explain.clients import CannotExplainError
from assignors.explain.explanation import Explanation
from assignors.explain.rocketmq import explain_rocketmq
from assignors.jsonl.lines import ROCKETMQ_PREFIX, SERVER_PREFIX, AllocateLine, ClientLine, ServerLine, read
from assignors.registry import assign, find_strategy, known_strategies, strategy_named
from assignors.steps import Ordered, steps_in
from assignors.strategy import Era, Library, Strategy, parse_library

_STICKY = ("sticky", "cooperative-sticky")

# The releases at which the brokers' assignors began to compute something else.
_BROKERS = ("3.8.0", "3.9.0", "4.0.0", "4.0.1")


def explain_line(line: object, custom: Mapping[str, Strategy] | None = None) -> Explanation:
    """Explain one line of `evenkeel assign` (docs/tools.md): the assignment that it gives, and why.

    Args:
        line: The decoded object.
        custom: Users' own strategies by name.

    Raises:
        BadLine: The line is not one of `evenkeel assign`.
        BadGroup: Its group contradicts itself.
    """
    strategy = line.get("strategy") if isinstance(line, dict) else None
    if isinstance(strategy, str) and strategy.startswith(ROCKETMQ_PREFIX):
        return explain_rocketmq(read(line, AllocateLine))
    if isinstance(strategy, str) and strategy.startswith(SERVER_PREFIX):
        return _of_server(read(line, ServerLine))
    asked = read(line, ClientLine)
    own = (custom or {}).get(asked.strategy)
    return _of_client(asked) if own is None else _of_custom(own, asked)


def _of_client(line: ClientLine) -> Explanation:
    strategy, library, group, racks = line.strategy, line.leaders_library(), line.group(), line.racks()
    partitions = _ranges(group.partitions_per_topic)
    in_racks = racks is not None and any(member.rack for member in group.members)
    by, rule = str(library), f"{strategy}."
    with tracing() as notes:
        try:
            by = str(strategy_named(strategy).era(library))
            rule = clients.rule_of(strategy, library, in_racks=in_racks)
            assignment = assign(strategy, group, library, racks)
        except AssignorError as error:
            return Explanation(strategy, by, rule, partitions=partitions).not_computed(error)
    own_algorithm = any(assignment.values()) and all(isinstance(note, Ordered) for note in notes)
    if own_algorithm:
        rule = f"{library.name} has its own algorithm under the name {strategy}: docs/assignors.md says what it does."
    blank = Explanation(strategy, by, rule, partitions=partitions)
    if own_algorithm:
        return blank.with_steps(assignment, ())
    if strategy not in _STICKY:
        return blank.with_steps(assignment, steps_in(notes))
    try:
        return blank.with_steps(assignment, clients.sticky_steps(notes, clients.facts_of(group, racks)))
    except CannotExplainError as error:
        return blank.with_steps(assignment, (), str(error))


def _of_custom(strategy: Strategy, line: ClientLine) -> Explanation:
    rule = (
        f"{strategy.name} is a strategy of your own. Evenkeel asks its code for the assignment; what it thinks on the "
        "way, it does not say."
    )
    group = line.group()
    blank = Explanation(strategy.name, "your own code", rule, partitions=_ranges(group.partitions_per_topic))
    try:
        assignment = assign(strategy, group, None, line.racks())
    except AssignorError as error:
        return blank.not_computed(error)
    unsure = None if strategy.deterministic else "it is not deterministic: asked again it may give another result"
    return blank.with_steps(assignment, (), unsure)


def _of_server(line: ServerLine) -> Explanation:
    strategy, given, group = line.strategy, line.library, line.group()
    by = "Kafka's newest broker" if given is None else f"a broker of {given} or a later release that does the same"
    partitions = _ranges({topic_name: topic.partitions for topic_name, topic in group.topics.items()})
    with tracing() as notes:
        try:
            assignment = assign_on_server(strategy, group, given)
        except AssignorError as error:
            return Explanation(strategy, by, f"{strategy}.", partitions=partitions).not_computed(error)
    rule = brokers.rule_of(strategy, None if given is None else parse_library(given).release)
    blank, named = Explanation(strategy, by, rule, partitions=partitions), brokers.by_name(assignment, group)
    try:
        return blank.with_steps(named, brokers.server_steps(notes, brokers.facts_of(group), group))
    except CannotExplainError as error:
        return blank.with_steps(named, (), str(error))


def _ranges(counts_by_topic: Mapping[str, int]) -> dict[str, range]:
    return {topic: range(count) for topic, count in counts_by_topic.items()}


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
    if not isinstance(strategy, str) or strategy.startswith(ROCKETMQ_PREFIX):
        return []
    results = _of_brokers(line) if strategy.startswith(SERVER_PREFIX) else _of_libraries(line)
    found = [
        Candidate(one, library, {**line, "strategy": one, "library": library}, differences(result, actual))
        for one, library, result in results
    ]
    # A stable sort: of equally near ones those of the group's own strategy come first.
    return sorted(found, key=lambda candidate: len(candidate.differences))


def _of_brokers(line: Mapping[str, Any]) -> Iterator[tuple[str, str, Assignment]]:
    group = read(line, ServerLine).group()
    for release in _BROKERS:
        try:
            assignment = assign_on_server(line["strategy"], group, release)
        except AssignorError:
            continue
        yield line["strategy"], release, brokers.by_name(assignment, group)


def _of_libraries(line: Mapping[str, Any]) -> Iterator[tuple[str, str, Assignment]]:
    if find_strategy(line["strategy"]) is None:
        return
    asked = read(line, ClientLine)
    group, racks = asked.group(), asked.racks()
    behaviours: dict[Any, tuple[str, Era]] = {}
    for strategy in dict.fromkeys((asked.strategy, *known_strategies())):
        for era in strategy_named(strategy).eras:
            behaviours.setdefault(era.recompute, (strategy, era))
    for strategy, era in behaviours.values():
        library = Library(era.library, era.since)
        try:
            yield strategy, str(library), assign(strategy, group, library, racks)
        except AssignorError:
            continue
