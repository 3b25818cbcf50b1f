"""The input and the result of the task assignor of streams groups (KIP-1071)."""

from __future__ import annotations

from dataclasses import dataclass, field

from assignors.assignment import Assignment, same
from assignors.exceptions import BadGroup
from assignors.model import require_counts, require_once

Tasks = tuple[tuple[str, tuple[int, ...]], ...]
"""Tasks by subtopology, as in a record: ((subtopology id, (partition, ...)), ...)."""

# As many replicas as anyone could want: each costs a task, so a wrong number would fill the memory.
_MAX_STANDBY_REPLICAS = 100


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A part of the topology whose tasks are alike.

    Attributes:
        subtopology_id: Its id in the topology record.
        tasks: Number of tasks: the most partitions of any of its source topics, including repartition topics
            (`ConfiguredSubtopology.numberOfTasks`).
        stateful: Whether it has changelog topics; only then it gets standby tasks.
    """

    subtopology_id: str
    tasks: int
    stateful: bool = False


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """A member as the coordinator knows it.

    What counts as previous tasks depends on the release: before 4.4 the member's previous target (type 21), since 4.4
    what it owns now (type 22, without tasks pending revocation; `TargetAssignmentBuilder`).

    Attributes:
        member_id: Member id.
        process_id: Id of its process: the members of one process are its threads.
        active: Previous active tasks.
        standby: Previous standby tasks.
        offsets: (subtopology id, partition, sum of changelog offsets) of tasks with state on its disk, which members
            report with heartbeats. No record has them. No release before 4.4 uses them.
    """

    member_id: str
    process_id: str
    active: Tasks = ()
    standby: Tasks = ()
    offsets: tuple[tuple[str, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class StreamsGroup:
    """One streams group at the coordinator's decision.

    Racks, client tags and warm-up tasks are no input of any release up to 4.4.

    Attributes:
        members: Members in the order in which they were inserted into the coordinator's HashMap; it matters only if two
            of them share a bucket (`assignors.brokers.member_orders` has the possible ones).
        subtopologies: The topology, in any order.
        standby_replicas: `num.standby.replicas` of the group.
        least_work: Units of work that the assignor needs (`assignors.context`).

    Raises:
        BadGroup: A member or a subtopology occurs twice, or a number is not possible.
    """

    members: tuple[StreamsMember, ...]
    subtopologies: tuple[Subtopology, ...]
    standby_replicas: int = 0
    least_work: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_once(member.member_id for member in self.members)
        counts = {part.subtopology_id: part.tasks for part in self.subtopologies}
        if len(counts) < len(self.subtopologies):
            message = "A subtopology appears twice in the topology: list each once."
            raise BadGroup(message)
        require_counts(counts)
        if not 0 <= self.standby_replicas <= _MAX_STANDBY_REPLICAS:
            message = f"num.standby.replicas is {self.standby_replicas!r}: give 0 to {_MAX_STANDBY_REPLICAS}."
            raise BadGroup(message)
        had = (len(parts) for m in self.members for tasks in (m.active, m.standby) for _, parts in tasks)
        dealt = sum(part.tasks * (3 + self.standby_replicas * part.stateful) for part in self.subtopologies)
        offsets = sum(len(member.offsets) for member in self.members)
        object.__setattr__(self, "least_work", 2 * len(self.members) + sum(had) + offsets + dealt)


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """Tasks by member; the assignor gives no warm-up tasks.

    Attributes:
        active: Partitions by subtopology id by member id; every member is included.
        standby: The same of standby tasks.
    """

    active: Assignment
    standby: Assignment

    def fits(self, active: Assignment, standby: Assignment) -> bool:
        """Whether a target has the same tasks (`assignors.same`)."""
        return same(self.active, active) and same(self.standby, standby)
