"""The sticky task assignor of 4.1, where streams groups were early access.

Follows `org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor` of 4.1. It keeps candidates in sets in
the order of identity hash codes, which differ with each run of a broker: where such a set decides, nobody can tell the
result. It prefers processes to which a task brings a pair of tasks that no process has been given together yet.
"""

from __future__ import annotations

from collections.abc import Iterable

from assignors.context import spend
from assignors.exceptions import CannotTell, LeaderWouldFail
from assignors.hash_map import in_hash_map
from assignors.streams.model import StreamsGroup, TaskAssignment
from assignors.streams.processes import (
    Dealing,
    PreviousMember,
    Process,
    RankedTask,
    members_in_map_order,
    standby_members,
)

_TIE = "the sticky task assignor of 4.1 breaks ties by identity hash codes, which differ with each run of a broker"


def assign_of_4_1(group: StreamsGroup) -> TaskAssignment:
    """The assignment of 4.1, where previous tasks are the previous target.

    Raises:
        LeaderWouldFail: There are tasks and no members.
        CannotTell: Identity hash codes decide, or we cannot follow the order of a map.
    """
    members = members_in_map_order(group)
    processes = dict.fromkeys(member.process_id for member in members)
    return _PairingDealing(group, members, processes, standby_members(members)).deal(group)


class _PairingDealing(Dealing):
    """One assignment while it is made."""

    def deal(self, group: StreamsGroup) -> TaskAssignment:
        """Deal active tasks in three steps, then standby tasks."""
        self._pairs: set[frozenset[RankedTask]] = set()
        self._most_pairs = len(self.tasks) * (len(self.tasks) - 1) // 2
        self._left, self._members = len(self.tasks), len(group.members)
        # `ProcessState` counts active tasks of a process, not of its members, against the quota of a member.
        self._active_of = dict.fromkeys(self.processes, 0)
        left = [task for task in self._in_set_order(self.tasks) if not self._give_back(self.had.get(task), task)]
        rest = []
        for task in left:
            near = self.near.get(task)
            if not near or not self._give_back(self._member_near(near, task), task):
                rest.append(task)
        for task in rest:
            if not self.processes:
                reason = "the broker's sticky task assignor throws TaskAssignorException on a group without members"
                raise LeaderWouldFail(reason)
            self._give_active(_first_thread(self._least_loaded(self.processes, task)), task)
        for task in self._in_set_order(self.stateful):
            for _ in range(group.standby_replicas):
                available = [process for process in self.processes if task not in process.tasks]
                if not available:
                    break
                self._give(self._standby_for(task, available), task, self.standby)
        return self.assignment()

    def _in_set_order(self, tasks: list[RankedTask]) -> list[RankedTask]:
        return [tasks[at] for at in in_hash_map(list(map(self.code_of, tasks)))]

    def _quota(self) -> int:
        return -(-self._left // self._members) if self._members else 0

    def _give_back(self, holder: PreviousMember | None, task: RankedTask) -> bool:
        if holder is None or holder.process.counts[holder.member_id] >= self._quota():
            return False
        self._give_active(holder, task)
        return True

    def _give_active(self, holder: PreviousMember, task: RankedTask) -> None:
        quota = self._quota()
        self._give(holder, task, self.active)
        self._active_of[holder.process] += 1
        if self._active_of[holder.process] == quota:
            self._members -= 1
            self._left -= quota

    def _give(self, holder: PreviousMember, task: RankedTask, given: dict[str, list[RankedTask]]) -> None:
        process, member_id = holder
        spend(len(process.tasks))
        self._pairs.update(frozenset((task, other)) for other in process.tasks)
        process.give(member_id, task)
        given[member_id].append(task)

    def _makes_new_pair(self, process: Process, task: RankedTask) -> bool:
        if len(self._pairs) == self._most_pairs:
            return False
        spend(len(process.tasks) // 4 + 1)
        return not process.tasks or any(frozenset((task, other)) not in self._pairs for other in process.tasks)

    def _least_loaded(self, processes: Iterable[Process], task: RankedTask) -> Process:
        listed = list(dict.fromkeys(processes))
        fitting = [process for process in listed if self._makes_new_pair(process, task)] or listed
        least = min(process.load for process in fitting)
        chosen = [process for process in fitting if process.load == least]
        if len(chosen) > 1:
            raise CannotTell(_TIE)
        return chosen[0]

    def _member_near(self, holders: list[PreviousMember], task: RankedTask) -> PreviousMember:
        process = self._least_loaded((process for process, _ in holders), task)
        members = [member_id for holder, member_id in holders if holder is process]
        if len(members) > 1:
            raise CannotTell(_TIE)
        return PreviousMember(process, members[0])

    def _standby_for(self, task: RankedTask, available: list[Process]) -> PreviousMember:
        had = self.had.get(task)
        may_keep = had is not None and had.process in available and self._is_balanced(had.process)
        if had is not None and may_keep and self._makes_new_pair(had.process, task):
            return had
        near = [holder for holder in self.near.get(task, ()) if holder.process in available]
        if near:
            chosen = self._member_near(near, task)
            if self._is_balanced(chosen.process):
                return chosen
        return _first_thread(self._least_loaded(available, task))

    def _is_balanced(self, process: Process) -> bool:
        return process.load < 1 or all(other.load >= process.load for other in self.processes)


def _first_thread(process: Process) -> PreviousMember:
    """The member with the fewest tasks, the first of the map among equals."""
    return PreviousMember(process, min(process.counts, key=process.counts.__getitem__))
