"""Real groups that gain a member and then lose one, followed in the broker's log."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from kafka import KafkaConsumer

from streaming.records import MembershipRecord
from tests.real_groups.real_log import read_on
from tests.real_groups.real_members import Member

__all__ = ["Scaled", "follow", "leave_all"]

_CLOSED_S = 60.0

_Wants = TypeVar("_Wants")


class Scaled(Generic[_Wants]):
    """One group and its progress: its first members, one more, all but the first.

    Attributes:
        records: The group's records in the log.
        members: All members that were started.
    """

    def __init__(self, start: Callable[[_Wants], Member], first: Sequence[_Wants], later: _Wants) -> None:
        self.records: list[MembershipRecord] = []
        self.members = [start(wants) for wants in first]
        self._start = start
        self._later = later
        self._wanted = [len(first), len(first) + 1, len(first)]

    @property
    def done(self) -> bool:
        return not self._wanted

    def saw(self, record: MembershipRecord) -> None:
        """Process a record of the group; takes the next step when it shows the expected number of members."""
        self.records.append(record)
        if self.done or len(record.members) != self._wanted[0]:
            return
        self._wanted.pop(0)
        if len(self._wanted) == 2:
            self.members.append(self._start(self._later))
        elif len(self._wanted) == 1:
            self.members[0].leave()


def follow(log: KafkaConsumer, groups: Mapping[str, Scaled[_Wants]], seconds: float) -> None:
    """Follow the groups until all are done, or for `seconds` at most; then all their members leave."""
    deadline = time.monotonic() + seconds
    while not all(group.done for group in groups.values()) and time.monotonic() < deadline:
        for name, record in read_on(log):
            if name in groups:
                groups[name].saw(record)
    leave_all([member for group in groups.values() for member in group.members])


def leave_all(members: Sequence[Member]) -> None:
    """Let members leave, and wait until they have."""
    for member in members:
        member.leave()
    for member in members:
        assert member.left.wait(_CLOSED_S), f"a member of {member.joins.group} does not close"
