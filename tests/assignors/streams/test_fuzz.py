"""The brokers' real task assignor of three releases and ours: same group, same tasks, through chains of ten epochs.

400 cases over the releases; the environment variable CASES sets another number: 20,000 in `make test-all`.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest

from assignors import Assignment, CannotTell, LeaderWouldFail, from_topics
from assignors.streams import StreamsGroup, StreamsMember, TaskAssignment, Tasks, assign_tasks
from tests.assignors.streams.random_streams_groups import next_epoch, random_streams_group
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


CASES = int(os.environ.get("CASES", "400"))
EPOCHS = 10
pytestmark = [pytest.mark.java, pytest.mark.timeout(0 if CASES > 20_000 else 300)]

# Each release is a JVM of its own. 4.3 has the class of 4.2.
_BY_NIGHT = ("4.2.0",)


@pytest.mark.parametrize(
    "release",
    [pytest.param(name, marks=pytest.mark.nightly if name in _BY_NIGHT else ()) for name in STREAMS_RELEASES],
)
def test_chains_of_epochs_get_what_the_real_class_gives(release: str) -> None:
    random = Random(f"streams {release} {CASES}")
    told: Counter[str] = Counter()
    with StreamsAssignors(release) as java:
        chains = [random_streams_group(random) for _ in range(-(-CASES // len(STREAMS_RELEASES) // EPOCHS))]
        for _ in range(EPOCHS):
            answers = java.assign(chains)
            for group, answer in zip(chains, answers, strict=True):
                told[_compare(release, group, answer)] += 1
            chains = [
                next_epoch(random, group, answer if isinstance(answer, TaskAssignment) else TaskAssignment({}, {}))
                for group, answer in zip(chains, answers, strict=True)
            ]
    assert told["the same"] > told.total() // 10
    # The odd names used here share one bucket once in ten thousand cases.
    assert told["cannot tell"] <= CASES // 10_000


def _compare(release: str, group: StreamsGroup, answer: TaskAssignment | Thrown) -> str:
    """Compare the results; returns the kind of the case."""
    try:
        ours: TaskAssignment | LeaderWouldFail = assign_tasks(group, release)
    except CannotTell:
        return "cannot tell"
    except LeaderWouldFail as failed:
        ours = failed
    if isinstance(answer, Thrown):
        assert isinstance(ours, LeaderWouldFail), (group, answer)
        assert answer.exception in ours.reason
        return "thrown"
    assert isinstance(ours, TaskAssignment), (group, ours)
    assert ours.fits(answer.active, answer.standby), group
    return "the same"
