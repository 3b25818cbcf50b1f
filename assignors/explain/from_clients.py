"""Steps of leaders' strategies, translated from the notes of the computation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from assignors import trace
from assignors.assignment import PartitionId
from assignors.clients.sticky import claimed_partitions
from assignors.explain import steps
from assignors.explain.ledger import Facts
from assignors.model import Group
from assignors.strategy import PartitionRacks

Size = Callable[[str], int]


class CannotExplainError(Exception):
    """The computation does not tell its steps; the argument says why."""


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


def dealt_steps(notes: Sequence[object], facts: Facts) -> list[steps.Step]:
    """Steps of `range` and `roundrobin`, of any library, and of the brokers' `range`."""
    result: list[steps.Step] = []
    orders = [note for note in notes if isinstance(note, trace.Ordered)]
    everyone = set(facts.topics)
    # kafka-python's range sorts the subscribers of each topic separately, so each topic shows its own order.
    alone = any(order.rule == "kafka-python" for order in orders) and not any(
        isinstance(note, trace.Turns) for note in notes
    )
    if orders and not alone:
        left_out = tuple(sorted(everyone - set(orders[0].members)))
        result.append(steps.Ordered(orders[0].rule, tuple(orders[0].members), left_out))
    for note in notes:
        if isinstance(note, trace.Cut):
            subscribers = set(facts.subscribers(note.topics[0]))
            blocks = tuple((member, min(block), max(block)) for member, block in note.blocks if len(block))
            left_out = tuple(sorted(subscribers - set(note.takers)))
            result.append(
                steps.CutIntoBlocks(tuple(note.topics), note.partitions, tuple(note.takers), blocks, left_out)
            )
        elif isinstance(note, trace.CutInRacks):
            result.append(
                steps.DealtInRacks(
                    tuple(note.topics), note.partitions, tuple(note.takers), tuple(note.in_racks), tuple(note.rest)
                )
            )
        elif isinstance(note, trace.Turns):
            parts = [tuple(part) for _, part in groupby(note.dealt, key=lambda one: one[0])]
            if len(parts) > len({part[0][0] for part in parts}):
                result.append(steps.DealtInTurn(tuple(note.dealt), mixed=True))
            else:
                mixed = any([n for _, n, _ in part] != sorted(n for _, n, _ in part) for part in parts)
                result += [steps.DealtInTurn(part, mixed=mixed) for part in parts]
    return result


def sticky_steps(notes: Sequence[object], facts: Facts) -> list[steps.Step]:
    """Steps of `sticky` and `cooperative-sticky`, of any library.

    Raises:
        CannotExplainError: The computation does not tell its steps.
    """
    begins = [at for at, note in enumerate(notes) if isinstance(note, trace.Began)]
    if not begins:
        return []
    untold = next((note for note in notes if isinstance(note, trace.Untold)), None)
    if untold is not None:
        raise CannotExplainError(untold.reason)
    began: Any = notes[begins[-1]]
    return _Sticky(began.indexed, facts).translated(notes[begins[-1] :])


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

    def translated(self, notes: Sequence[object]) -> list[steps.Step]:
        result: list[steps.Step] = []
        pending: list[trace.Given] = []
        for note in notes:
            if isinstance(note, trace.Given):
                if pending and pending[-1].why != note.why:
                    result.append(self._given(pending))
                    pending = []
                pending.append(note)
                continue
            if pending:
                result.append(self._given(pending))
                pending = []
            result += self._step(note)
        if pending:
            result.append(self._given(pending))
        return result

    def _step(self, note: object) -> Iterable[steps.Step]:
        match note:
            case trace.Believed():
                return self._believed(note)
            case trace.Shares():
                self._shared = True
                wanted = frozenset[str]().union(*self._facts.topics.values())
                unlike = tuple(member for member in self._ids if self._facts.topics[member] != wanted)
                return [steps.Shares(note.partitions, note.members, unlike)]
            case trace.Kept():
                return self._kept(note)
            case trace.Meant():
                self._meant = note
            case trace.Moved():
                return [self._moved(note)]
            case trace.Undone():
                moves, self._moves = self._moves, 0
                return [steps.Undone(moves)]
            case trace.HeldBack():
                return [self._held_back(note)]
            case trace.GivenBack() if note.places:
                return [steps.GivenBack(tuple(((topic, n), member) for member, topic, n in note.places))]
        return ()

    def _partition_id(self, partition: int) -> PartitionId:
        row, number = self._indexed.topic_and_number(int(partition))
        return self._indexed.topics[row], number

    def _places(self, ids: Iterable[int]) -> list[PartitionId]:
        return [self._partition_id(partition) for partition in ids]

    def _believed(self, note: trace.Believed) -> Iterable[steps.Step]:
        self._owned = [self._places(ids) for ids in note.owned]
        self._multi = set(self._places(note.multi))
        claimed = [[(topic, number) for topic, numbers in said.partitions for number in numbers] for said in note.data]
        generations = {
            member: -1 if said.generation is None else max(said.generation, -1)
            for member, said, mine in zip(self._ids, note.data, claimed, strict=True)
            if mine
        }
        if generations:
            yield steps.Generations(generations)
        believers: dict[PartitionId, str] = {}
        for member, owned in zip(self._ids, self._owned, strict=True):
            believers.update(dict.fromkeys(owned, member))
        highest = max([self._indexed.remembered, *generations.values()])
        times: dict[PartitionId, int] = {}
        for mine in claimed:
            for partition_id in set(mine):
                times[partition_id] = times.get(partition_id, 0) + 1
        for member, mine, owned in zip(self._ids, claimed, self._owned, strict=True):
            reasons: dict[tuple[str, str | None, int], list[PartitionId]] = {}
            for partition_id in dict.fromkeys(mine):
                if partition_id not in set(owned) or partition_id in self._multi:
                    reason = self._why_not(partition_id, member, note.by, believers, generations, highest, times)
                    reasons.setdefault(reason, []).append(partition_id)
            for (why, other, theirs), listed in reasons.items():
                # (What is claimed and not in the facts, such as bytes read in another way, is not said.)
                if set(listed) <= self._facts.claims[member]:
                    yield steps.NotBelieved(member, tuple(listed), why, other, generations[member], theirs)

    def _why_not(
        self,
        partition_id: PartitionId,
        member: str,
        by: str,
        believers: dict[PartitionId, str],
        generations: dict[str, int],
        highest: int,
        times: dict[PartitionId, int],
    ) -> tuple[str, str | None, int]:
        if partition_id[0] not in self._indexed.index:
            return "gone", None, -1
        if not self._facts.exists(partition_id):
            return "beyond", None, -1
        mine = generations[member]
        if by == "highest" and mine < highest:
            return "old", None, highest
        other = believers.get(partition_id)
        if other is not None and other != member and generations.get(other, -1) > mine:
            return "newer", other, generations[other]
        if times[partition_id] > 1 and (other is None or partition_id in self._multi):
            return "twice", None, -1
        return "other", None, -1

    def _kept(self, note: trace.Kept) -> Iterable[steps.Step]:
        given_up: list[steps.Step] = []
        for member, owned, ids in zip(self._ids, self._owned, note.lists, strict=True):
            kept = self._places(ids)
            if len(set(kept)) < len(kept):
                reason = "a member claims one partition twice, and the leader counts it twice"
                raise CannotExplainError(reason)
            if self._shared and not all(map(self._facts.exists, kept)):
                reason = "a member keeps a partition that does not exist any more, and the leader counts it"
                raise CannotExplainError(reason)
            for partition_id in kept:
                if self._shared and partition_id in self._keepers:
                    reason = "two members claim the same partition, and the leader lets both keep it"
                    raise CannotExplainError(reason)
                self._keepers.add(partition_id)
                self._sizes[member] += 1
            stays = set(kept)
            reasons: dict[str, list[PartitionId]] = {}
            for partition_id in dict.fromkeys(owned):
                if partition_id not in stays and partition_id not in self._multi:
                    reasons.setdefault(self._why_given_up(member, partition_id, in_racks=note.in_racks), []).append(
                        partition_id
                    )
            had = len(set(owned) - self._multi)
            if kept:
                yield steps.Kept(member, tuple(kept), had)
            given_up += [steps.GivenUp(member, tuple(lost), why) for why, lost in reasons.items()]
        yield from given_up

    def _why_given_up(self, member: str, partition_id: PartitionId, *, in_racks: bool) -> str:
        if partition_id[0] not in self._facts.topics[member]:
            return "subscription"
        if in_racks and self._facts.racks.get(member) is not None and not self._facts.in_rack(member, partition_id):
            return "rack"
        return "share"

    def _given(self, pending: list[trace.Given]) -> steps.Step:
        why = pending[0].why
        given, sizes = [], []
        for note in pending:
            for partition, taker in zip(note.partitions, note.takers, strict=True):
                partition_id, member = self._partition_id(partition), self._ids[taker]
                given.append((partition_id, member))
                sizes.append(self._sizes[member])
                self._sizes[member] += 1
        self._moves = 0
        return steps.Given(why, tuple(given), tuple(sizes))

    def _moved(self, note: trace.Moved) -> steps.Step:
        moved, source, target = self._partition_id(note.partition), self._ids[note.source], self._ids[note.target]
        meant, why = self._meant, note.why
        instead = None
        if why is None and meant is not None:
            why = meant.why
            if meant.partition != note.partition or meant.target != note.target:
                instead = self._partition_id(meant.partition)
                # (Only the partition that was meant was the previous owner's.)
                why = why if meant.target == note.target else "balance"
        unsubscribed = moved[0] not in self._facts.topics[target]
        before = self._sizes[source], self._sizes[target]
        step = steps.Moved(moved, source, target, *before, why or "balance", instead, unsubscribed)
        self._sizes[source] -= 1
        self._sizes[target] += 1
        self._moves += 1
        return step

    def _held_back(self, note: trace.HeldBack) -> steps.Step:
        held = []
        for partition, taker in zip(note.partitions, note.members, strict=True):
            partition_id, member = self._partition_id(partition), self._ids[taker]
            owners = tuple(one for one in self._facts.claimants(partition_id) if one != member)
            held.append((partition_id, member, owners))
        return steps.HeldBack(tuple(held))
