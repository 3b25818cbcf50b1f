"""A streams group while tasks are dealt to its processes, and the heap in which Java keeps these by load.

Follows `org.apache.kafka.coordinator.group.streams.assignor.ProcessState` of 4.2 and later, and `PriorityQueue` of
OpenJDK: which of several equal elements comes first depends on how its heap was filled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

from assignors.context import spend
from assignors.hash_map import in_hash_order, string_hash
from assignors.order import sorted_utf16
from assignors.streams.model import StreamsGroup, StreamsMember, TaskAssignment, Tasks

RankedTask = tuple[int, int]
"""A task: the rank of its subtopology's id in Java's string order, and its partition."""

_Element = TypeVar("_Element")


class JavaQueue(Generic[_Element]):
    """`java.util.PriorityQueue`; a key may change only while its element is outside."""

    __slots__ = ("_heap", "_key")

    def __init__(self, key: Callable[[_Element], float], elements: Iterable[_Element]) -> None:
        self._key = key
        self._heap: list[_Element] = []
        for element in elements:
            self.add(element)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, element: _Element) -> None:
        """`add`: sift up from the end, until the parent is not greater."""
        heap, key = self._heap, self._key(element)
        at = len(heap)
        heap.append(element)
        while at and key < self._key(heap[(at - 1) // 2]):
            heap[at] = heap[(at - 1) // 2]
            at = (at - 1) // 2
        heap[at] = element
        spend(1)

    def poll(self) -> _Element:
        """`poll`: take the first, and sift the last one down from its place; the queue is not empty."""
        heap = self._heap
        first, last = heap[0], heap.pop()
        if heap:
            key, at = self._key(last), 0
            while at < len(heap) // 2:
                child = 2 * at + 1
                if child + 1 < len(heap) and self._key(heap[child]) > self._key(heap[child + 1]):
                    child += 1
                if key <= self._key(heap[child]):
                    break
                heap[at] = heap[child]
                at = child
            heap[at] = last
        return first


class Process:
    """A process with its members and what they have been given.

    Attributes:
        process_id: Its id.
        load: Tasks per member.
        tasks: Its tasks, active or standby.
        counts: Tasks by member id, in the order of a HashMap.
    """

    __slots__ = ("_by_load", "_count", "counts", "load", "process_id", "tasks")

    def __init__(self, process_id: str, member_ids: Iterable[str]) -> None:
        self.process_id = process_id
        self.load = 0.0
        self.tasks: set[RankedTask] = set()
        self.counts = dict.fromkeys(member_ids, 0)
        self._count = 0
        self._by_load: JavaQueue[str] | None = None

    def give(self, member_id: str, task: RankedTask) -> int:
        """Give a member a task; returns how many it has then."""
        # The heap is dropped, since the member's place in it may be wrong now.
        self._by_load = None
        return self._add(member_id, task)

    def give_to_least_loaded(self, task: RankedTask) -> tuple[str, int]:
        """Give the member with the fewest tasks a task; returns its id and how many it has then."""
        if len(self.counts) == 1:
            (member_id,) = self.counts
            return member_id, self._add(member_id, task)
        if self._by_load is None:
            self._by_load = JavaQueue(self.counts.__getitem__, self.counts)
        member_id = self._by_load.poll()
        count = self._add(member_id, task)
        self._by_load.add(member_id)
        return member_id, count

    def _add(self, member_id: str, task: RankedTask) -> int:
        self.tasks.add(task)
        self.counts[member_id] += 1
        self._count += 1
        self.load = self._count / len(self.counts)
        return self.counts[member_id]


class PreviousMember(NamedTuple):
    """A member that had a task before, and its process."""

    process: Process
    member_id: str


class Dealing:
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
            near: See `Dealing.near`, by subtopology id and partition.
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
            for name, partition in each_task(member.active):
                if name in ranks:
                    self.had[ranks[name], partition] = holders[member.member_id]
        self.near: dict[RankedTask, list[PreviousMember]] = {
            (ranks[name], partition): [holders[member.member_id] for member in listed]
            for (name, partition), listed in near.items()
            if name in ranks
        }
        self.active: dict[str, list[RankedTask]] = {member.member_id: [] for member in group.members}
        self.standby: dict[str, list[RankedTask]] = {member.member_id: [] for member in group.members}

    def assignment(self) -> TaskAssignment:
        """What was given."""
        return TaskAssignment(self._named(self.active), self._named(self.standby))

    def code_of(self, task: RankedTask) -> int:
        """`TaskId.hashCode()` as an unsigned 32-bit number."""
        rank, partition = task
        return 31 * string_hash(self._names[rank]) + partition & 0xFFFFFFFF

    def _named(self, given: dict[str, list[RankedTask]]) -> dict[str, dict[str, list[int]]]:
        result: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in given}
        for member_id, tasks in given.items():
            for rank, partition in tasks:
                result[member_id].setdefault(self._names[rank], []).append(partition)
        return result


def members_in_map_order(group: StreamsGroup) -> list[StreamsMember]:
    """Members as the coordinator's HashMap iterates them; raises CannotTell if we cannot follow that order."""
    by_id = {member.member_id: member for member in group.members}
    return [by_id[member_id] for member_id in in_hash_order(by_id)]


def each_task(tasks: Tasks) -> Iterator[tuple[str, int]]:
    """Subtopology id and partition of each task."""
    return ((name, partition) for name, partitions in tasks for partition in partitions)


def standby_members(members: Iterable[StreamsMember]) -> dict[tuple[str, int], list[StreamsMember]]:
    """Previous standby members by task, in map order."""
    result: dict[tuple[str, int], list[StreamsMember]] = {}
    for member in members:
        for task in dict.fromkeys(each_task(member.standby)):
            result.setdefault(task, []).append(member)
    return result
