"""The steps of an explanation, and those that strategies note as they are: all of those that deal everything afresh.

A step is facts, and never carries a sentence of its own: `text` builds it from the fields, `text_of` says only what
concerns one partition. The tests check the same fields against the group and replay them to the assignment
(`tests/assignors/explain/audit.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from assignors.assignment import PartitionId, Partitions
from assignors.words import (
    MOST_LINES,
    count,
    grouped,
    lines,
    name,
    names,
    numbers,
    one,
    partition_lines,
    shares,
)


class Step(ABC):
    """One step of a decision.

    Attributes:
        kind: Its name in JSON.
    """

    kind: ClassVar[str]

    @abstractmethod
    def text(self) -> str:
        """The sentence."""

    def text_of(self, partition: PartitionId) -> str:  # noqa: ARG002 - the whole sentence concerns each partition
        """What the step says of one partition in `about`."""
        return self.text()

    def about(self) -> Iterable[PartitionId]:
        """Partitions that the step names; none for a step about the whole group."""
        return ()

    def facts(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]  # each is a dataclass


def steps_in(notes: Iterable[object]) -> list[Step]:
    """Those notes that are steps: strategies that deal everything afresh note them as they are."""
    return [note for note in notes if isinstance(note, Step)]


# The rules of order, in words.
ORDERS: Mapping[str, str] = {
    "java": "static members by group.instance.id first, then the others by member id, as Java compares strings",
    "java_member_id": "by member id, as Java compares strings; this release does not know static members",
    "franz-go": "static members by group.instance.id first, then the others by member id, byte by byte",
    "member_id": "by member id, byte by byte, static or not",
    "record": "as the coordinator listed them to the leader",
    "librdkafka": "two static members by group.instance.id, any other two by member id, byte by byte",
    "kafka-python": "static members by group.instance.id first, then the others by member id",
}


def _left_out(members: Sequence[str]) -> str:
    if not members:
        return ""
    return (
        f" {names(members)} {'is' if len(members) == 1 else 'are'} left out: this library keeps only the last unbroken "
        "run of static members and of others in the order of the group's record."
    )


@dataclass(frozen=True, slots=True)
class Ordered(Step):
    """The order in which the leader takes the members.

    Attributes:
        rule: One of `ORDERS`.
        members: Member ids in that order.
        left_out: Members that the leader forgets (kafka-python).
    """

    kind = "order"
    rule: str
    members: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    def text(self) -> str:
        order = f"The members are taken in this order: {names(self.members)} ({ORDERS[self.rule]})."
        return order + _left_out(self.left_out)


@dataclass(frozen=True, slots=True)
class _OfTopics(Step):
    """Topics that are dealt alike.

    Attributes:
        topics: The topics.
        partitions: Partition count of each.
        takers: Subscribers in order; one that lists a topic twice may occur twice.
    """

    topics: tuple[str, ...]
    partitions: int
    takers: tuple[str, ...]

    def about(self) -> Iterable[PartitionId]:
        return ((topic, number) for topic in self.topics for number in range(self.partitions))


@dataclass(frozen=True, slots=True)
class CutIntoBlocks(_OfTopics):
    """Topics cut into one block per subscriber.

    Attributes:
        blocks: Block of each member that gets any, as (member, first, last).
        left_out: Subscribers that the leader forgets.
    """

    kind = "blocks"
    blocks: tuple[tuple[str, int, int], ...]
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        topics: Iterable[str],
        partitions: int,
        takers: Iterable[str],
        blocks: Iterable[tuple[str, Partitions]],
        left_out: Iterable[str] = (),
    ) -> Self:
        """The step from the blocks that members get."""
        bounds = tuple((member, min(block), max(block)) for member, block in blocks if len(block))
        return cls(tuple(topics), partitions, tuple(takers), bounds, tuple(left_out))

    def text(self) -> str:
        times, held = Counter(self.takers), self._held()
        blocks = lines({member: numbers(block) for member, block in held.items()})
        verb = "has" if len(self.topics) == 1 else "each have"
        said = f"{names(self.topics)} {verb} {self._each()} In order: {blocks}."
        twice = [member for member in times if times[member] > 1]
        if twice:
            verbs = ("lists", "counts") if len(twice) == 1 else ("list", "count")
            said += f" {names(twice)} {verbs[0]} the topic more than once and {verbs[1]} as often."
        nothing = [member for member in times if member not in held]
        if nothing:
            said += f" {names(nothing)} {'gets' if len(nothing) == 1 else 'get'} nothing of it."
        lost = set(range(self.partitions)).difference(*held.values())
        if lost:
            said += (
                f" Partitions {numbers(lost)} stay without an owner: in this library a member's later block replaces "
                "its earlier one."
            )
        return said + _left_out(self.left_out)

    def text_of(self, partition: PartitionId) -> str:
        for member, block in self._held().items():
            if partition[1] in block:
                return (
                    f"{name(partition[0])} has {self._each()} {name(member)} is number {self.takers.index(member) + 1} "
                    f"in the order and gets {numbers(block)}."
                )
        return f"{one(partition)} is in no member's block."

    def _held(self) -> dict[str, range]:
        return {member: range(first, last + 1) for member, first, last in self.blocks}

    def _each(self) -> str:
        takers = count(len(self.takers), "subscriber" if len(set(self.takers)) == len(self.takers) else "share")
        quotas = shares(*divmod(self.partitions, len(self.takers)))
        return f"{count(self.partitions, 'partition')} and {takers}: {quotas}."


@dataclass(frozen=True, slots=True)
class DealtInRacks(_OfTopics):
    """Topics of which members first get partitions in their racks, then the rest, within equal shares.

    Attributes:
        in_racks: (member, partition) given by racks, in order.
        rest: The same without regard to racks.
    """

    kind = "blocks_in_racks"
    in_racks: tuple[tuple[str, int], ...]
    rest: tuple[tuple[str, int], ...]

    def text(self) -> str:
        quota, larger = divmod(self.partitions, len(self.takers))
        said = (
            f"{names(self.topics)} ({count(self.partitions, 'partition')}{' each' if len(self.topics) > 1 else ''}, "
            f"{count(len(self.takers), 'subscriber')}): {quota:,} each"
            f"{f', and one more for up to {larger:,} of them' if larger else ''}."
        )
        for pairs, how in (
            (self.in_racks, "By racks first"),
            (self.rest, "The rest to those with room, in order, whatever their racks"),
        ):
            if pairs:
                given = grouped((("", number), member) for member, number in pairs)
                said += f" {how}: {lines({member: numbers(n for _, n in mine) for member, mine in given.items()})}."
        return said

    def text_of(self, partition: PartitionId) -> str:
        for pairs, why in (
            (self.in_racks, "it is the first in the order with room that may have it by its rack"),
            (self.rest, "it had room left, whatever its rack"),
        ):
            for member, number in pairs:
                if number == partition[1]:
                    return f"{one(partition)} goes to {name(member)}: {why}."
        return f"{one(partition)} goes to nobody."


@dataclass(frozen=True, slots=True)
class DealtInTurn(Step):
    """Partitions of one topic dealt one by one to the members in turn, passing over those that do not subscribe.

    Attributes:
        dealt: (topic, partition, member) in order; of one topic, or of all where they are mixed (sarama).
        mixed: Whether the partitions of all topics are in one order of their own.
    """

    kind = "turns"
    dealt: tuple[tuple[str, int, str], ...]
    mixed: bool = False

    def text(self) -> str:
        what = "All partitions, sorted as texts" if self.mixed else name(self.dealt[0][0])
        given = partition_lines(((topic, number), member) for topic, number, member in self.dealt)
        return f"{what}: the turn is at {name(self.dealt[0][2])}. {given}."

    def text_of(self, partition: PartitionId) -> str:
        at = next(i for i, (topic, number, _) in enumerate(self.dealt) if (topic, number) == partition)
        turn = "the turn is at it" if not at else f"the turn comes to it after {name(self.dealt[at - 1][2])}"
        return f"{one(partition)} goes to {name(self.dealt[at][2])}: {turn}."

    def about(self) -> Iterable[PartitionId]:
        return ((topic, number) for topic, number, _ in self.dealt)


@dataclass(frozen=True, slots=True)
class Shares(Step):
    """How many partitions each member may have.

    Attributes:
        partitions: Partitions of all topics together.
        members: Number of members.
        unlike: Members that subscribe to less and are counted all the same.
    """

    kind = "shares"
    partitions: int
    members: int
    unlike: tuple[str, ...] = ()

    def text(self) -> str:
        low, larger = divmod(self.partitions, self.members)
        more = f", and {count(larger, 'member')} one more" if larger else ""
        said = (
            f"All members subscribe to the same topics: {count(self.partitions, 'partition')} for "
            f"{count(self.members, 'member')} make {low:,} each{more}."
        )
        if self.unlike:
            verbs = ("subscribes", "is") if len(self.unlike) == 1 else ("subscribe", "are")
            said += (
                f" {names(self.unlike)} {verbs[0]} to less and {verbs[1]} counted too: the leader only compares the "
                "first subscription that is not empty with the later ones, and their lengths."
            )
        return said


_GIVEN_BACK = "Partitions that nobody was given stay with the members that say they have them."


@dataclass(frozen=True, slots=True)
class GivenBack(Step):
    """Unassigned partitions that return to the members that say they have them, existing or not (librdkafka).

    Attributes:
        given: (partition, member).
    """

    kind = "given_back"
    given: tuple[tuple[PartitionId, str], ...]

    def text(self) -> str:
        return f"{_GIVEN_BACK} {partition_lines(self.given)}."

    def text_of(self, partition: PartitionId) -> str:
        return f"{_GIVEN_BACK} {partition_lines(pair for pair in self.given if pair[0] == partition)}."

    def about(self) -> Iterable[PartitionId]:
        return (partition for partition, _ in self.given)


@dataclass(frozen=True, slots=True)
class Result(Step):
    """How many partitions each member has in the end.

    Attributes:
        sizes: By member id.
        assigned: All of them together.
    """

    kind = "result"
    sizes: Mapping[str, int]
    assigned: int

    def text(self) -> str:
        if not self.sizes:
            return "The group has no members, so nothing is assigned."
        listed = sorted(self.sizes.items(), key=lambda pair: (-pair[1], pair[0]))
        shown = ", ".join(f"{name(member)} {size:,}" for member, size in listed[:MOST_LINES])
        left = listed[MOST_LINES:]
        if left:
            least, most = left[-1][1], left[0][1]
            sizes = f"{least:,}" if least == most else f"{least:,} to {most:,}"
            shown += f" and {count(len(left), 'more member')} with {sizes}"
        verb = "is" if self.assigned == 1 else "are"
        return f"In the end {count(self.assigned, 'partition')} {verb} assigned: {shown}."
