"""Equal subscriptions, Java 2.5.1 to 2.8.2: members keep up to the largest share, and those with too few take some.

Follows `constrainedAssign` of these releases, partition by partition.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from assignors.clients.sticky.constrained import Dealt
from assignors.clients.sticky.indexed_group import Board
from assignors.clients.sticky.prior_owners import Claims
from assignors.exceptions import LeaderWouldFail
from assignors.work import spend

__all__ = ["constrained_v1"]

_NOTHING_TO_STEAL = "Java throws: some consumers are under capacity but all partitions have been assigned"
_NOBODY_LEFT = "Java throws: some partitions are unassigned but all consumers are at maximum capacity"


def constrained_v1(board: Board, claims: Claims) -> Dealt:
    """Deal a group's partitions.

    Raises:
        LeaderWouldFail: Java throws IllegalStateException here.
    """
    members = len(board.members)
    spend(board.total)
    low, high = board.total // members, -(-board.total // members)
    revoked: set[int] = set(claims.multi)  # partitions that change hands when they are placed
    free = np.ones(board.total + len(board.phantoms), dtype=bool)
    free[board.total :] = False
    lists: list[list[int]] = []
    under: list[int] = []
    at_low: deque[int] = deque()
    at_high: deque[int] = deque()
    for member, ids in enumerate(claims.owned):
        owned = ids.tolist()
        if claims.multi:
            owned = [partition for partition in owned if partition not in claims.multi]
        mine = owned[:high]
        revoked.update(owned[high:])
        free[mine] = False
        lists.append(mine)
        if len(owned) < low:
            under.append(member)
            continue
        if len(mine) == low:
            at_low.append(member)
        if len(mine) == high:
            at_high.append(member)
    under.sort(key=board.ranks.__getitem__)
    unassigned = deque(np.flatnonzero(free).tolist())
    transfers: dict[int, int] = {}

    def place(partition: int, member: int) -> None:
        lists[member].append(partition)
        if partition in revoked:
            transfers[partition] = member

    while under and unassigned:
        still = []
        for position, member in enumerate(under):
            if not unassigned:
                still += under[position:]
                break
            place(unassigned.popleft(), member)
            if len(lists[member]) == low:
                at_low.append(member)
            else:
                still.append(member)
        under = still
    for member in under:
        while len(lists[member]) < low:
            if not at_high:
                raise LeaderWouldFail(_NOTHING_TO_STEAL)
            stolen = lists[at_high.popleft()].pop(0)
            lists[member].append(stolen)
            transfers[stolen] = member
        at_low.append(member)
    for partition in unassigned:
        if not at_low:
            raise LeaderWouldFail(_NOBODY_LEFT)
        place(partition, at_low.popleft())
    return Dealt([np.array(ids, dtype=np.int64) for ids in lists], transfers)
