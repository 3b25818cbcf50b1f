"""Groups whose assignments were worked out by hand, from a library's source or documents, or by the library itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from assignors import Assignment, CannotTell, Group, LeaderWouldFail, PartitionRacks, Subscription, assign, same


@dataclass(frozen=True)
class Case:
    """One group.

    Attributes:
        libraries: Libraries that do the same, separated by spaces.
        members: Its members, in the order of the record.
        counts: Partition counts by topic.
        expected: The assignment; or a part of the reason why there is none.
        strategy: The strategy.
        racks: Racks of the replicas.
        leader: Member id of the leader.
        remembered: Generation that the leader remembers.
    """

    libraries: str
    members: Sequence[Subscription]
    counts: Mapping[str, int]
    expected: Assignment | str
    strategy: str = "range"
    racks: PartitionRacks | None = None
    leader: str | None = None
    remembered: int = -1


def member(member_id: str, topics: str = "t", instance: str | None = None, rack: str | None = None) -> Subscription:
    """A member of these topics, separated by blanks."""
    return Subscription(member_id, tuple(topics.split()), group_instance_id=instance, rack=rack)


def each(cases: Mapping[str, Case]) -> pytest.MarkDecorator:
    """Each case for each of its libraries."""
    return pytest.mark.parametrize(
        ("case", "library"),
        [
            pytest.param(case, library, id=f"{says} ({library})")
            for says, case in cases.items()
            for library in case.libraries.split()
        ],
    )


def check(case: Case, library: str) -> None:
    """The library gives what was worked out."""
    group = Group(tuple(case.members), case.counts, remembered_generation=case.remembered, leader=case.leader)
    if isinstance(case.expected, str):
        with pytest.raises((CannotTell, LeaderWouldFail), match=case.expected):
            assign(case.strategy, group, library, case.racks)
    else:
        assert same(assign(case.strategy, group, library, case.racks), case.expected)
