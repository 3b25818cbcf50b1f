"""The task assignor of streams groups (KIP-1071) of several releases, called in batches: one JVM per release."""

from __future__ import annotations

from assignors import Assignment, from_topics
from assignors.streams import StreamsGroup, StreamsMember, TaskAssignment, Tasks
from tests.oracle.java_runner import JavaRunner, Thrown, hexed, thrown_in, unhexed

_JARS = {"4.2.0": "server-4.2.0", "4.3.1": "broker", "4.4.0": "server-4.4.0"}
STREAMS_RELEASES = tuple(_JARS)


class StreamsAssignors(JavaRunner):
    """The real class of one release; a context manager."""

    def __init__(self, release: str) -> None:
        super().__init__("StreamsAssignorRunner.java", _JARS[release], against=_JARS[STREAMS_RELEASES[0]])

    def assign(self, groups: list[StreamsGroup]) -> list[TaskAssignment | Thrown]:
        """What the class gives each group."""
        return [thrown_in(answer) or _read(answer) for answer in self.ask([_line(group) for group in groups])]


def _line(group: StreamsGroup) -> str:
    parts = ";".join(f"{hexed(p.subtopology_id)}:{p.tasks}:{int(p.stateful)}" for p in group.subtopologies)
    return f"{group.standby_replicas}\t{parts}\t{';'.join(map(_member, group.members))}"


def _member(member: StreamsMember) -> str:
    offsets = ",".join(f"{hexed(name)}={partition}={offset}" for name, partition, offset in member.offsets)
    ids = hexed(member.member_id), hexed(member.process_id)
    return ":".join((*ids, _tasks(member.active), _tasks(member.standby), offsets))


def _tasks(tasks: Tasks) -> str:
    return ",".join(f"{hexed(name)}={'+'.join(map(str, partitions))}" for name, partitions in tasks)


def _read(answer: str) -> TaskAssignment:
    members = [member.split(":") for member in answer.split(";")] if answer else []
    return TaskAssignment(_given(members, 1), _given(members, 2))


def _given(members: list[list[str]], at: int) -> Assignment:
    return from_topics(
        {
            unhexed(member[0]): [_subtopology(text) for text in member[at].split(",")] if member[at] else []
            for member in members
        }
    )


def _subtopology(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, partitions = text.partition("=")
    return unhexed(name), tuple(map(int, partitions.split("+")))
