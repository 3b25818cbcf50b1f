"""Who should own what and why: one decision's assignment and the steps that lead there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assignors.assignment import Assignment, PartitionId, counts
from assignors.exceptions import AssignorError
from assignors.steps import Result, Step
from assignors.words import name, partition_names


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
    steps: tuple[Step, ...] = ()
    assignment: Assignment | None = None
    reason: str | None = None
    partitions: Mapping[str, Collection[int]] = field(default_factory=dict)
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def with_steps(self, assignment: Assignment, steps: Sequence[Step], reason: str | None = None) -> Explanation:
        """The same with an assignment, the steps that lead to it, and why there are none."""
        sizes = counts(assignment)
        steps = (*steps, Result(sizes, sum(sizes.values())))
        return replace(self, assignment=assignment, steps=steps, reason=reason)

    def not_computed(self, error: AssignorError) -> Explanation:
        """The same for an assignment that cannot be computed."""
        return replace(self, reason=str(getattr(error, "reason", error)).rstrip("."))

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
            "steps": [{"kind": step.kind, "text": _said(step, one), **step.facts()} for step, one in listed],
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
            told += [step.text_of(one) for step in self._about(one)]
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
        failing = next((step for step in self.steps if step.kind == "fails"), None)
        if self.assignment is None:
            return f"Who should own {partition[0]} {partition[1]} is not known."
        if not owners and failing is not None:
            return f"Who owns {partition[0]} {partition[1]} in the end is not known. {failing.text()}"
        if not owners:
            return f"In the end nobody owns {partition[0]} {partition[1]}."
        return f"In the end {', '.join(owners)} should own {partition[0]} {partition[1]}."


def _said(step: Step, partition: PartitionId | None) -> str:
    return step.text() if partition is None else step.text_of(partition)
