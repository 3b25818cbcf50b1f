"""Java's `StickyAssignor` and `CooperativeStickyAssignor`, era by era.

An era begins where `AbstractStickyAssignor` or a subclass began to compute something else. Shared code is in the other
modules of this package. `hold_back` is what `cooperative-sticky` adds: partitions that another member still holds are
not assigned yet (`CooperativeStickyAssignor.adjustAssignment`).
"""

from __future__ import annotations

import numpy as np

from assignors.assignment import Assignment
from assignors.clients.racks import rack_info
from assignors.clients.sticky.claims import (
    MemberData,
    believe_highest_generation,
    believe_per_partition,
    first_unlike,
    previous_owners,
    read_generation,
    read_sticky,
)
from assignors.clients.sticky.constrained import Dealt, constrained, constrained_v1
from assignors.clients.sticky.different import general, general_by_generations
from assignors.clients.sticky.indexed_group import Ids, IndexedGroup
from assignors.context import spend
from assignors.model import Group, PartitionRacks, Recompute, Subscription
from assignors.strategy import Release

# The first releases of each change. Equal subscriptions have an algorithm of their own (KAFKA-9987).
_CONSTRAINED = (2, 5, 1)
# `cooperative-sticky` reads a generation from user data (KAFKA-12984).
_GENERATION_DATA = (2, 8, 1)
# Equal subscriptions: quotas (KAFKA-12464); different ones: owners as for equal ones (KAFKA-12675).
_QUOTAS = (3, 0)
# The generation in the subscription is used (KIP-792), before the one in user data. `sticky` never uses it.
_GENERATION_FIELD = (3, 4)
# Owners are found partition by partition (KAFKA-14639).
_PER_PARTITION = (3, 4, 1)
# Racks count (KIP-881).
_RACKS = (3, 5)
# The claim that lost is forgotten; a balanced assignment is recognised as such (KAFKA-15106).
_FIXED = (3, 5, 2)
# Owned partitions are sorted before they are cut (KAFKA-16277), racks respect quotas (KAFKA-15170).
_SORTS_OWNED = (3, 7, 1)

OF_STICKY: tuple[Release, ...] = (
    (2, 4),
    _CONSTRAINED,
    _GENERATION_DATA,
    _QUOTAS,
    _PER_PARTITION,
    _RACKS,
    _FIXED,
    _SORTS_OWNED,
)
"""The first release of each of the eras of `sticky`, which never uses the generation field."""

OF_COOPERATIVE = tuple(sorted((*OF_STICKY, _GENERATION_FIELD)))
"""The same for `cooperative-sticky`."""


def _said(indexed: IndexedGroup, release: Release, *, cooperative: bool, twice: int = 0) -> list[MemberData]:
    """The members' claims as the leader has read them last.

    Before 3.0 a leader may read the user data of the first members `twice` without rewinding the buffer: the second
    read finds only the remainder.
    """
    result = []
    for place, member in enumerate(indexed.members):
        spend(len(member.user_data or b"") // 4)
        said, position = _read(member, 0, release, cooperative=cooperative)
        result.append(_read(member, position, release, cooperative=cooperative)[0] if place < twice else said)
    return result


def _read(member: Subscription, position: int, release: Release, *, cooperative: bool) -> tuple[MemberData, int]:
    """A member's claims from a position of its user data on, and the position afterwards."""
    if not cooperative:
        return read_sticky(member.user_data, position)
    if release >= _GENERATION_FIELD and member.generation is not None:
        return MemberData(member.owned, member.generation), position
    if release < _GENERATION_DATA:
        return MemberData(member.owned, None), position
    generation, position = read_generation(member.user_data, position)
    return MemberData(member.owned, generation), position


def _dealt(indexed: IndexedGroup, release: Release, partition_racks: PartitionRacks | None, *, coop: bool) -> Dealt:
    unlike = first_unlike(indexed)
    # Releases without quotas read the data until a subscription is unlike the others, and then begin again.
    again = (unlike or 0) if _CONSTRAINED <= release < _QUOTAS else 0
    data = _said(indexed, release, cooperative=coop, twice=again)
    if release < _CONSTRAINED or (release < _QUOTAS and unlike is not None):
        return general_by_generations(indexed, data, spreads_identical=release < _CONSTRAINED)
    if release < _QUOTAS:
        # Partitions that two claim are taken from both since the release that reads generations.
        claims = believe_highest_generation(indexed, data, detect_multi=release >= _GENERATION_DATA)
        return constrained_v1(indexed, claims)
    if release >= _PER_PARTITION:
        fields = [member.generation for member in indexed.members]
        claims = believe_per_partition(indexed, data, fields, forget_claimant=release < _FIXED)
    else:
        claims = believe_highest_generation(indexed, data, remembered=indexed.remembered)
    racks = rack_info(indexed, partition_racks) if release >= _RACKS else None
    if unlike is None:
        return constrained(indexed, claims, racks, sorts_owned=release >= _SORTS_OWNED)
    previous = previous_owners(indexed, data, indexed.remembered)
    return general(indexed, claims, previous, racks, gap=1 if release >= _FIXED else 0)


def leader(release: Release, *, cooperative: bool) -> Recompute:
    """A leader of the era that begins with this release."""

    def recompute(group: Group, racks: PartitionRacks | None) -> Assignment:
        indexed = IndexedGroup.of_java(group)
        dealt = _dealt(indexed, release, racks, coop=cooperative)
        return indexed.assignment(hold_back(indexed, dealt) if cooperative else dealt.lists)

    return recompute


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
    return np.array(result, dtype=np.int32)
