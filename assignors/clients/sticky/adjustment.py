"""The cooperative part of `cooperative-sticky`: partitions that another member still holds are not assigned yet.

Follows `CooperativeStickyAssignor.adjustAssignment`.
"""

from __future__ import annotations

import numpy as np

from assignors.clients.sticky.constrained import Dealt
from assignors.clients.sticky.indexed_group import Board, Ids
from assignors.work import spend

__all__ = ["hold_back"]


def hold_back(board: Board, dealt: Dealt) -> list[Ids]:
    """Take partitions in transfer away from their new owners, which get them in the next generation.

    If the algorithm has not recorded the transfers, they are the partitions that a member got without owning them and
    another one owned without keeping them, by the owned partitions in the members' subscriptions.
    """
    transfers = dealt.transfers
    if transfers is None:
        transfers = _changed_hands(board, dealt.lists)
    if not transfers:
        return dealt.lists
    by_member: dict[int, set[int]] = {}
    for partition, member in transfers.items():
        by_member.setdefault(member, set()).add(partition)
    return [_without(ids, by_member[member]) if member in by_member else ids for member, ids in enumerate(dealt.lists)]


def _changed_hands(board: Board, lists: list[Ids]) -> dict[int, int]:
    spend(board.total)
    added: dict[int, int] = {}
    revoked: set[int] = set()
    for member, (subscription, ids) in enumerate(zip(board.members, lists, strict=True)):
        owned = set(board.ids_of(subscription.owned).tolist())
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
