"""The brokers' real classes of several releases and ours: same group, same targets, through chains of ten epochs.

1,000 cases per strategy; the environment variable CASES sets another number: 20,000 in `make test-all`, a million in
`make fuzz`.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from random import Random

import pytest

from assignors import Assignment, CannotTell, LeaderWouldFail, from_topics, same
from assignors.brokers import ServerGroup, ServerMember, ServerTopic, Target, assign_on_server
from tests.assignors.random_server_groups import as_share_group, next_epoch, random_server_group
from tests.examples import by_day
from tests.oracle.java_runner import JavaRunner, Thrown, hexed, joined, thrown_in, unhexed

RELEASES = ("4.0.0", "4.0.1", "4.4.0")

SHARE_RELEASES = ("4.2.0", "4.4.0")
"""The first in which share groups are production-ready, and the newest."""


@dataclass(frozen=True)
class ServerCase:
    """One call of an assignor."""

    strategy: str
    group: ServerGroup


class Servers(JavaRunner):
    """The real classes of one release; a context manager."""

    def __init__(self, release: str) -> None:
        super().__init__("ServerAssignorRunner.java", f"server-{release}", against=f"server-{RELEASES[0]}")

    def assign(self, cases: list[ServerCase]) -> list[dict[str, Target] | Thrown]:
        """Per member a target in the order of the class's maps, as in the next record."""
        return [thrown_in(answer) or _read(answer) for answer in self.ask([_line(case) for case in cases])]


def _line(case: ServerCase) -> str:
    topics = ";".join(starmap(_listed, case.group.topics.items()))
    return f"{case.strategy}\t{topics}\t{';'.join(map(_member, case.group.members))}"


def _listed(name: str, topic: ServerTopic) -> str:
    initialized = "-" if topic.initialized is None else "+".join(map(str, topic.initialized))
    return f"{hexed(name)}:{topic.topic_id}:{topic.partitions}:{initialized}"


def _member(member: ServerMember) -> str:
    target = ",".join(f"{topic_id}={'+'.join(map(str, partitions))}" for topic_id, partitions in member.target)
    return ":".join((hexed(member.member_id), hexed(member.group_instance_id), joined(",", member.topics), target))


def _read(answer: str) -> dict[str, Target]:
    members: dict[str, Target] = {}
    for member in answer.split(";") if answer else ():
        member_id, _, target = member.partition(":")
        members[unhexed(member_id)] = tuple(map(_topic, target.split(","))) if target else ()
    return members


def _topic(text: str) -> tuple[str, tuple[int, ...]]:
    topic_id, _, partitions = text.partition("=")
    return topic_id, tuple(map(int, partitions.split("+"))) if partitions else ()


CASES = int(os.environ.get("CASES", "1000"))
pytestmark = [pytest.mark.java, pytest.mark.timeout(0 if CASES > 20_000 else 300)]

EPOCHS = 10
_BATCH = 20_000


@pytest.mark.parametrize("release", by_day(RELEASES, RELEASES[-1:]))
def test_chains_of_epochs_get_what_the_real_class_gives(release: str) -> None:
    random = Random(f"server {release} {CASES}")
    told: Counter[str] = Counter()
    with Servers(release) as servers:
        for strategy in ("server-range", "server-uniform"):
            left = -(-CASES // len(RELEASES) // EPOCHS)
            while left:
                chains = [random_server_group(random) for _ in range(min(left, _BATCH))]
                left -= len(chains)
                for _ in range(EPOCHS):
                    answers = servers.assign([ServerCase(strategy, group) for group in chains])
                    for group, answer in zip(chains, answers, strict=True):
                        told[_compare(strategy, release, group, answer)] += 1
                    chains = [
                        next_epoch(random, group, _targets(group, answer))
                        for group, answer in zip(chains, answers, strict=True)
                    ]
    assert told["server-uniform, alike"] > CASES // len(RELEASES) // 10
    assert told["server-uniform, different"] > CASES // len(RELEASES) // 10
    assert told["cannot tell"] <= CASES // 100_000


@pytest.mark.parametrize("release", by_day(SHARE_RELEASES, SHARE_RELEASES[-1:]))
def test_chains_of_epochs_of_share_groups_get_what_the_real_class_gives(release: str) -> None:
    random = Random(f"share {release} {CASES}")
    told: Counter[str] = Counter()
    left = -(-CASES // len(SHARE_RELEASES) // EPOCHS)
    with Servers(release) as servers:
        while left:
            chains = [as_share_group(random, random_server_group(random)) for _ in range(min(left, _BATCH))]
            left -= len(chains)
            for _ in range(EPOCHS):
                answers = servers.assign([ServerCase("server-simple", group) for group in chains])
                told.update(map(partial(_compare, "server-simple", release), chains, answers))
                chains = [
                    as_share_group(random, next_epoch(random, group, _targets(group, answer)))
                    for group, answer in zip(chains, answers, strict=True)
                ]
    assert told["server-simple, alike"] > CASES // len(SHARE_RELEASES) // 10
    assert told["server-simple, different"] > CASES // len(SHARE_RELEASES) // 10
    assert told["cannot tell"] <= CASES // 1_000


def _compare(strategy: str, release: str, group: ServerGroup, answer: dict[str, Target] | Thrown) -> str:
    """Compare the results; returns the kind of the case."""
    try:
        ours: Assignment | LeaderWouldFail = assign_on_server(strategy, group, release)
    except CannotTell as cannot:
        # The odd names used here share one bucket once in a million cases.
        if "keys fall into one bucket" not in cannot.reason:
            raise
        return "cannot tell"
    except LeaderWouldFail as failed:
        ours = failed
    if isinstance(answer, Thrown):
        assert isinstance(ours, LeaderWouldFail), (group, answer)
        told = ours.reason
        assert answer.exception in told or any(quoted in answer.message for quoted in told.split('"')[1::2]), answer
    else:
        assert not isinstance(ours, LeaderWouldFail), (group, ours)
        assert same(ours, from_topics(answer)), group
    return _kind(strategy, group, answer)


def _targets(group: ServerGroup, answer: dict[str, Target] | Thrown) -> dict[str, Target]:
    """The targets of the next epoch; after an exception the old ones remain."""
    if isinstance(answer, Thrown):
        return {member.member_id: member.target for member in group.members}
    return answer


def _kind(strategy: str, group: ServerGroup, answer: dict[str, Target] | Thrown) -> str:
    if isinstance(answer, Thrown):
        return f"{strategy}, thrown"
    return f"{strategy}, {'alike' if group.homogeneous else 'different'}"
