"""Java's `AbstractStickyAssignor.RackInfo` (>= 3.5, KIP-881): the racks of members and replicas."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from assignors.clients.racks import replica_racks
from assignors.clients.sticky.indexed_group import Ids, IndexedGroup
from assignors.strategy import PartitionRacks
from assignors.work import spend


class RackInfo:
    """The racks of a group in which they matter.

    Attributes:
        of_members: Rack of each member; None for a member that counts as being in all racks. (For librdkafka a member
            with an empty text as rack is in none.)
        of_partitions: Racks of the replicas of each partition, by id.
    """

    __slots__ = ("_consumers", "of_members", "of_partitions")

    def __init__(self, of_members: Sequence[str | None], of_partitions: Sequence[frozenset[str]]) -> None:
        self.of_members = of_members
        self.of_partitions = of_partitions
        members: dict[str, int] = {}
        for rack in of_members:
            if rack is not None:
                members[rack] = members.get(rack, 0) + 1
        self._consumers = [sum(members.get(rack, 0) for rack in racks) for racks in of_partitions]

    def matches(self, member: int, ids: Ids) -> npt.NDArray[np.bool_]:
        """Whether a member may keep each partition; without a rack it may keep all; phantoms have no racks."""
        spend(ids.size // 4)
        rack = self.of_members[member]
        if rack is None:
            return np.ones(ids.size, dtype=bool)
        known = len(self.of_partitions)
        return np.fromiter(
            (p < known and rack in self.of_partitions[p] for p in ids.tolist()), dtype=bool, count=ids.size
        )

    def fits(self, member: int, partition: int) -> bool:
        """Whether a member has no rack, or one of the partition's."""
        rack = self.of_members[member]
        return rack is None or rack in self.of_partitions[partition]

    def by_consumers(self, ids: Ids) -> list[int]:
        """Partitions sorted by the number of members in their racks; the sort is stable."""
        return sorted(ids.tolist(), key=self._consumers.__getitem__)

    def next_in_rack(self, partition: int, members: Sequence[int], first: int) -> int:
        """Index of the next member in a rack of the partition, cyclic from `first` on; -1 if there is none."""
        racks = self.of_partitions[partition]
        if not racks:
            return -1
        for step in range(len(members)):
            position = (first + step) % len(members)
            if self.of_members[members[position]] in racks:
                spend(step // 4)
                return position
        spend(len(members) // 4)
        return -1


def rack_info(
    indexed: IndexedGroup, racks: PartitionRacks | None, of_members: Sequence[str | None] | None = None
) -> RackInfo | None:
    """Racks of a group, or None where the plain algorithm runs.

    Racks matter if the members' and the replicas' racks overlap, and some partition lacks replicas in one of the racks
    (`useRackAwareAssignment`, over all topics together).

    Args:
        indexed: The group.
        racks: Racks of the replicas.
        of_members: Racks of the members, as in `RackInfo`; None where an empty rack means no rack, as in Java.

    Raises:
        CannotTell: Members have racks and the replicas' racks are not known.
    """
    if of_members is None:
        of_members = [member.rack or None for member in indexed.members]
    wanted = {rack for rack in of_members if rack}
    if not wanted:
        return None
    of_partitions: list[frozenset[str]] = []
    known: dict[tuple[str, ...], frozenset[str]] = {}
    for topic, count in zip(indexed.topics, indexed.counts, strict=True):
        of_partitions += replica_racks(topic, count, racks, known)
    everywhere: frozenset[str] = frozenset().union(*set(of_partitions))
    if wanted.isdisjoint(everywhere) or set(of_partitions) == {everywhere}:
        return None
    return RackInfo(of_members, of_partitions)
