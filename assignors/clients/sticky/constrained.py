"""Equal subscriptions, Java >= 2.5.1: owners keep what their quota allows, the rest is dealt in turn.

`constrained` follows `constrainedAssign` (3.0 to 3.4) and `ConstrainedAssignmentBuilder` (from 3.5 on).
`constrained_v1` follows `constrainedAssign` of 2.5.1 to 2.8.2, partition by partition: members keep up to the largest
share, and those with too few take some.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from assignors.clients.racks import RackInfo
from assignors.clients.sticky.claims import Claims
from assignors.clients.sticky.indexed_group import Ids, IndexedGroup
from assignors.context import spend
from assignors.exceptions import LeaderWouldFail

_NO_MORE = "Java throws: no more unfilled consumers to be assigned"
_UNFILLED = "Java throws: a consumer stays below its quota and no partitions are left"
_NOBODY_LEFT = "Java throws: some partitions are unassigned but all consumers are at maximum capacity"
_NOTHING_TO_STEAL = "Java throws: some consumers are under capacity but all partitions have been assigned"


@dataclass(slots=True)
class Dealt:
    """An assignment and its transfers.

    Attributes:
        lists: Ids of each member, in the order of Java's lists.
        transfers: New owner of each partition that another member may still hold; None if this must be computed from
            the members' own lists.
    """

    lists: list[Ids]
    transfers: dict[int, int] | None


@dataclass(slots=True)
class _Quotas:
    """How many partitions each member gets, and which members may still get some.

    Attributes:
        low: Fewest partitions of a member.
        high: Most partitions of a member.
        expected: Number of members that get more than `low`; 0 if all get the same.
        over: Number of members that have more than `low` already.
        under: Members below `low`.
        exact: Members at `low` that may get one more.
    """

    low: int
    high: int
    expected: int
    over: int = 0
    under: list[int] = field(default_factory=list)
    exact: list[int] = field(default_factory=list)


def constrained(indexed: IndexedGroup, claims: Claims, racks: RackInfo | None, *, sorts_owned: bool) -> Dealt:
    """Deal a group's partitions.

    Args:
        indexed: The group.
        claims: Previous owners.
        racks: Racks, if they matter.
        sorts_owned: From 3.7.1 on: owned partitions are sorted by (number, topic) before they are cut (KAFKA-16277),
            giving a partition back to the member it was taken from is not a transfer, and the rack pass respects how
            many members may exceed their quota (KAFKA-15170).

    Raises:
        LeaderWouldFail: Java throws IllegalStateException here.
    """
    members = len(indexed.members)
    quotas = _Quotas(indexed.total // members, -(-indexed.total // members), indexed.total % members)
    revoked = np.full(indexed.total + len(indexed.phantoms), -1, dtype=np.int32)
    kept = _keep(indexed, claims, racks, quotas, revoked, sorts_owned=sorts_owned)
    free = np.flatnonzero(unassigned(indexed, kept, np.arange(len(indexed.topics)))).astype(np.int32)
    quotas.under.sort(key=indexed.ranks.__getitem__)
    quotas.exact.sort(key=indexed.ranks.__getitem__)
    placed: list[tuple[Ids, Ids]] = []
    sizes = [ids.size for ids in kept]
    if racks is not None:
        free = _deal_by_racks(racks, racks.by_consumers(free), quotas, sizes, placed, counts=sorts_owned)
    _deal(free, quotas, sizes, placed)
    return Dealt(*_dealt(kept, placed, revoked, claims.multi, own_count=not sorts_owned))


def _keep(
    indexed: IndexedGroup, claims: Claims, racks: RackInfo | None, quotas: _Quotas, revoked: Ids, *, sorts_owned: bool
) -> list[Ids]:
    """Let every member keep as many of its partitions as it may, in the order of the leader's map."""
    multi = np.array(sorted(claims.multi), dtype=np.int32)
    kept = []
    for member, claimed in enumerate(claims.owned):
        owned = claimed
        if racks is not None and owned.size:
            match = racks.matches(member, owned)
            if sorts_owned:
                revoked[owned[~match]] = member
            owned = owned[match]
        if multi.size and owned.size:
            owned = owned[~np.isin(owned, multi)]
        size = owned.size
        if size < quotas.low:
            keep = size
            quotas.under.append(member)
        elif size >= quotas.high and quotas.over < quotas.expected:
            keep = quotas.high
            quotas.over += 1
            if quotas.over == quotas.expected:
                quotas.exact.clear()
        else:
            keep = quotas.low
            if quotas.over < quotas.expected:
                quotas.exact.append(member)
        if sorts_owned and keep < size:
            rows = indexed.topics_of(owned)
            owned = owned[np.lexsort((rows, indexed.numbers_of(owned, rows)))]
        revoked[owned[keep:]] = member
        kept.append(owned[:keep] if keep < size else owned)
    return kept


def unassigned(indexed: IndexedGroup, kept: list[Ids], ranks: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
    """Whether each partition is free: all minus the kept ones, as Java computes it: both sorted, walked in parallel.

    A kept partition that does not exist, or is kept twice, is never met on the walk. It and all kept ones after it stay
    unmatched, so their partitions count as unassigned.

    Args:
        indexed: The group.
        kept: What each member keeps.
        ranks: Position of each topic in the order in which partitions are sorted.
    """
    taken = np.concatenate(kept)
    free = np.ones(indexed.total, dtype=bool)
    if indexed.phantoms or (taken.size and np.bincount(taken).max() > 1):
        rows = indexed.topics_of(taken)
        order = np.lexsort((indexed.numbers_of(taken, rows), ranks[rows]))
        before = -1
        for partition in taken[order].tolist():
            if partition >= indexed.total or partition == before:
                break
            free[partition] = False
            before = partition
    else:
        free[taken] = False
    return free


def _deal_by_racks(
    racks: RackInfo,
    free: list[int],
    quotas: _Quotas,
    sizes: list[int],
    placed: list[tuple[Ids, Ids]],
    *,
    counts: bool,
) -> Ids:
    """Give partitions to members in their racks, up to the quotas; returns the rest for the plain round."""
    left, taken, takers = [], [], []
    under, exact = quotas.under, quotas.exact
    following = 0
    for partition in free:
        member = None
        position = racks.next_in_rack(partition, under, following)
        if position >= 0:
            member = under[position]
            if sizes[member] + 1 >= quotas.low:
                del under[position]
                if sizes[member] + 1 < quotas.high and (not counts or quotas.over < quotas.expected):
                    exact.append(member)
            else:
                position += 1
            following = position % len(under) if under else 0
        elif exact:
            position = racks.next_in_rack(partition, exact, 0)
            if position >= 0:
                member = exact[position]
                if sizes[member] + 1 == quotas.high:
                    del exact[position]
                    if counts:
                        quotas.over += 1
                        if quotas.over == quotas.expected:
                            exact.clear()
        if member is None:
            left.append(partition)
        else:
            sizes[member] += 1
            taken.append(partition)
            takers.append(member)
    if taken:
        placed.append((np.array(taken, dtype=np.int32), np.array(takers, dtype=np.int32)))
    return np.array(left, dtype=np.int32)


def _deal(
    free: Ids, quotas: _Quotas, sizes: list[int], placed: list[tuple[Ids, Ids]], *, may_steal: bool = False
) -> None:
    """Fill the members below the quota in turn, then give one each to those that may get one more.

    With `may_steal`, as before 3.0, members that stay below the quota take partitions from others afterwards.
    """
    under = np.array(quotas.under, dtype=np.int32)
    needs = quotas.low - np.array([sizes[member] for member in quotas.under], dtype=np.int32)
    needed = int(needs.sum())
    if needed > free.size and not may_steal:
        raise LeaderWouldFail(_UNFILLED)
    if needed and free.size:
        placed.append((free[:needed], _in_turn(under, needs)[: free.size]))
    rest = free[needed:]
    if rest.size:
        # Members reach the quota in the order of the turns.
        reached = under[np.argsort(needs, kind="stable")]
        queue = np.concatenate((np.array(quotas.exact, dtype=np.int32), reached))
        if rest.size > queue.size:
            raise LeaderWouldFail(_NOBODY_LEFT if may_steal else _NO_MORE)
        placed.append((rest, queue[: rest.size]))


def _in_turn(members: Ids, needs: Ids) -> Ids:
    """Takers turn by turn; each member leaves the circle after as many turns as it needs."""
    if (needs == needs[0]).all():
        return np.tile(members, int(needs[0]))
    ends = np.cumsum(needs)
    turns = np.arange(ends[-1]) - np.repeat(ends - needs, needs)
    result: Ids = np.repeat(members, needs)[np.argsort(turns, kind="stable")]
    return result


def _dealt(
    kept: list[Ids], placed: list[tuple[Ids, Ids]], revoked: Ids, multi: set[int], *, own_count: bool
) -> tuple[list[Ids], dict[int, int]]:
    """The members' lists and the transfers, as in `Dealt`."""
    if not placed:
        return kept, {}
    ids, takers = (np.concatenate(columns) for columns in zip(*placed, strict=True))
    return _collect(kept, ids, takers), _transfers(ids, takers, revoked, multi, own_count=own_count)


def _collect(kept: list[Ids], ids: Ids, takers: Ids) -> list[Ids]:
    """Append the placed partitions to those that each member kept."""
    members = len(kept)
    if (
        ids.size >= members
        and (takers[: ids.size - members] == takers[members:]).all()
        and np.bincount(takers[:members]).max() == 1
    ):
        # All members take in turn, in one order: each takes every k-th partition, with k members.
        result = list(kept)
        for position, member in enumerate(takers[:members].tolist()):
            more = ids[position::members]
            result[member] = np.concatenate((kept[member], more)) if kept[member].size else more
        return result
    # NumPy's stable sort of 16-bit numbers takes linear time.
    order = np.argsort(takers.astype(np.uint16) if members <= 1 << 16 else takers, kind="stable")
    ids = ids[order]
    stops = np.cumsum(np.bincount(takers, minlength=members)).tolist()
    starts = [0, *stops[:-1]]
    return [
        own if start == stop else np.concatenate((own, ids[start:stop])) if own.size else ids[start:stop]
        for own, start, stop in zip(kept, starts, stops, strict=True)
    ]


def _transfers(ids: Ids, takers: Ids, revoked: Ids, multi: set[int], *, own_count: bool) -> dict[int, int]:
    """Placed partitions that were revoked from a member, or claimed by several, with their new owners.

    Args:
        ids: Placed partitions.
        takers: New owner of each.
        revoked: Member that each partition was revoked from, by id; -1 for none.
        multi: Partitions claimed by several.
        own_count: Whether a partition that returns to the member it was revoked from counts.
    """
    if not multi and int(revoked.max(initial=-1)) < 0:
        return {}
    source = revoked[ids]
    changed = source >= 0
    if not own_count:
        changed &= source != takers
    if multi:
        changed |= np.isin(ids, np.array(sorted(multi), dtype=np.int32))
    return dict(zip(ids[changed].tolist(), takers[changed].tolist(), strict=True))


def constrained_v1(indexed: IndexedGroup, claims: Claims) -> Dealt:
    """Deal a group's partitions.

    Raises:
        LeaderWouldFail: Java throws IllegalStateException here.
    """
    members = len(indexed.members)
    spend(indexed.total)
    quotas = _Quotas(indexed.total // members, -(-indexed.total // members), 0)
    multi = np.array(sorted(claims.multi), dtype=np.int32)
    revoked = np.full(indexed.total + len(indexed.phantoms), -1, dtype=np.int32)
    free = np.ones(revoked.size, dtype=bool)
    kept: list[Ids] = []
    at_high: deque[int] = deque()
    for member, claimed in enumerate(claims.owned):
        owned = claimed[~np.isin(claimed, multi)]
        mine = owned[: quotas.high]
        revoked[owned[quotas.high :]] = member
        free[mine] = False
        kept.append(mine)
        if mine.size < quotas.low:
            quotas.under.append(member)
            continue
        if mine.size == quotas.low:
            quotas.exact.append(member)
        if mine.size == quotas.high:
            at_high.append(member)
    quotas.under.sort(key=indexed.ranks.__getitem__)
    placed: list[tuple[Ids, Ids]] = []
    left = np.flatnonzero(free[: indexed.total]).astype(np.int32)
    _deal(left, quotas, [ids.size for ids in kept], placed, may_steal=True)
    lists, transfers = _dealt(kept, placed, revoked, claims.multi, own_count=True)
    for member in quotas.under:
        while lists[member].size < quotas.low:
            if not at_high:
                raise LeaderWouldFail(_NOTHING_TO_STEAL)
            owner = at_high.popleft()
            stolen = int(lists[owner][0])
            lists[owner] = lists[owner][1:]
            lists[member] = np.append(lists[member], stolen)
            transfers[stolen] = member
    return Dealt(lists, transfers)
