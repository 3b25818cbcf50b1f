"""The sticky task assignor: a task stays with its member or its state, or goes to the least loaded.

Follows `org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor`. Active tasks are dealt in three steps
(previous active member, a previous standby one, the least loaded process), then standby tasks in the same way.

In 4.1, where streams groups were early access, it keeps candidates in sets in the order of identity hash codes, which
differ with each run of a broker: where such a set decides, nobody can tell the result. There it prefers processes to
which a task brings a pair of tasks that no process has been given together yet.

It is the only assignor of streams groups up to 4.4; `assign_tasks` chooses by release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from assignors.context import spend
from assignors.exceptions import CannotTell, LeaderWouldFail
from assignors.hash_map import in_hash_map, names_computed, string_hash
from assignors.strategy import Eras, Library, assign_as_of
from assignors.streams.model import StreamsGroup, StreamsMember, TaskAssignment
from assignors.streams.processes import (
    Dealing,
    JavaQueue,
    PreviousMember,
    Process,
    RankedTask,
    each_task,
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


class _Quota:
    """How many tasks a member may have, while members that have as many are taken out of the division."""

    __slots__ = ("_members", "_tasks", "each")

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self._divide()

    def count(self, tasks: int) -> None:
        """Note that a member has this many tasks now."""
        if tasks == self.each:
            self._members -= 1
            self._tasks -= tasks
            self._divide()

    def _divide(self) -> None:
        self.each = -(-self._tasks // self._members) if self._members else 0


def assign_since_4_2(group: StreamsGroup) -> TaskAssignment:
    """The assignment of 4.2 and 4.3, where previous tasks are the previous target.

    Raises:
        LeaderWouldFail: There are tasks and no members.
        CannotTell: We cannot follow the order of a map.
    """
    members = members_in_map_order(group)
    distinct = list(dict.fromkeys(member.process_id for member in members))
    order = in_hash_map(list(map(string_hash, distinct)), capacity=len(members))
    dealing = _StickyDealing(group, members, [distinct[at] for at in order], standby_members(members))
    return dealing.deal(group, _least_loaded_of_4_2)


def assign_since_4_4(group: StreamsGroup) -> TaskAssignment:
    """The assignment of 4.4, where previous tasks are what members own, and reported offsets tell of state on a disk.

    Raises:
        LeaderWouldFail: There are tasks and no members.
        CannotTell: We cannot follow the order of a map.
    """
    members = members_in_map_order(group)
    order = names_computed([member.process_id for member in members], capacity=len(members))
    return _StickyDealing(group, members, order, _ranked_candidates(members)).deal(group, _least_loaded_of_4_4)


_LeastLoaded = Callable[[list[PreviousMember], RankedTask | None], PreviousMember | None]
"""Chooses a previous standby member; for a standby task one whose process does not have the task yet."""


class _StickyDealing(Dealing):
    """One assignment while it is made."""

    def deal(self, group: StreamsGroup, least_loaded: _LeastLoaded) -> TaskAssignment:
        """Deal active tasks, then standby tasks."""
        self._least_loaded = least_loaded
        of_active = _Quota(len(self.tasks), len(group.members))
        of_all = _Quota(len(self.tasks) + len(self.stateful) * group.standby_replicas, len(group.members))
        self._given = self.active
        self._quotas: tuple[_Quota, ...] = of_active, of_all
        self._deal_active()
        self._given, self._quotas = self.standby, (of_all,)
        if group.standby_replicas:
            self._deal_standby(group.standby_replicas)
        return self.assignment()

    def _deal_active(self) -> None:
        left = []
        for task in sorted(self.tasks, key=_by_partition):
            had = self.had.get(task)
            if had is None or not self._give(had, task):
                left.append(task)
        rest = []
        for task in left:
            near = self._least_loaded(self.near.get(task, []), None)
            if near is None or not self._give(near, task):
                rest.append(task)
        if rest and not self.processes:
            reason = "the broker's sticky task assignor throws TaskAssignorException on a group without members"
            raise LeaderWouldFail(reason)
        by_load = JavaQueue(_load, self.processes)
        for task in sorted(rest):
            process = by_load.poll()
            member_id, count = process.give_to_least_loaded(task)
            self._count(member_id, task, count)
            by_load.add(process)

    def _give(self, holder: PreviousMember, task: RankedTask) -> bool:
        process, member_id = holder
        if process.counts[member_id] >= self._quotas[0].each:
            return False
        self._count(member_id, task, process.give(member_id, task))
        return True

    def _count(self, member_id: str, task: RankedTask, count: int) -> None:
        self._given[member_id].append(task)
        for quota in self._quotas:
            quota.count(count)

    def _deal_standby(self, replicas: int) -> None:
        lacking: list[tuple[RankedTask, int]] = []
        for task in sorted(self.stateful, key=_by_partition, reverse=True):
            for given in range(replicas):
                had = self.had.get(task)
                if had is not None and task not in had.process.tasks and self._give(had, task):
                    continue
                near = self._least_loaded(self.near.get(task, []), task)
                if near is None or not self._give(near, task):
                    lacking.append((task, replicas - given))
                    break
        by_load = JavaQueue(_load, self.processes)
        for task, missing in sorted(lacking, reverse=True):
            for _ in range(missing):
                if not self._give_to_least_loaded(by_load, task):
                    break  # fewer processes than replicas

    def _give_to_least_loaded(self, by_load: JavaQueue[Process], task: RankedTask) -> bool:
        passed = []
        process = None
        while process is None and by_load:
            process = by_load.poll()
            if task in process.tasks:
                passed.append(process)
                process = None
        if process is not None:
            member_id, count = process.give_to_least_loaded(task)
            self._count(member_id, task, count)
            by_load.add(process)
        for having in reversed(passed):
            by_load.add(having)
        return process is not None


def _by_partition(task: RankedTask) -> tuple[int, int]:
    rank, partition = task
    return partition, rank


def _load(process: Process) -> float:
    return process.load


def _ranked_candidates(members: list[StreamsMember]) -> dict[tuple[str, int], list[StreamsMember]]:
    """Standby members, then members that only report an offset; the furthest offset first, none counts as 0."""
    found: dict[tuple[str, int], list[tuple[int, int, StreamsMember]]] = {}
    for member in members:
        offsets = {(name, partition): offset for name, partition, offset in member.offsets}
        standby = dict.fromkeys(each_task(member.standby))
        for task in standby:
            found.setdefault(task, []).append((0, -offsets.get(task, 0), member))
        for task, offset in offsets.items():
            if task not in standby:
                found.setdefault(task, []).append((1, -offset, member))
    return {
        task: [member for *_, member in sorted(listed, key=lambda candidate: candidate[:2])]
        for task, listed in found.items()
    }


def _least_loaded_of_4_2(holders: list[PreviousMember], task: RankedTask | None) -> PreviousMember | None:
    """The least loaded one, but none if the first one's process has the task, although another may have been chosen."""
    if not holders:
        return None
    spend(len(holders))
    first = chosen = holders[0]
    for holder in holders[1:]:
        if task is not None and task in holder.process.tasks:
            continue
        if _is_less_loaded(holder, chosen):
            chosen = holder
    if task is not None and task in first.process.tasks:
        return None
    return chosen


def _least_loaded_of_4_4(holders: list[PreviousMember], task: RankedTask | None) -> PreviousMember | None:
    """The least loaded one of those whose process does not have the task."""
    spend(len(holders))
    chosen = None
    for holder in holders:
        if task is not None and task in holder.process.tasks:
            continue
        if chosen is None or _is_less_loaded(holder, chosen):
            chosen = holder
    return chosen


def _is_less_loaded(holder: PreviousMember, chosen: PreviousMember) -> bool:
    """Whether both its process and itself have less."""
    return (
        holder.process.load < chosen.process.load
        and holder.process.counts[holder.member_id] < chosen.process.counts[chosen.member_id]
    )


_ERAS: Eras[StreamsGroup, TaskAssignment] = (
    ((4, 4), assign_since_4_4),
    ((4, 2), assign_since_4_2),
    ((4, 1), assign_of_4_1),
)

STREAMS_ERAS: Final = ("4.1.0", "4.2.0", "4.4.0")
"""First release of each era, oldest first."""


def assign_tasks(group: StreamsGroup, release: Library | str | None = None) -> TaskAssignment:
    """Recompute the target assignment that a group coordinator computed with its sticky task assignor.

    Args:
        group: Members with their previous tasks, and the topology, at the decision. While source topics are missing the
            coordinator calls no assignor: then every target is empty.
        release: The broker's release, as a value or as text ("4.3.1"); None means the newest.

    Returns:
        Active and standby tasks by member.

    Raises:
        UnknownLibrary: The release cannot be parsed, or belongs to another library.
        CannotTell: The result cannot be recomputed exactly; `reason` says why. `TooMuchWork` if the work would exceed a
            limit (`assignors.context`).
        LeaderWouldFail: The assignor throws on this input, so it did not compute a target from it.
    """
    return assign_as_of(_ERAS, group, release, "sticky")
