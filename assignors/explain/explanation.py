"""Who should own what: one decision's assignment beside what the members say they had, in sentences.

Names and partitions stand in a sentence short, in order, and cut where a list would fill the screen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from assignors.assignment import Assignment, PartitionId, counts
from assignors.exceptions import AssignorError

# Nobody reads more names in one sentence; the rest are counted.
_MOST_NAMES = 8

# As many members as fit on a screen get a sentence each; the last sentence counts them all.
_MOST_MEMBERS = 12

# Foreign names may be long: an id of Kafka's clients has some 60 characters, which fits.
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Explanation:
    """One assignment, and what it changes for the members.

    Attributes:
        rule: What the strategy does, and whose it is, in words.
        partitions: Numbers of the partitions that the strategy was given, by topic; RocketMQ's by "topic@broker".
        had: Partitions that each member says it had, by member; empty where the strategy does not ask.
        assignment: The result, by topic; None where it cannot be computed.
        reason: Why there is no assignment, or what is not sure about it; None for neither.
        unit: What is assigned, as a word: "partition", or "task" of a subtopology in a topic's place.
    """

    rule: str
    partitions: Mapping[str, Collection[int]]
    had: Mapping[str, Collection[PartitionId]] = field(default_factory=dict)
    assignment: Assignment | None = None
    reason: str | None = None
    unit: str = "partition"

    def not_computed(self, error: AssignorError) -> Explanation:
        """The same for an assignment that cannot be computed."""
        return replace(self, reason=str(getattr(error, "reason", error)).rstrip("."))

    def sentences(self, partition: PartitionId | None = None) -> list[str]:
        """The words, in order.

        Args:
            partition: Only this partition; of RocketMQ's queues one after the other, if several are meant.
        """
        told = [self.rule]
        if self.reason is not None:
            told.append(f"{'It cannot be computed: ' if self.assignment is None else ''}{self.reason}.")
        if partition is not None:
            meant = self.meant(partition)
            none = f"There is no {self.unit} {self._called(partition)} in what the strategy was given."
            return [*told, *(map(self._sentence_about, meant) if meant else [none])]
        if self.assignment is None:
            return told
        return [*told, *self._sentences_of_members(self.assignment)]

    def meant(self, partition: PartitionId) -> tuple[PartitionId, ...]:
        """The partitions that a person means by a topic and a number; empty if there are none.

        For RocketMQ these are the queues of this number on every broker, or, with "orders@broker-a" as the topic, that
        one. A partition beyond its topic counts where a member claims it or gets it.
        """
        typed, number = partition
        topics = dict.fromkeys(self.partitions)
        for of_member in (self.assignment or {}).values():
            topics.update(dict.fromkeys(of_member))
        named = [(topic, number) for topic in topics if typed in (topic, topic.partition("@")[0])]
        return tuple(
            one for one in named if number in self.partitions.get(one[0], ()) or self._owners(one) or self._had(one)
        )

    def listed(self) -> str:
        """The partitions that the strategy was given, in words: orders 0-4; payments 0-1."""
        given = [(topic, number) for topic, numbers in self.partitions.items() for number in numbers]
        return self._list(given) or f"no {self.unit}s"

    def _sentences_of_members(self, assignment: Assignment) -> Iterable[str]:
        for member, topics in list(assignment.items())[:_MOST_MEMBERS]:
            had = self.had.get(member, ())
            owned = dict.fromkeys((topic, number) for topic, numbers in topics.items() for number in numbers)
            said = {
                "keeps": [one for one in owned if one in had],
                "gets": [one for one in owned if one not in had],
                "gives up": sorted(one for one in had if one not in owned),
            }
            parts = [f"{verb} {self._list(those)}" for verb, those in said.items() if those]
            yield f"{_name(member)} {', '.join(parts) or 'gets nothing'}."
        sizes = counts(assignment)
        members = _count(len(sizes), "member")
        least, most = min(sizes.values(), default=0), max(sizes.values(), default=0)
        each = f", {least:,} each" if least == most else f", {least:,} to {most:,} each"
        given = {(topic, number) for topics in assignment.values() for topic, of in topics.items() for number in of}
        given_for = "for" if len(given) == sum(sizes.values()) else f"given {sum(sizes.values()):,} times to"
        yield f"In all {_count(len(given), self.unit)} {given_for} {members}{each}."

    def _sentence_about(self, partition: PartitionId) -> str:
        if self.assignment is None:
            return f"Who should own {self._called(partition)} is not known."
        had, owners = self._had(partition), self._owners(partition)
        before = f"{_names(had)} claimed {self._called(partition)}. " if had else ""
        # Where something is not sure, nobody in the result need not be nobody in fact.
        nobody = "Nobody" if self.reason is None else "Nobody that is known"
        return f"{before}{_names(owners) or nobody} should own {self._called(partition)}."

    def _called(self, partition: PartitionId) -> str:
        """One partition: orders 4; a task as Kafka prints it: 0_4."""
        return f"{_name(partition[0])}{self._joint}{partition[1]}"

    def _list(self, listed: Iterable[PartitionId]) -> str:
        """Partitions, topic by topic: orders 0-4, 7; payments 2; tasks in the same way: 0_0-4."""
        by_topic: dict[str, list[int]] = {}
        for topic, number in listed:
            by_topic.setdefault(topic, []).append(number)
        named = [f"{_name(topic)}{self._joint}{_numbers(of_topic)}" for topic, of_topic in by_topic.items()]
        return _cut(named, "; ", "subtopology" if self.unit == "task" else "topic")

    @property
    def _joint(self) -> str:
        return "_" if self.unit == "task" else " "

    def _had(self, partition: PartitionId) -> list[str]:
        return [member for member, claimed in self.had.items() if partition in claimed]

    def _owners(self, partition: PartitionId) -> list[str]:
        topic, number = partition
        return [member for member, topics in (self.assignment or {}).items() if number in topics.get(topic, ())]


def _name(text: str) -> str:
    """A foreign name within a sentence; an empty one is shown as quotes."""
    if not text or text.isspace():
        return repr(text)
    if len(text) <= _LONGEST_NAME:
        return text
    return text[: _LONGEST_NAME - 1] + "…"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _names(listed: Sequence[str]) -> str:
    return _cut([_name(one) for one in listed], ", ", "member")


def _numbers(listed: Iterable[int]) -> str:
    """Numbers with runs joined: 0 to 4 as 0-4."""
    runs: list[list[int]] = []
    for number in sorted(set(listed)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return _cut([str(first) if first == last else f"{first}-{last}" for first, last in runs], ", ", "range")


def _cut(parts: Sequence[str], separator: str, what: str) -> str:
    shown, left = separator.join(parts[:_MOST_NAMES]), len(parts) - _MOST_NAMES
    if left <= 0:
        return shown
    return f"{shown} and {_count(left, f'more {what}')}"
