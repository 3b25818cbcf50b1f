"""Explanations of leaders' strategies: their rules in words, and steps translated from the notes of the computation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from assignors.assignment import PartitionId
from assignors.clients.sticky.claims import claimed_partitions
from assignors.context import Believed, Note
from assignors.explain.sticky_steps import (
    Generations,
    Given,
    GivenUp,
    HeldBack,
    Kept,
    Moved,
    NotBelieved,
    Undone,
)
from assignors.model import Group, PartitionRacks
from assignors.steps import GivenBack, Shares, Step
from assignors.strategy import JAVA, Library, Release
from assignors.words import grouped

_RULES = {
    "range": (
        "range cuts each topic by itself: its partitions, in order, into one block per subscriber; where they do not "
        "divide evenly, the first subscribers get one more."
    ),
    "roundrobin": (
        "roundrobin deals the partitions of all topics, topic by topic, one by one to the members in turn; a member "
        "that does not subscribe to the topic is passed over, and the next topic goes on where the last one ended."
    ),
    "sticky": (
        "sticky lets members keep what they had as far as the balance allows, deals the rest, and moves partitions "
        "only where that makes the group more even."
    ),
    "cooperative-sticky": (
        "cooperative-sticky lets members keep what they had as far as the balance allows and deals the rest; what "
        "another member still reads is not assigned in this generation but in the next."
    ),
}

_RANGE_RACKS: dict[str, Release] = {JAVA: (3, 5), "librdkafka": (2, 2)}


def rule_of(strategy: str, library: Library, *, in_racks: bool) -> str:
    """The rule of a leader's strategy."""
    rule = _RULES.get(strategy, f"{strategy}.")
    since = _RANGE_RACKS.get(library.name)
    if strategy == "range" and in_racks and since is not None and (library.release or since) >= since:
        rule += " Racks change who gets which partitions of a topic, not how many."
    return rule


class CannotExplainError(Exception):
    """The computation does not tell its steps; the argument says why."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a group without computing anything.

    Attributes:
        topics: Topics that each member subscribes to, by member id, in the order of the input.
        counts: Partition count by topic.
        instances: `group.instance.id` by member id; None for a dynamic member.
        racks: Rack by member id; None for a member without one.
        replicas: Racks of the replicas by topic; None when unknown.
        claims: Partitions that each member says it has, or that its previous target lists.
    """

    topics: Mapping[str, frozenset[str]]
    counts: Mapping[str, int]
    instances: Mapping[str, str | None] = field(default_factory=dict)
    racks: Mapping[str, str | None] = field(default_factory=dict)
    replicas: Mapping[str, Sequence[Sequence[str]]] | None = None
    claims: Mapping[str, frozenset[PartitionId]] = field(default_factory=dict)

    def exists(self, partition: PartitionId) -> bool:
        """Whether a topic has this partition."""
        return 0 <= partition[1] < self.counts.get(partition[0], 0)

    def in_rack(self, member: str, partition: PartitionId) -> bool:
        """Whether a partition has a replica in the member's rack."""
        of_topic = (self.replicas or {}).get(partition[0], ())
        return 0 <= partition[1] < len(of_topic) and self.racks.get(member) in set(of_topic[partition[1]])


def facts_of(group: Group, racks: PartitionRacks | None) -> Facts:
    """What is known of a group before its assignment is computed."""
    return Facts(
        topics={member.member_id: frozenset(member.topics) for member in group.members},
        counts=dict(group.partitions_per_topic),
        instances={member.member_id: member.group_instance_id for member in group.members},
        racks={member.member_id: member.rack or None for member in group.members},
        replicas=racks,
        claims={
            member.member_id: frozenset(
                (topic, number) for topic, numbers in claimed_partitions(member) for number in numbers
            )
            for member in group.members
        },
    )


class Changes:
    """Makes the steps that give and move, with the numbers of partitions that the members had just before each.

    Attributes:
        sizes: How many partitions each member has now.
    """

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes

    def given(self, why: str, notes: Iterable[Note]) -> list[Step]:
        """The step of notes that give free partitions for one reason; none if nothing is given."""
        places = tuple(place for note in notes for place in note.places)
        sizes = []
        for _, member in places:
            sizes.append(self.sizes[member])
            self.sizes[member] += 1
        return [Given(why, places, tuple(sizes))] if places else []

    def moved(
        self, note: Note, why: str, instead_of: PartitionId | None = None, *, unsubscribed: bool = False
    ) -> Moved:
        """The step of a note that moves a partition."""
        (moved, target), source = note.places[0], note.source
        before = self.sizes[source], self.sizes[target]
        self.sizes[source] -= 1
        self.sizes[target] += 1
        return Moved(moved, source, target, *before, why, instead_of, unsubscribed)


def sticky_steps(notes: Sequence[object], facts: Facts) -> list[Step]:
    """Steps of `sticky` and `cooperative-sticky`, of any library.

    Raises:
        CannotExplainError: The computation does not tell its steps.
    """
    begins = [at for at, note in enumerate(notes) if isinstance(note, Believed)]
    if not begins:
        return []
    untold = next((note for note in notes if isinstance(note, Note) and note.kind == "untold"), None)
    if untold is not None:
        raise CannotExplainError(untold.why)
    believed: Any = notes[begins[-1]]
    return _Sticky(believed, facts).translated(notes[begins[-1] + 1 :])


class _Sticky:
    """Translates the notes of one computation, following the sizes of the members as it goes."""

    def __init__(self, believed: Believed, facts: Facts) -> None:
        self._believed = believed
        self._indexed = believed.indexed
        self._facts = facts
        self._ids = [member.member_id for member in self._indexed.members]
        self._owned = {
            member: [self._partition(one) for one in ids] for member, ids in zip(self._ids, believed.owned, strict=True)
        }
        self._multi = set(map(self._partition, believed.multi))
        self._changes = Changes(dict.fromkeys(self._ids, 0))
        self._shared = False  # whether the strategy has shares
        self._meant: Note | None = None

    def translated(self, notes: Sequence[object]) -> list[Step]:
        result = list(self._claims())
        moves = 0
        for (kind, why), part in groupby(notes, key=lambda note: (getattr(note, "kind", ""), getattr(note, "why", ""))):
            alike = list(part)
            told = [note for note in alike if isinstance(note, Shares | GivenBack)]
            self._shared |= any(isinstance(note, Shares) for note in told)
            result += told
            named = [self._named(note) for note in alike if isinstance(note, Note)]
            if kind == "given":
                result += self._changes.given(why, named)
                moves = 0
                continue
            for note in named:
                if kind == "kept":
                    result += self._kept(note)
                elif kind == "meant":
                    self._meant = note
                elif kind == "moved":
                    result.append(self._moved(note))
                    moves += 1
                elif kind == "undone":
                    result.append(Undone(moves))
                    moves = 0
                elif kind == "held_back":
                    result.append(self._held_back(note))
        return result

    def _partition(self, partition: int) -> PartitionId:
        row, number = self._indexed.topic_and_number(int(partition))
        return self._indexed.topics[row], number

    def _named(self, note: Note) -> Note:
        places = [(self._partition(partition), self._ids[member]) for partition, member in note.places]
        return replace(note, places=places, source=None if note.source is None else self._ids[note.source])

    def _claims(self) -> Iterable[Step]:
        claims = {
            member: dict.fromkeys((topic, number) for topic, numbers in said.partitions for number in numbers)
            for member, said in zip(self._ids, self._believed.data, strict=True)
        }
        generations = {
            member: -1 if said.generation is None else max(said.generation, -1)
            for member, said in zip(self._ids, self._believed.data, strict=True)
            if claims[member]
        }
        if generations:
            yield Generations(generations)
        believers = {partition: member for member, owned in self._owned.items() for partition in owned}
        times = Counter(partition for mine in claims.values() for partition in mine)
        highest = max([self._indexed.remembered, *generations.values()])

        def why_not(partition: PartitionId, member: str) -> tuple[str, str | None, int]:
            mine, other = generations[member], believers.get(partition)
            if partition[0] not in self._indexed.index:
                return "gone", None, -1
            if not self._facts.exists(partition):
                return "beyond", None, -1
            if self._believed.by == "highest" and mine < highest:
                return "old", None, highest
            if other is not None and other != member and generations.get(other, -1) > mine:
                return "newer", other, generations[other]
            if times[partition] > 1 and (other is None or partition in self._multi):
                return "twice", None, -1
            return "other", None, -1

        for member, owned in self._owned.items():
            believed = set(owned) - self._multi
            reasons: dict[tuple[str, str | None, int], list[PartitionId]] = {}
            for partition in claims[member]:
                if partition not in believed:
                    reasons.setdefault(why_not(partition, member), []).append(partition)
            for (why, other, theirs), listed in reasons.items():
                # What is claimed and not in the facts, such as bytes read in another way, is not said.
                if set(listed) <= self._facts.claims[member]:
                    yield NotBelieved(member, tuple(listed), why, other, generations[member], theirs)

    def _kept(self, note: Note) -> Iterable[Step]:
        by_member = grouped(note.places)
        self._require_told(by_member)
        given_up: list[Step] = []
        for member, owned in self._owned.items():
            kept = by_member.get(member, [])
            self._changes.sizes[member] += len(kept)
            reasons: dict[str, list[PartitionId]] = {}
            for partition in dict.fromkeys(owned):
                if partition not in kept and partition not in self._multi:
                    why = self._why_given_up(member, partition, in_racks=note.why == "rack")
                    reasons.setdefault(why, []).append(partition)
            if kept:
                yield Kept(member, tuple(kept), len(set(owned) - self._multi))
            given_up += [GivenUp(member, tuple(lost), why) for why, lost in reasons.items()]
        yield from given_up

    def _require_told(self, by_member: Mapping[str, Sequence[PartitionId]]) -> None:
        keepers: set[PartitionId] = set()
        for kept in by_member.values():
            if len(set(kept)) < len(kept):
                reason = "a member claims one partition twice, and the leader counts it twice"
                raise CannotExplainError(reason)
            if self._shared and not all(map(self._facts.exists, kept)):
                reason = "a member keeps a partition that does not exist any more, and the leader counts it"
                raise CannotExplainError(reason)
            if self._shared and not keepers.isdisjoint(kept):
                reason = "two members claim the same partition, and the leader lets both keep it"
                raise CannotExplainError(reason)
            keepers.update(kept)

    def _why_given_up(self, member: str, partition: PartitionId, *, in_racks: bool) -> str:
        if partition[0] not in self._facts.topics[member]:
            return "subscription"
        if in_racks and self._facts.racks.get(member) is not None and not self._facts.in_rack(member, partition):
            return "rack"
        return "share"

    def _moved(self, note: Note) -> Step:
        why, instead, (moved, target) = note.why or "balance", None, note.places[0]
        if not note.why and self._meant is not None:
            why = self._meant.why
            if self._meant.places != note.places:
                instead, meant_for = self._meant.places[0]
                # Only the partition that was meant was the previous owner's.
                why = why if meant_for == target else "balance"
        return self._changes.moved(note, why, instead, unsubscribed=moved[0] not in self._facts.topics[target])

    def _held_back(self, note: Note) -> Step:
        claims = self._facts.claims.items()
        return HeldBack(
            tuple(
                (partition, member, tuple(other for other, of in claims if other != member and partition in of))
                for partition, member in note.places
            )
        )
