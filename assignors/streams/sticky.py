"""The sticky task assignor: a task stays with its member or its state, or goes to the least loaded.

Follows `org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor`. Active tasks are dealt in three steps
(previous active member, a previous standby one, the least loaded process), then standby tasks in the same way.

It is the only assignor of streams groups from 4.2 to 4.4; `assign_tasks` chooses by release. That of 4.1, where streams
groups were early access, is not recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final

from assignors.context import spend
from assignors.exceptions import LeaderWouldFail
from assignors.hash_map import in_hash_map, in_hash_order, names_computed, string_hash
from assignors.order import sorted_utf16
from assignors.strategy import Eras, Library, assign_as_of
from assignors.streams.model import StreamsGroup, StreamsMember, TaskAssignment, Tasks
from assignors.streams.processes import JavaQueue, PreviousMember, Process, RankedTask


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
    members = _members_in_map_order(group)
    distinct = list(dict.fromkeys(member.process_id for member in members))
    order = in_hash_map(list(map(string_hash, distinct)), capacity=len(members))
    dealing = _Dealing(group, members, [distinct[at] for at in order], _standby_members(members))
    return dealing.deal(group, _least_loaded_of_4_2)


def assign_since_4_4(group: StreamsGroup) -> TaskAssignment:
    """The assignment of 4.4, where previous tasks are what members own, and reported offsets tell of state on a disk.

    Raises:
        LeaderWouldFail: There are tasks and no members.
        CannotTell: We cannot follow the order of a map.
    """
    members = _members_in_map_order(group)
    order = names_computed([member.process_id for member in members], capacity=len(members))
    return _Dealing(group, members, order, _ranked_candidates(members)).deal(group, _least_loaded_of_4_4)


_LeastLoaded = Callable[[list[PreviousMember], RankedTask | None], PreviousMember | None]
"""Chooses a previous standby member; for a standby task one whose process does not have the task yet."""


class _Dealing:
    """One assignment while it is made; tasks are ranks and partitions.

    Attributes:
        processes: Processes in the order given.
        stateful: Tasks with a state, by subtopology.
        tasks: All tasks, by subtopology.
        had: Previous active member by task; the last in map order, if several claim it.
        near: Previous standby members by task, or what counts as one, in the order of preference.
        active: Tasks given by member id.
        standby: The same of standby tasks.
    """

    def __init__(
        self,
        group: StreamsGroup,
        members: Sequence[StreamsMember],
        process_ids: Iterable[str],
        near: dict[tuple[str, int], list[StreamsMember]],
    ) -> None:
        """Begin.

        Args:
            group: The group.
            members: Its members in map order.
            process_ids: Their processes in map order.
            near: See `_Dealing.near`, by subtopology id and partition.
        """
        self._names = sorted_utf16(part.subtopology_id for part in group.subtopologies)
        ranks = {name: rank for rank, name in enumerate(self._names)}
        threads: dict[str, list[str]] = {}
        for member in members:
            threads.setdefault(member.process_id, []).append(member.member_id)
        processes = {name: Process(name, in_hash_order(threads[name])) for name in process_ids}
        holders = {
            member.member_id: PreviousMember(processes[member.process_id], member.member_id) for member in members
        }
        self.processes = list(processes.values())
        parts = sorted([(ranks[part.subtopology_id], part) for part in group.subtopologies], key=itemgetter(0))
        self.tasks = [(rank, number) for rank, part in parts for number in range(part.tasks)]
        self.stateful = [(rank, number) for rank, part in parts if part.stateful for number in range(part.tasks)]
        self.had: dict[RankedTask, PreviousMember] = {}
        for member in members:
            for name, partition in _each_task(member.active):
                if name in ranks:
                    self.had[ranks[name], partition] = holders[member.member_id]
        self.near: dict[RankedTask, list[PreviousMember]] = {
            (ranks[name], partition): [holders[member.member_id] for member in listed]
            for (name, partition), listed in near.items()
            if name in ranks
        }
        self.active: dict[str, list[RankedTask]] = {member.member_id: [] for member in group.members}
        self.standby: dict[str, list[RankedTask]] = {member.member_id: [] for member in group.members}

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
        return TaskAssignment(self._named(self.active), self._named(self.standby))

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

    def _named(self, given: dict[str, list[RankedTask]]) -> dict[str, dict[str, list[int]]]:
        result: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in given}
        for member_id, tasks in given.items():
            for rank, partition in tasks:
                result[member_id].setdefault(self._names[rank], []).append(partition)
        return result


def _by_partition(task: RankedTask) -> tuple[int, int]:
    rank, partition = task
    return partition, rank


def _load(process: Process) -> float:
    return process.load


def _members_in_map_order(group: StreamsGroup) -> list[StreamsMember]:
    """Members as the coordinator's HashMap iterates them; raises CannotTell if we cannot follow that order."""
    by_id = {member.member_id: member for member in group.members}
    return [by_id[member_id] for member_id in in_hash_order(by_id)]


def _each_task(tasks: Tasks) -> Iterator[tuple[str, int]]:
    """Subtopology id and partition of each task."""
    return ((name, partition) for name, partitions in tasks for partition in partitions)


def _standby_members(members: Iterable[StreamsMember]) -> dict[tuple[str, int], list[StreamsMember]]:
    """Previous standby members by task, in map order."""
    result: dict[tuple[str, int], list[StreamsMember]] = {}
    for member in members:
        for task in dict.fromkeys(_each_task(member.standby)):
            result.setdefault(task, []).append(member)
    return result


def _ranked_candidates(members: list[StreamsMember]) -> dict[tuple[str, int], list[StreamsMember]]:
    """Standby members, then members that only report an offset; the furthest offset first, none counts as 0."""
    found: dict[tuple[str, int], list[tuple[int, int, StreamsMember]]] = {}
    for member in members:
        offsets = {(name, partition): offset for name, partition, offset in member.offsets}
        standby = dict.fromkeys(_each_task(member.standby))
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
)

STREAMS_ERAS: Final = ("4.2.0", "4.4.0")
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
