"""Java's `StickyAssignor` and `CooperativeStickyAssignor`, era by era.

An era begins where `AbstractStickyAssignor` or a subclass began to compute something else. Shared code is in the other
modules of this package. `hold_back` is what `cooperative-sticky` adds: partitions that another member still holds are
not assigned yet (`CooperativeStickyAssignor.adjustAssignment`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from assignors.assignment import Assignment
from assignors.clients.sticky.constrained import Dealt, constrained, constrained_v1
from assignors.clients.sticky.general import general
from assignors.clients.sticky.generations import general_by_generations
from assignors.clients.sticky.indexed_group import Ids, IndexedGroup
from assignors.clients.sticky.prior_owners import (
    believe_highest_generation,
    believe_per_partition,
    first_unlike,
    previous_owners,
)
from assignors.clients.sticky.racks import rack_info
from assignors.clients.sticky.user_data import MemberData, read_generation, read_sticky
from assignors.model import Group, Subscription
from assignors.strategy import PartitionRacks, Recompute, Release
from assignors.trace import HeldBack, note
from assignors.work import spend


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What Java computes from one release on; each flag says since when it holds.

    Attributes:
        since: First release.
        generation_field: The generation in the subscription is used (KIP-792), before the one in user data. `sticky`
            never uses it.
        generation_data: `cooperative-sticky` reads a generation from user data (KAFKA-12984).
        constrained: Equal subscriptions have an algorithm of their own (KAFKA-9987).
        quotas: Equal subscriptions: quotas (KAFKA-12464); different ones: owners as for equal ones (KAFKA-12675).
        per_partition: Owners are found partition by partition (KAFKA-14639).
        aware: Racks count (KIP-881).
        fixed: The claim that lost is forgotten; a balanced assignment is recognised as such (KAFKA-15106).
        sorts_owned: Owned partitions are sorted before they are cut (KAFKA-16277), racks respect quotas (KAFKA-15170).
    """

    since: Release
    constrained: bool = False
    generation_data: bool = False
    quotas: bool = False
    generation_field: bool = False
    per_partition: bool = False
    aware: bool = False
    fixed: bool = False
    sorts_owned: bool = False


_FROM_2_4_0 = Behaviour((2, 4))
_FROM_2_5_1 = replace(_FROM_2_4_0, since=(2, 5, 1), constrained=True)
_FROM_2_8_1 = replace(_FROM_2_5_1, since=(2, 8, 1), generation_data=True)
_FROM_3_0_0 = replace(_FROM_2_8_1, since=(3, 0), quotas=True)
_FROM_3_4_0 = replace(_FROM_3_0_0, since=(3, 4), generation_field=True)
_FROM_3_4_1 = replace(_FROM_3_4_0, since=(3, 4, 1), per_partition=True)
_FROM_3_5_0 = replace(_FROM_3_4_1, since=(3, 5), aware=True)
_FROM_3_5_2 = replace(_FROM_3_5_0, since=(3, 5, 2), fixed=True)
_FROM_3_7_1 = replace(_FROM_3_5_2, since=(3, 7, 1), sorts_owned=True)

BEHAVIOURS = (
    _FROM_2_4_0,
    _FROM_2_5_1,
    _FROM_2_8_1,
    _FROM_3_0_0,
    _FROM_3_4_0,
    _FROM_3_4_1,
    _FROM_3_5_0,
    _FROM_3_5_2,
    _FROM_3_7_1,
)


class Said:
    """The members' claims, read as often as the leader reads them.

    Before 3.0 a leader reads user data twice without rewinding the buffer: the second read finds only the remainder.
    """

    __slots__ = ("_behaviour", "_cooperative", "_members", "_positions")

    def __init__(self, indexed: IndexedGroup, behaviour: Behaviour, *, cooperative: bool) -> None:
        self._members = indexed.members
        self._behaviour = behaviour
        self._cooperative = cooperative
        self._positions = [0] * len(indexed.members)

    def read(self, members: int | None = None) -> list[MemberData]:
        """Read the data of all members, or of the first ones, from the current position of each buffer."""
        result = []
        for position, member in enumerate(self._members[:members]):
            spend(len(member.user_data or b"") // 4)
            said, self._positions[position] = self._of(member, self._positions[position])
            result.append(said)
        return result

    def _of(self, member: Subscription, position: int) -> tuple[MemberData, int]:
        if not self._cooperative:
            return read_sticky(member.user_data, position)
        if self._behaviour.generation_field and member.generation is not None:
            return MemberData(member.owned, member.generation), position
        if not self._behaviour.generation_data:
            return MemberData(member.owned, None), position
        generation, position = read_generation(member.user_data, position)
        return MemberData(member.owned, generation), position


def _dealt(indexed: IndexedGroup, behaviour: Behaviour, partition_racks: PartitionRacks | None, said: Said) -> Dealt:
    unlike = first_unlike(indexed)
    if not behaviour.quotas:
        if not behaviour.constrained:
            return general_by_generations(indexed, said.read(), spreads_identical=True)
        data = said.read(unlike)
        if unlike is not None:
            return general_by_generations(indexed, said.read(), spreads_identical=False)
        # Partitions that two claim are taken from both since the release that reads generations.
        claims = believe_highest_generation(indexed, data, detect_multi=behaviour.generation_data)
        return constrained_v1(indexed, claims)
    data = said.read()
    if behaviour.per_partition:
        fields = [member.generation for member in indexed.members]
        claims = believe_per_partition(indexed, data, fields, forget_claimant=not behaviour.fixed)
    else:
        claims = believe_highest_generation(indexed, data, remembered=indexed.remembered)
    racks = rack_info(indexed, partition_racks) if behaviour.aware else None
    if unlike is None:
        return constrained(indexed, claims, racks, sorts_owned=behaviour.sorts_owned)
    previous = previous_owners(indexed, data, indexed.remembered)
    return general(indexed, claims, previous, racks, gap=1 if behaviour.fixed else 0)


def _lists(
    indexed: IndexedGroup, behaviour: Behaviour, racks: PartitionRacks | None, *, cooperative: bool
) -> list[Ids]:
    dealt = _dealt(indexed, behaviour, racks, Said(indexed, behaviour, cooperative=cooperative))
    return hold_back(indexed, dealt) if cooperative else dealt.lists


def leader(behaviour: Behaviour, *, cooperative: bool) -> Recompute:
    """A leader of this behaviour."""

    def recompute(group: Group, racks: PartitionRacks | None) -> Assignment:
        indexed = IndexedGroup.of_java(group)
        return indexed.assignment(_lists(indexed, behaviour, racks, cooperative=cooperative))

    return recompute


def lists_of_java(
    group: Group, release: Release | None, racks: PartitionRacks | None, *, cooperative: bool
) -> dict[str, list[tuple[str, int]]]:
    """Partitions per member in the order of the lists that Java returns; members in record order.

    Raises:
        CannotTell: As `assign`.
        LeaderWouldFail: As `assign`.
    """
    behaviour = next(b for b in reversed(BEHAVIOURS) if release is None or release >= b.since)
    indexed = IndexedGroup.of_java(group)
    indexed.listing = True
    return indexed.pairs(_lists(indexed, behaviour, racks, cooperative=cooperative))


def hold_back(indexed: IndexedGroup, dealt: Dealt) -> list[Ids]:
    """Take partitions in transfer away from their new owners, which get them in the next generation.

    If the algorithm has not recorded the transfers, they are the partitions that a member got without owning them and
    another one owned without keeping them, by the owned partitions in the members' subscriptions.
    """
    transfers = dealt.transfers
    if transfers is None:
        transfers = _changed_hands(indexed, dealt.lists)
    if not transfers:
        return dealt.lists
    note(lambda: [HeldBack(list(transfers), list(transfers.values()))])
    by_member: dict[int, set[int]] = {}
    for partition, member in transfers.items():
        by_member.setdefault(member, set()).add(partition)
    return [_without(ids, by_member[member]) if member in by_member else ids for member, ids in enumerate(dealt.lists)]


def _changed_hands(indexed: IndexedGroup, lists: list[Ids]) -> dict[int, int]:
    spend(indexed.total)
    added: dict[int, int] = {}
    revoked: set[int] = set()
    for member, (subscription, ids) in enumerate(zip(indexed.members, lists, strict=True)):
        owned = set(indexed.ids_of(subscription.owned).tolist())
        assigned = ids.tolist()
        for partition in assigned:
            if partition not in owned:
                added[partition] = member
        revoked.update(owned.difference(assigned))
    return {partition: member for partition, member in added.items() if partition in revoked}


def _without(ids: Ids, held_back: set[int]) -> Ids:
    """Remove the first occurrence of each (a list may contain a partition twice)."""
    result = []
    for partition in ids.tolist():
        if partition in held_back:
            held_back.remove(partition)
        else:
            result.append(partition)
    return np.array(result, dtype=np.int64)
