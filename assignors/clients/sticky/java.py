"""Java's `StickyAssignor` and `CooperativeStickyAssignor`, era by era.

An era begins where `AbstractStickyAssignor` or a subclass began to compute something else; each function here names its
first release. Shared code is in the other modules of this package. `hold_back` is what `cooperative-sticky` adds:
partitions that another member still holds are not assigned yet (`CooperativeStickyAssignor.adjustAssignment`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from assignors.assignment import Assignment
from assignors.clients.sticky.constrained import Dealt, constrained, constrained_v1
from assignors.clients.sticky.general import general
from assignors.clients.sticky.generations import general_by_generations
from assignors.clients.sticky.indexed_group import Ids, IndexedGroup
from assignors.clients.sticky.prior_owners import (
    Claims,
    believe_highest_generation,
    believe_per_partition,
    first_unlike,
    previous_owners,
)
from assignors.clients.sticky.racks import rack_info
from assignors.clients.sticky.user_data import MemberData, read_generation, read_sticky
from assignors.exceptions import CannotTell
from assignors.model import Group, Subscription
from assignors.strategy import JAVA, Era, PartitionRacks, Release
from assignors.trace import HeldBack, notes
from assignors.work import spend


@dataclass(frozen=True, slots=True)
class _Behaviour:
    """The behaviour of one era.

    Attributes:
        since: First release.
        deal: The algorithm.
        generation_field: Whether the generation in the subscription is used (KIP-792), before the one in user data.
        generation_data: Whether `cooperative-sticky` reads a generation from user data (KAFKA-12984).
    """

    since: Release
    deal: Callable[[IndexedGroup, Said, PartitionRacks | None], Dealt]
    generation_field: bool = False
    generation_data: bool = True


class Said:
    """The members' claims, read as often as the leader reads them.

    Before 3.0 a leader reads user data twice without rewinding the buffer: the second read finds only the remainder.
    """

    __slots__ = ("_behaviour", "_cooperative", "_members", "_positions")

    def __init__(self, indexed: IndexedGroup, behaviour: _Behaviour, *, cooperative: bool) -> None:
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

    def generations(self) -> list[int | None]:
        """Generation field of each subscription."""
        return [member.generation for member in self._members]

    def _of(self, member: Subscription, position: int) -> tuple[MemberData, int]:
        if not self._cooperative:
            return read_sticky(member.user_data, position)
        if self._behaviour.generation_field and member.generation is not None:
            return MemberData(member.owned, member.generation), position
        if not self._behaviour.generation_data:
            return MemberData(member.owned, None), position
        generation, position = read_generation(member.user_data, position)
        return MemberData(member.owned, generation), position


def _from_2_4_0(indexed: IndexedGroup, said: Said, _racks: PartitionRacks | None) -> Dealt:
    return general_by_generations(indexed, said.read(), spreads_identical=True)


def _from_2_5_1(indexed: IndexedGroup, said: Said, _racks: PartitionRacks | None) -> Dealt:
    return _first_constrained(indexed, said, detect_multi=False)


def _from_2_8_1(indexed: IndexedGroup, said: Said, _racks: PartitionRacks | None) -> Dealt:
    return _first_constrained(indexed, said, detect_multi=True)


def _first_constrained(indexed: IndexedGroup, said: Said, *, detect_multi: bool) -> Dealt:
    unlike = first_unlike(indexed)
    data = said.read(unlike)
    if unlike is None:
        return constrained_v1(indexed, believe_highest_generation(indexed, data, detect_multi=detect_multi))
    return general_by_generations(indexed, said.read(), spreads_identical=False)


def _from_3_0_0(indexed: IndexedGroup, said: Said, _racks: PartitionRacks | None) -> Dealt:
    data = said.read()
    claims = believe_highest_generation(indexed, data, remembered=indexed.remembered)
    return _deal(indexed, claims, data, None, fixed=False, sorts_owned=False)


def _from_3_4_1(indexed: IndexedGroup, said: Said, _racks: PartitionRacks | None) -> Dealt:
    data = said.read()
    claims = believe_per_partition(indexed, data, said.generations(), forget_claimant=True)
    return _deal(indexed, claims, data, None, fixed=False, sorts_owned=False)


def _from_3_5_0(indexed: IndexedGroup, said: Said, racks: PartitionRacks | None) -> Dealt:
    data = said.read()
    claims = believe_per_partition(indexed, data, said.generations(), forget_claimant=True)
    return _deal(indexed, claims, data, racks, fixed=False, sorts_owned=False, aware=True)


def _from_3_5_2(indexed: IndexedGroup, said: Said, racks: PartitionRacks | None) -> Dealt:
    data = said.read()
    claims = believe_per_partition(indexed, data, said.generations(), forget_claimant=False)
    return _deal(indexed, claims, data, racks, fixed=True, sorts_owned=False, aware=True)


def _from_3_7_1(indexed: IndexedGroup, said: Said, racks: PartitionRacks | None) -> Dealt:
    data = said.read()
    claims = believe_per_partition(indexed, data, said.generations(), forget_claimant=False)
    return _deal(indexed, claims, data, racks, fixed=True, sorts_owned=True, aware=True)


def _deal(
    indexed: IndexedGroup,
    claims: Claims,
    data: list[MemberData],
    partition_racks: PartitionRacks | None,
    *,
    fixed: bool,
    sorts_owned: bool,
    aware: bool = False,
) -> Dealt:
    """Deal as Java from 3.0 on.

    Args:
        indexed: The group.
        claims: Previous owners.
        data: The members' claims.
        partition_racks: Racks of the replicas.
        fixed: From 3.5.2 on: a balanced assignment is recognised as such (KAFKA-15106).
        sorts_owned: From 3.7.1 on (KAFKA-16277, KAFKA-15170).
        aware: From 3.5.0 on: racks count (KIP-881).
    """
    racks = rack_info(indexed, partition_racks) if aware else None
    if first_unlike(indexed) is None:
        return constrained(indexed, claims, racks, sorts_owned=sorts_owned, counts_racks=sorts_owned)
    return general(indexed, claims, previous_owners(indexed, data, indexed.remembered), racks, gap=1 if fixed else 0)


_BEHAVIOURS = (
    _Behaviour((2, 4), _from_2_4_0, generation_data=False),
    _Behaviour((2, 5, 1), _from_2_5_1, generation_data=False),
    _Behaviour((2, 8, 1), _from_2_8_1),
    _Behaviour((3, 0), _from_3_0_0),
    _Behaviour((3, 4), _from_3_0_0, generation_field=True),
    _Behaviour((3, 4, 1), _from_3_4_1, generation_field=True),
    _Behaviour((3, 5), _from_3_5_0, generation_field=True),
    _Behaviour((3, 5, 2), _from_3_5_2, generation_field=True),
    _Behaviour((3, 7, 1), _from_3_7_1, generation_field=True),
)


def _lists(
    indexed: IndexedGroup, behaviour: _Behaviour, racks: PartitionRacks | None, *, cooperative: bool
) -> list[Ids]:
    dealt = behaviour.deal(indexed, Said(indexed, behaviour, cooperative=cooperative), racks)
    return hold_back(indexed, dealt) if cooperative else dealt.lists


def _eras(behaviours: tuple[_Behaviour, ...], *, cooperative: bool) -> tuple[Era, ...]:
    def recompute(behaviour: _Behaviour) -> Callable[[Group, PartitionRacks | None], Assignment]:
        def of_era(group: Group, racks: PartitionRacks | None) -> Assignment:
            indexed = IndexedGroup.of_java(group)
            return indexed.assignment(_lists(indexed, behaviour, racks, cooperative=cooperative))

        return of_era

    ends = [*(behaviour.since for behaviour in behaviours[1:]), None]
    return tuple(
        Era(JAVA, recompute(behaviour), since=behaviour.since, before=before)
        for behaviour, before in zip(behaviours, ends, strict=True)
    )


def _before_2_4(_group: Group, _racks: PartitionRacks | None) -> Assignment:
    reason = "Java's sticky before 2.4 is another class, which is not recomputed"
    raise CannotTell(reason)


STICKY_ERAS = (
    Era(JAVA, _before_2_4, since=(0, 11), before=(2, 4)),
    # (`sticky` never uses the generation field, so 3.4.0 is the same as 3.0.)
    *_eras(tuple(b for b in _BEHAVIOURS if b.since != (3, 4)), cooperative=False),
)
COOPERATIVE_ERAS = _eras(_BEHAVIOURS, cooperative=True)


def lists_of_java(
    group: Group, release: Release | None, racks: PartitionRacks | None, *, cooperative: bool
) -> dict[str, list[tuple[str, int]]]:
    """Partitions per member in the order of the lists that Java returns; members in record order.

    Raises:
        CannotTell: As `assign`.
        LeaderWouldFail: As `assign`.
    """
    behaviour = next(b for b in reversed(_BEHAVIOURS) if release is None or release >= b.since)
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
    if (kept := notes()) is not None:
        kept.append(HeldBack(list(transfers), list(transfers.values())))
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
