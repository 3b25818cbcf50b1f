"""Explanations of leaders' strategies: their rules in words, and steps translated from the notes of the computation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from assignors import trace
from assignors.assignment import PartitionId
from assignors.clients.sticky import claimed_partitions
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
from assignors.model import Group
from assignors.steps import GivenBack, Shares, Step
from assignors.strategy import JAVA, Library, PartitionRacks, Release

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

    def subscribers(self, topic: str) -> list[str]:
        """Members that subscribe to a topic."""
        return [member for member, topics in self.topics.items() if topic in topics]

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


def dealt_steps(notes: Sequence[object], _facts: Facts) -> list[Step]:
    """Steps of `range` and `roundrobin`, of any library, and of the brokers' `range`, which note them as they are."""
    return [note for note in notes if isinstance(note, Step)]


def sticky_steps(notes: Sequence[object], facts: Facts) -> list[Step]:
    """Steps of `sticky` and `cooperative-sticky`, of any library.

    Raises:
        CannotExplainError: The computation does not tell its steps.
    """
    begins = [at for at, note in enumerate(notes) if isinstance(note, trace.Believed)]
    if not begins:
        return []
    untold = next((note for note in notes if isinstance(note, trace.Untold)), None)
    if untold is not None:
        raise CannotExplainError(untold.reason)
    believed: Any = notes[begins[-1]]
    return _Sticky(believed.indexed, facts).translated(notes[begins[-1] :])


class _Sticky:
    """Translates the notes of one computation, following the sizes of the members as it goes."""

    def __init__(self, indexed: Any, facts: Facts) -> None:
        self._indexed = indexed
        self._facts = facts
        self._ids = [member.member_id for member in indexed.members]
        self._sizes = dict.fromkeys(self._ids, 0)
        self._owned: list[list[PartitionId]] = [[] for _ in self._ids]
        self._multi: set[PartitionId] = set()
        self._keepers: set[PartitionId] = set()
        self._moves = 0
        self._shared = False  # whether the strategy has shares
        self._meant: trace.Meant | None = None

    def translated(self, notes: Sequence[object]) -> list[Step]:
        result: list[Step] = []
        for given, part in groupby(notes, key=lambda note: note.why if isinstance(note, trace.Given) else None):
            if given is not None:
                result.append(self._given(given, [note for note in part if isinstance(note, trace.Given)]))
            else:
                for note in part:
                    result += self._step(note)
        return result

    def _step(self, note: object) -> Iterable[Step]:
        match note:
            case trace.Believed():
                return self._believed(note)
            case Shares():
                self._shared = True
                return [note]
            case trace.Kept():
                return self._kept(note)
            case trace.Meant():
                self._meant = note
            case trace.Moved():
                return [self._moved(note)]
            case trace.Undone():
                moves, self._moves = self._moves, 0
                return [Undone(moves)]
            case trace.HeldBack():
                return [self._held_back(note)]
            case GivenBack():
                return [note]
        return ()

    def _partition_id(self, partition: int) -> PartitionId:
        row, number = self._indexed.topic_and_number(int(partition))
        return self._indexed.topics[row], number

    def _places(self, ids: Iterable[int]) -> list[PartitionId]:
        return [self._partition_id(partition) for partition in ids]

    def _believed(self, note: trace.Believed) -> Iterable[Step]:
        self._owned = [self._places(ids) for ids in note.owned]
        self._multi = set(self._places(note.multi))
        claims = {
            member: dict.fromkeys((topic, number) for topic, numbers in said.partitions for number in numbers)
            for member, said in zip(self._ids, note.data, strict=True)
        }
        generations = {
            member: -1 if said.generation is None else max(said.generation, -1)
            for member, said in zip(self._ids, note.data, strict=True)
            if claims[member]
        }
        if generations:
            yield Generations(generations)
        believers = {
            partition: member for member, owned in zip(self._ids, self._owned, strict=True) for partition in owned
        }
        times: dict[PartitionId, int] = {}
        for partition in (partition for mine in claims.values() for partition in mine):
            times[partition] = times.get(partition, 0) + 1
        highest = max([self._indexed.remembered, *generations.values()])

        def why_not(partition: PartitionId, member: str) -> tuple[str, str | None, int]:
            mine, other = generations[member], believers.get(partition)
            if partition[0] not in self._indexed.index:
                return "gone", None, -1
            if not self._facts.exists(partition):
                return "beyond", None, -1
            if note.by == "highest" and mine < highest:
                return "old", None, highest
            if other is not None and other != member and generations.get(other, -1) > mine:
                return "newer", other, generations[other]
            if times[partition] > 1 and (other is None or partition in self._multi):
                return "twice", None, -1
            return "other", None, -1

        for member, owned in zip(self._ids, self._owned, strict=True):
            believed = set(owned) - self._multi
            reasons: dict[tuple[str, str | None, int], list[PartitionId]] = {}
            for partition in claims[member]:
                if partition not in believed:
                    reasons.setdefault(why_not(partition, member), []).append(partition)
            for (why, other, theirs), listed in reasons.items():
                # What is claimed and not in the facts, such as bytes read in another way, is not said.
                if set(listed) <= self._facts.claims[member]:
                    yield NotBelieved(member, tuple(listed), why, other, generations[member], theirs)

    def _kept(self, note: trace.Kept) -> Iterable[Step]:
        given_up: list[Step] = []
        for member, owned, ids in zip(self._ids, self._owned, note.lists, strict=True):
            kept = self._places(ids)
            self._require_told(kept)
            self._keepers.update(kept)
            self._sizes[member] += len(kept)
            reasons: dict[str, list[PartitionId]] = {}
            for partition in dict.fromkeys(owned):
                if partition not in kept and partition not in self._multi:
                    why = self._why_given_up(member, partition, in_racks=note.in_racks)
                    reasons.setdefault(why, []).append(partition)
            if kept:
                yield Kept(member, tuple(kept), len(set(owned) - self._multi))
            given_up += [GivenUp(member, tuple(lost), why) for why, lost in reasons.items()]
        yield from given_up

    def _require_told(self, kept: Sequence[PartitionId]) -> None:
        if len(set(kept)) < len(kept):
            reason = "a member claims one partition twice, and the leader counts it twice"
            raise CannotExplainError(reason)
        if self._shared and not all(map(self._facts.exists, kept)):
            reason = "a member keeps a partition that does not exist any more, and the leader counts it"
            raise CannotExplainError(reason)
        if self._shared and not self._keepers.isdisjoint(kept):
            reason = "two members claim the same partition, and the leader lets both keep it"
            raise CannotExplainError(reason)

    def _why_given_up(self, member: str, partition: PartitionId, *, in_racks: bool) -> str:
        if partition[0] not in self._facts.topics[member]:
            return "subscription"
        if in_racks and self._facts.racks.get(member) is not None and not self._facts.in_rack(member, partition):
            return "rack"
        return "share"

    def _given(self, why: str, part: Iterable[trace.Given]) -> Step:
        given, sizes = [], []
        for note in part:
            for partition, taker in zip(note.partitions, note.takers, strict=True):
                member = self._ids[taker]
                given.append((self._partition_id(partition), member))
                sizes.append(self._sizes[member])
                self._sizes[member] += 1
        self._moves = 0
        return Given(why, tuple(given), tuple(sizes))

    def _moved(self, note: trace.Moved) -> Step:
        moved, source, target = self._partition_id(note.partition), self._ids[note.source], self._ids[note.target]
        meant, why = self._meant, note.why
        instead = None
        if why is None and meant is not None:
            why = meant.why
            if meant.partition != note.partition or meant.target != note.target:
                instead = self._partition_id(meant.partition)
                # Only the partition that was meant was the previous owner's.
                why = why if meant.target == note.target else "balance"
        unsubscribed = moved[0] not in self._facts.topics[target]
        before = self._sizes[source], self._sizes[target]
        self._sizes[source] -= 1
        self._sizes[target] += 1
        self._moves += 1
        return Moved(moved, source, target, *before, why or "balance", instead, unsubscribed)

    def _held_back(self, note: trace.HeldBack) -> Step:
        held = []
        for partition, taker in zip(self._places(note.partitions), note.members, strict=True):
            member = self._ids[taker]
            owners = tuple(other for other, of in self._facts.claims.items() if other != member and partition in of)
            held.append((partition, member, owners))
        return HeldBack(tuple(held))
