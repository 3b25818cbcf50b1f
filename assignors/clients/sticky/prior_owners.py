"""Previous owners at the leader's decision, as each era of Java's `AbstractStickyAssignor` reads them.

Up to 3.4.0 only the members of the highest generation count; from 3.4.1 on each partition's owner is found by
generations (KAFKA-14639). A partition that two members of one generation claim has no owner ("multi", from 2.8.1 on).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from assignors.assignment import PartitionId
from assignors.clients.sticky.indexed_group import Ids, IndexedGroup
from assignors.clients.sticky.user_data import MemberData
from assignors.model import TopicPartitions
from assignors.trace import Believed, HeldBack, note
from assignors.work import spend

DEFAULT_GENERATION = -1

_Compare = Callable[[int, int], int]
"""Compares the later claimant's generation with the earlier one's: above, below or equal to 0."""


@dataclass(slots=True)
class Claims:
    """Owners before the decision.

    Attributes:
        owned: Ids that each member owned, in the order of its claims.
        multi: Ids claimed by several members of one generation.
    """

    owned: list[Ids]
    multi: set[int] = field(default_factory=set)


def first_unlike(indexed: IndexedGroup) -> int | None:
    """Index of the first member whose subscription differs from those before it; None if there is none.

    Java compares all with the first nonempty one (`allSubscriptionsEqual`): empty ones before it do not matter, empty
    ones after it do.
    """
    reference: frozenset[str] = frozenset()
    last: tuple[str, ...] | None = None
    for position, topics in enumerate(indexed.listed):
        if not reference:
            reference = frozenset(topics)
        elif len(topics) != len(reference) or (topics is not last and not reference.issuperset(topics)):
            return position
        last = topics
    return None


def believe_highest_generation(
    indexed: IndexedGroup,
    data: Sequence[MemberData],
    *,
    remembered: int = DEFAULT_GENERATION,
    detect_multi: bool = True,
) -> Claims:
    """Claims of the members of the highest generation, in releases before 3.4.1.

    If no member has a generation, all members without one or with -1 count.

    Args:
        indexed: The group.
        data: Each member's claims.
        remembered: Highest generation of the leader's earlier decisions (from 3.0 on).
        detect_multi: Whether partitions claimed twice are taken from both (from 2.8.1 on).
    """
    highest = _highest(data, remembered)
    claims = Claims(
        indexed.ids_of_each(
            d.partitions if d.generation == highest or (d.generation is None and highest == DEFAULT_GENERATION) else ()
            for d in data
        )
    )
    if detect_multi:
        _resolve(claims, lambda *_: 0, forget_claimant=False)
    note(lambda: [Believed(indexed, claims.owned, data, "highest", frozenset(claims.multi))])
    return claims


def believe_per_partition(
    indexed: IndexedGroup,
    data: Sequence[MemberData],
    subscription_generations: Sequence[int | None],
    *,
    forget_claimant: bool,
) -> Claims:
    """Claims partition by partition, from 3.4.1 on.

    A later claimant's generation is compared with that of the earlier claimant's *subscription*, which for `sticky` in
    old subscriptions is always -1.

    Args:
        indexed: The group.
        data: Each member's claims.
        subscription_generations: Generation field of each member's subscription.
        forget_claimant: The bug of 3.4.1 to 3.5.1: a claim that loses still counts as the last one.
    """
    generations = [DEFAULT_GENERATION if d.generation is None else d.generation for d in data]
    others = [DEFAULT_GENERATION if g is None else g for g in subscription_generations]
    claims = Claims(indexed.ids_of_each(d.partitions for d in data))
    _resolve(claims, lambda mine, other: generations[mine] - others[other], forget_claimant=forget_claimant)
    note(lambda: [Believed(indexed, claims.owned, data, "partition", frozenset(claims.multi))])
    return claims


def previous_owners(indexed: IndexedGroup, data: Sequence[MemberData], remembered: int) -> dict[int, int]:
    """Owner of each partition in the last generation before the highest, if still claimed by a member (>= 3.0)."""
    highest = _highest(data, remembered)
    found: dict[int, tuple[int, int]] = {}
    for position, said in enumerate(data):
        generation = DEFAULT_GENERATION if said.generation is None else said.generation
        if generation < highest and said.partitions:
            for partition in indexed.ids_of(said.partitions).tolist():
                earlier = found.get(partition)
                if earlier is None or generation > earlier[1]:
                    found[partition] = position, generation
    return {partition: position for partition, (position, _) in found.items()}


def _highest(data: Sequence[MemberData], remembered: int) -> int:
    return max(remembered, max((d.generation for d in data if d.generation is not None), default=DEFAULT_GENERATION))


def _resolve(claims: Claims, compare: _Compare, *, forget_claimant: bool) -> None:
    """Settle partitions that are claimed more than once; the others do not change."""
    lengths = [ids.size for ids in claims.owned]
    everything = np.concatenate(claims.owned)
    times = np.bincount(everything, minlength=1)
    if times.max() <= 1:
        return
    kept = np.ones(everything.size, dtype=bool)
    contested = np.flatnonzero(times[everything] > 1)
    member_of = np.repeat(np.arange(len(lengths)), lengths)
    claimant: dict[int, int] = {}
    held: dict[int, dict[int, int]] = {}
    for position, member, partition in zip(
        contested.tolist(), member_of[contested].tolist(), everything[contested].tolist(), strict=True
    ):
        other = claimant.get(partition)
        if other is None:
            claimant[partition] = member
            held[partition] = {member: position}
            continue
        kept[position] = False
        holders = held[partition]
        order = compare(member, other)
        if order >= 0 or forget_claimant:
            claimant[partition] = member
        if order < 0:
            continue
        lost = holders.pop(other, None)
        if lost is not None:
            kept[lost] = False
        if order == 0:
            claims.multi.add(partition)
        elif other != member or lost is not None:
            # A member that claims a partition twice without holding it adds it and takes it from itself.
            kept[position] = True
            holders[member] = position
    stops = np.cumsum(lengths).tolist()
    claims.owned = [
        everything[stop - length : stop][kept[stop - length : stop]]
        for stop, length in zip(stops, lengths, strict=True)
    ]


def claims_by_generation(data: Sequence[MemberData], *, overwriting: int | None) -> dict[PartitionId, dict[int, int]]:
    """Claimants of each partition by generation, existing or not, in the order of the claims.

    Args:
        data: Each member's claims; no generation counts as -1.
        overwriting: The generation in which a later claim replaces an earlier one of the same generation; None for
            claims without a generation.
    """
    found: dict[PartitionId, dict[int, int]] = {}
    for member, said in enumerate(data):
        generation = DEFAULT_GENERATION if said.generation is None else said.generation
        for topic, numbers in said.partitions:
            spend(6 * len(numbers))
            for number in numbers:
                claims = found.setdefault((topic, number), {})
                if said.generation == overwriting or generation not in claims:
                    claims[generation] = member
    return found


def two_newest(
    claims: Mapping[PartitionId, Mapping[int, int]], order: Iterable[PartitionId]
) -> tuple[dict[PartitionId, int], dict[PartitionId, int]]:
    """Owner of each partition in the newest generation, and in the one before where there are two, in this order."""
    newest, before = {}, {}
    for partition in order:
        generations = sorted(claims[partition], reverse=True)
        newest[partition] = claims[partition][generations[0]]
        if len(generations) > 1:
            before[partition] = claims[partition][generations[1]]
    return newest, before


def without_others(
    indexed: IndexedGroup, lists: Iterable[Iterable[int]], claims: Sequence[TopicPartitions]
) -> tuple[list[list[PartitionId]], dict[PartitionId, int]]:
    """Hold back partitions that another member claims; of two claimants the last one counts.

    Args:
        indexed: The group.
        lists: Partitions of each member.
        claims: What each member claims.

    Returns:
        What each member gets now, and the claimants of the partitions that nobody was given.
    """
    owners = {
        (topic, number): member
        for member, claimed in enumerate(claims)
        for topic, numbers in claimed
        for number in numbers
    }
    given: list[list[PartitionId]] = []
    held_back: list[tuple[int, int]] = []
    for member, ids in enumerate(lists):
        given.append([])
        for partition in ids:
            row, number = indexed.topic_and_number(partition)
            place = indexed.topics[row], number
            if owners.pop(place, member) == member:
                given[-1].append(place)
            else:
                held_back.append((partition, member))
    if held_back:
        note(lambda: [HeldBack(*zip(*held_back, strict=True))])
    return given, owners
