"""Different subscriptions, Java >= 3.0: `generalAssign` and `GeneralAssignmentBuilder`."""

from __future__ import annotations

import numpy as np

from assignors.clients.sticky.balance import Balancing, Task
from assignors.clients.sticky.balance_step_by_step import BalancingStepByStep
from assignors.clients.sticky.constrained import Dealt, unassigned
from assignors.clients.sticky.indexed_group import Ids, IndexedGroup
from assignors.clients.sticky.potential import Potential
from assignors.clients.sticky.prior_owners import Claims
from assignors.clients.sticky.racks import RackInfo
from assignors.trace import Kept, Untold, note
from assignors.work import spend


def general(
    indexed: IndexedGroup, claims: Claims, previous: dict[int, int], racks: RackInfo | None, *, gap: int
) -> Dealt:
    """Assign a group's partitions.

    Args:
        indexed: The group.
        claims: Previous owners.
        previous: Owners of partitions in an earlier generation.
        racks: Racks, if they matter.
        gap: Allowed difference between members in a balanced assignment (`Potential.gap`).

    Raises:
        LeaderWouldFail: Java throws here.
        CannotTell: Members claim partitions that do not exist, or two members own one, in a group that is too large to
            follow Java step by step.
    """
    potential = Potential(indexed, gap=gap, counts_topics=True)
    kept, revocation = _keep(indexed, potential, claims, racks)
    everything = np.concatenate(kept)
    # If two own a partition, Java continues with the later one as its owner, even if that one kept nothing.
    claimed = np.concatenate(claims.owned)
    sound = int(everything.max(initial=-1)) < indexed.total and np.bincount(claimed, minlength=1).max() <= 1
    note(lambda: [Kept(kept, racks is not None)])
    if not sound:
        note(lambda: [Untold("members claim partitions that do not exist, or that two of them own")])
    partitions = potential.in_order(indexed)
    listed = np.array(partitions, dtype=np.int64)
    free = unassigned(indexed, kept, np.argsort(potential.topics_in_order()))
    task = Task([ids.tolist() for ids in kept], previous, partitions, listed[free[listed]].tolist(), revocation)
    balancing = (
        Balancing(indexed, potential, task, racks)
        if sound
        else BalancingStepByStep(indexed, potential, task, racks, claims)
    )
    return Dealt([np.fromiter(ids, dtype=np.int64, count=len(ids)) for ids in balancing.result()], None)


def _keep(
    indexed: IndexedGroup, potential: Potential, claims: Claims, racks: RackInfo | None
) -> tuple[list[Ids], bool]:
    """Partitions of existing topics that members keep; and whether any was given up (`assignOwnedPartitions`)."""
    revocation = False
    kept = []
    spend(len(indexed.members) * (10 + len(indexed.topics) // 64))
    for member, owned in enumerate(claims.owned):
        wanted = np.zeros(len(indexed.topics), dtype=bool)
        wanted[potential.topics[member]] = True
        stays = wanted[indexed.topics_of(owned)]
        if racks is not None:
            stays &= racks.matches(member, owned)
        all_stay = bool(stays.all())
        revocation |= not all_stay
        kept.append(owned if all_stay else owned[stays])
    return kept, revocation
