"""A process of a streams group while tasks are dealt, and the heap in which Java keeps processes by load.

Follows `org.apache.kafka.coordinator.group.streams.assignor.ProcessState` of 4.2 and later, and `PriorityQueue` of
OpenJDK: which of several equal elements comes first depends on how its heap was filled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from assignors.context import spend

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
