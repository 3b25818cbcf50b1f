"""Who should own what and why: one decision's inputs, its assignment and the steps that lead there.

The steps come from the notes of the computation itself (`assignors.trace`), and are replayed over the group's own facts
before anybody sees them (`ledger.py`). An explanation that does not add up says so and tells no steps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assignors.assignment import Assignment, PartitionId, counts
from assignors.brokers import assign_on_server
from assignors.exceptions import AssignorError
from assignors.explain import from_brokers, from_clients
from assignors.explain.from_clients import CannotExplainError
from assignors.explain.ledger import Facts, Ledger, WrongStepError
from assignors.explain.rocketmq import Fails, explain_rocketmq, partition_of, spellings, with_configured
from assignors.explain.rules import rule_of_client, rule_of_other_client, rule_of_server
from assignors.explain.steps import Result, Step
from assignors.explain.words import name, partition_names
from assignors.jsonl import brokers as server
from assignors.jsonl import rocketmq
from assignors.jsonl.assign import read_client_group, read_library, read_racks
from assignors.jsonl.fields import a_text, an_object, optional_text, required
from assignors.model import Group
from assignors.registry import assign, strategy_named
from assignors.strategy import PartitionRacks, Strategy, parse_library
from assignors.trace import Ordered, tracing

_STICKY = ("sticky", "cooperative-sticky")


@dataclass(frozen=True, slots=True)
class Explanation:
    """One assignment, and how it came about.

    Attributes:
        strategy: The strategy's name.
        by: Who computes it: a library with its span of releases, a broker, or a user's own code.
        rule: What the strategy does, in words.
        steps: The steps in order; without any but the result where they cannot be told.
        assignment: The result, by topic name; None where it cannot be computed.
        reason: Why there is no assignment, or why there are no steps; None where there are both.
        partitions: Numbers of the partitions that the strategy was given, by topic as the steps name it.
        places: Topics as the steps name them, by each name that a person may type; without an entry they are the same.
            (RocketMQ numbers queues by topic and broker: "orders" stands for "orders on broker-a" and all others.)
    """

    strategy: str
    by: str
    rule: str
    steps: tuple[Step, ...]
    assignment: Assignment | None
    reason: str | None = None
    partitions: Mapping[str, Collection[int]] = field(default_factory=dict)
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def sentences(self, partition: PartitionId | None = None) -> list[str]:
        """The words, in order.

        Args:
            partition: Only what concerns this partition: the rule, then the steps that name it; of RocketMQ's queues
                one after the other, if several are meant.
        """
        told = [step.text() for step in self.steps] if partition is None else self._told_of(partition)
        return [self.rule, *([self._untold()] if self.reason is not None else []), *told]

    def json(self, partition: PartitionId | None = None) -> dict[str, Any]:
        """The explanation for a pipe: `sentences`, and the steps with their facts."""
        listed: list[tuple[Step, PartitionId | None]] = [(step, None) for step in self.steps]
        if partition is not None:
            listed = [(step, one) for one in self.meant(partition) for step in self._about(one)]
        return {
            "strategy": self.strategy,
            "by": self.by,
            "reason": self.reason,
            "sentences": self.sentences(partition),
            "steps": [{"kind": step.kind, "text": step.text(one), **step.facts()} for step, one in listed],
        }

    def meant(self, partition: PartitionId) -> tuple[PartitionId, ...]:
        """The partitions that a person means by a topic and a number, as the steps name them; empty if there are none.

        For RocketMQ these are the queues of this number on every broker, or, with "orders on broker-a" or
        "orders@broker-a" as the topic, that one. A partition beyond its topic counts where a step names it: a member
        may claim one, and a leader may give it.
        """
        topic, number = partition
        named = [(place, number) for place in self.places.get(topic, (topic,))]
        return tuple(one for one in named if number in self.partitions.get(one[0], ()) or self._names(one))

    def listed(self) -> str:
        """The partitions that the strategy was given, in words: orders 0-4; payments 0-1."""
        given = [(topic, number) for topic, numbers in self.partitions.items() for number in numbers]
        return partition_names(given) or "no partitions"

    def step_of(self, partition: PartitionId) -> int | None:
        """Index of the last step that decided who gets a partition; None where none names it."""
        found = [index for index, step in enumerate(self.steps) if partition in set(step.about())]
        return found[-1] if found else None

    def _untold(self) -> str:
        if self.assignment is None:
            return f"It cannot be computed: {self.reason}."
        return f"The steps are not told: {self.reason}."

    def _told_of(self, partition: PartitionId) -> list[str]:
        told = []
        for one in self.meant(partition):
            told += [step.text(one) for step in self._about(one)]
            told.append(self._owner(one))
        return told or [f"There is no partition {name(partition[0])} {partition[1]} in what the strategy was given."]

    def _about(self, partition: PartitionId) -> list[Step]:
        return [step for step in self.steps if partition in set(step.about())]

    def _owners(self, partition: PartitionId) -> list[str]:
        topic, number = partition
        return [member for member, topics in (self.assignment or {}).items() if number in topics.get(topic, ())]

    def _names(self, partition: PartitionId) -> bool:
        return bool(self._owners(partition)) or self.step_of(partition) is not None

    def _owner(self, partition: PartitionId) -> str:
        owners = self._owners(partition)
        failing = next((step for step in self.steps if isinstance(step, Fails)), None)
        if self.assignment is None:
            return f"Who should own {partition[0]} {partition[1]} is not known."
        if not owners and failing is not None:
            return f"Who owns {partition[0]} {partition[1]} in the end is not known. {failing.text()}"
        if not owners:
            return f"In the end nobody owns {partition[0]} {partition[1]}."
        return f"In the end {', '.join(owners)} should own {partition[0]} {partition[1]}."


def explain_line(line: object, custom: Mapping[str, Strategy] | None = None) -> Explanation:
    """Explain one line of `evenkeel assign` (docs/tools.md): the assignment that it gives, and why.

    Args:
        line: The decoded object.
        custom: Users' own strategies by name.

    Raises:
        BadLine: The line is not one of `evenkeel assign`.
        BadGroup: Its group contradicts itself.
    """
    question = an_object(line, "the line")
    strategy = a_text(required(question, "strategy"), "strategy")
    if strategy.startswith(rocketmq.PREFIX):
        return _of_rocketmq(question)
    if strategy.startswith(server.PREFIX):
        return _of_server(strategy, question)
    return _of_client(strategy, question, custom or {})


def _of_client(strategy: str, question: Mapping[str, Any], custom: Mapping[str, Strategy]) -> Explanation:
    library, group, racks = read_library(question), read_client_group(question), read_racks(question)
    own = custom.get(strategy)
    if own is not None:
        return _of_custom(own, group, racks)
    blank = Explanation(
        strategy, str(library), f"{strategy}.", (), None, partitions=_ranges(group.partitions_per_topic)
    )
    try:
        blank = replace(blank, by=str(strategy_named(strategy).era(library)))
    except AssignorError as error:
        return replace(blank, reason=_reason(error))
    in_racks = racks is not None and any(member.rack for member in group.members)
    blank = replace(blank, rule=rule_of_client(strategy, library, in_racks=in_racks))
    with tracing() as notes:
        try:
            assignment = assign(strategy, group, library, racks)
        except AssignorError as error:
            return replace(blank, reason=_reason(error))
    facts = from_clients.facts_of(group, racks)
    if any(assignment.values()) and all(isinstance(note, Ordered) for note in notes):
        return _with_result(replace(blank, rule=rule_of_other_client(strategy, library), assignment=assignment), [])
    translate = from_clients.sticky_steps if strategy in _STICKY else from_clients.dealt_steps
    return _checked(replace(blank, assignment=assignment), facts, lambda: translate(notes, facts))


def _of_custom(strategy: Strategy, group: Group, racks: PartitionRacks | None) -> Explanation:
    rule = (
        f"{strategy.name} is a strategy of your own. Evenkeel asks its code for the assignment; what it thinks on the "
        "way, it does not say."
    )
    blank = Explanation(strategy.name, "your own code", rule, (), None, partitions=_ranges(group.partitions_per_topic))
    try:
        assignment = assign(strategy, group, None, racks)
    except AssignorError as error:
        return replace(blank, reason=_reason(error))
    if not strategy.deterministic:
        blank = replace(blank, reason="it is not deterministic: asked again it may give another result")
    return _with_result(replace(blank, assignment=assignment), [])


def _of_server(strategy: str, question: Mapping[str, Any]) -> Explanation:
    given = optional_text(question.get("library"), "library")
    release = None if given is None else parse_library(given).release
    group = server.read_group(question)
    by = "Kafka's newest broker" if given is None else f"a broker of {given} or a later release that does the same"
    partitions = _ranges({topic_name: topic.partitions for topic_name, topic in group.topics.items()})
    blank = Explanation(strategy, by, "", (), None, partitions=partitions)
    with tracing() as notes:
        try:
            assignment = assign_on_server(strategy, group, given)
        except AssignorError as error:
            return replace(blank, rule=f"{strategy}.", reason=_reason(error))
    facts = from_brokers.facts_of(group)
    blank = replace(blank, rule=rule_of_server(strategy, release), assignment=from_brokers.by_name(assignment, group))
    return _checked(blank, facts, lambda: from_brokers.server_steps(notes, facts, group))


def _of_rocketmq(question: dict[str, Any]) -> Explanation:
    strategy = rocketmq.read_strategy(a_text(required(question, "strategy"), "strategy"), question.get("options"))
    queues = rocketmq.read_queues(required(question, "queues"), "queues")
    clients, presort = rocketmq.read_clients(question), rocketmq.read_presort(question)
    told = explain_rocketmq(strategy, queues, clients, presort=presort)
    partitions: dict[str, set[int]] = {}
    places: dict[str, dict[str, None]] = {}
    for queue in with_configured(strategy, queues):
        place, number = partition_of(queue)
        partitions.setdefault(place, set()).add(number)
        for spelling in spellings(queue.topic, queue.broker):
            places.setdefault(spelling, {})[place] = None
    by_spelling = {spelling: tuple(of) for spelling, of in places.items()}
    by = "every client for itself"
    return Explanation(rocketmq.PREFIX + strategy.name, by, *told, partitions=partitions, places=by_spelling)


def _ranges(counts_by_topic: Mapping[str, int]) -> dict[str, range]:
    return {topic: range(count) for topic, count in counts_by_topic.items()}


def _checked(blank: Explanation, facts: Facts, translate: Any) -> Explanation:
    """The explanation with its steps if they add up to the assignment, otherwise with the reason why there are none."""
    try:
        listed: Sequence[Step] = translate()
        verify(listed, facts, blank.assignment or {})
    except CannotExplainError as error:
        return _with_result(replace(blank, reason=str(error)), [])
    except WrongStepError:
        reason = (
            "they do not add up to the assignment, which is a mistake in Evenkeel: please report it with the inputs"
        )
        return _with_result(replace(blank, reason=reason), [])
    return _with_result(blank, listed)


def verify(listed: Iterable[Step], facts: Facts, assignment: Assignment) -> Ledger:
    """Replay steps and require that they lead to the assignment.

    Raises:
        WrongStepError: They contradict the group or the assignment.
    """
    ledger = Ledger(facts)
    for step in listed:
        step.enter(ledger)
    ledger.within_shares()
    ledger.require_equal(assignment)
    return ledger


def _with_result(blank: Explanation, listed: Sequence[Step]) -> Explanation:
    sizes = counts(blank.assignment or {})
    return replace(blank, steps=(*listed, Result(sizes, sum(sizes.values()))))


def _reason(error: AssignorError) -> str:
    return str(getattr(error, "reason", error)).rstrip(".")
