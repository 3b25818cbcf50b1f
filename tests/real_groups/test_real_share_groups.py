"""Share groups on a real broker under churn: every decision is what the broker's assignor gives, and none drifts.

The long test may record a group for `test_recorded_groups.py`: the environment variable RECORD names the folder.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from streaming.groups.rows import DriftRow
from tests.java_tools import describe_share_group
from tests.oracle.java_classes import ShareMembers
from tests.real_groups.followed import Followed, until
from tests.real_groups.party import RELEASE, make_topics
from tests.real_groups.real_log import record_group

pytestmark = [pytest.mark.kafka, pytest.mark.java, pytest.mark.turn(6)]

GROUPS = 12
DECISIONS = 300
_MOST_MEMBERS = 7
_MOST_PARTITIONS = 9


_DESCRIBED = 3
"""Groups that Kafka's own tool is asked about at the end: each call starts a JVM."""


@pytest.fixture
def processes() -> Iterator[tuple[ShareMembers, ShareMembers]]:
    """Members live in either; the second crashes."""
    with ShareMembers(RELEASE) as first, ShareMembers(RELEASE) as second:
        yield first, second
        assert first.failures + second.failures == []


class ShareParty:
    """The members of one share group, changed at random."""

    def __init__(self, bootstrap: str, processes: tuple[ShareMembers, ...], group: str, counts: dict[str, int]) -> None:
        self.group = group
        self.members: list[tuple[ShareMembers, str]] = []
        self.counts = counts
        self._processes = processes
        self._settings = {"bootstrap.servers": bootstrap, "group.id": group}
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        # Half of the groups have members that all subscribe to the same topics.
        self._chance = random.Random(group)
        self._alike = self._chance.random() < 0.5
        self._topics = self._drawn()

    def change(self) -> None:
        """Let a member join, leave or subscribe to something else, or add a partition to a topic."""
        chance = self._chance
        kinds = ["join"] * (len(self.members) < _MOST_MEMBERS) * 5
        kinds += [*["leave"] * (len(self.members) > 1) * 4, *["subscribe"] * bool(self.members) * 2, "grow"]
        kind = chance.choice(kinds)
        if kind == "join":
            self.join(self._topics if self._alike else self._drawn())
        elif kind == "leave":
            self.leave(*chance.choice(self.members))
        elif kind == "subscribe" and self._alike:
            self._topics = self._drawn()
            for process, name in self.members:
                process.subscribe(name, self._topics)
        elif kind == "subscribe":
            process, name = chance.choice(self.members)
            process.subscribe(name, self._drawn())
        elif kind == "grow":
            self._grow(chance.choice([topic for topic, count in self.counts.items() if count < _MOST_PARTITIONS]))

    def join(self, topics: list[str]) -> None:
        process = self._chance.choice(self._processes)
        self.members.append((process, process.start(topics, self._settings)))

    def leave(self, process: ShareMembers, name: str) -> None:
        self.members.remove((process, name))
        process.stop(name)
        until(process.closed(name).is_set, lambda: process.closed(name).wait(1))

    def crashed(self, process: ShareMembers) -> None:
        """Forget the members of a process that was killed."""
        self.members = [member for member in self.members if member[0] is not process]

    def leave_all(self) -> None:
        for member in list(self.members):
            self.leave(*member)

    def _drawn(self) -> list[str]:
        return self._chance.sample(list(self.counts), self._chance.randint(1, len(self.counts)))

    def _grow(self, topic: str) -> None:
        self.counts[topic] += 1
        grown = self._admin.create_partitions([NewPartitions(topic, self.counts[topic])])
        for future in grown.values():
            future.result()


def counted(rows: dict[int, DriftRow]) -> Counter[tuple[str, str | None]]:
    return Counter((row.verdict, row.reason) for row in rows.values())


@pytest.mark.nightly
@pytest.mark.timeout(1_200)
def test_every_decision_of_share_groups_under_churn_is_recomputed_and_none_drifts(
    bootstrap: str, unique: str, processes: tuple[ShareMembers, ShareMembers]
) -> None:
    said: Counter[tuple[str, str | None]] = Counter()
    with Followed(bootstrap, unique, interval_ms=1_000) as followed, ExitStack() as stack:
        parties = []
        for number in range(GROUPS):
            counts = {f"{unique}-{number}-{topic}": count for topic, count in (("a", 1), ("b", 4), ("c", 6))}
            make_topics(bootstrap, counts)
            parties.append(ShareParty(bootstrap, processes, f"{unique}-{number}", counts))
            stack.callback(parties[-1].leave_all)
            parties[-1].join(list(counts))
        for wanted in (DECISIONS // 2, DECISIONS):
            while said.total() < wanted:
                for party in parties:
                    party.change()
                followed.round()
                told = [
                    counted(followed.drift(party.group)) for party in parties if f"g:{party.group}" in followed.rows
                ]
                said = sum(told, Counter())
            # Its members are gone once their sessions have expired.
            processes[1].kill()
            for party in parties:
                party.crashed(processes[1])
                party.join(list(party.counts))
        followed.round_until(lambda: all(is_at_rest(followed, party) for party in parties))
        if recorded := os.environ.get("RECORD"):
            for party in parties:
                name = f"share-{party.group.rpartition('-')[2]}.jsonl"
                record_group(bootstrap, party.group, party.counts, Path(recorded) / name)
        for party in parties[:_DESCRIBED]:
            assert_as_described(followed, bootstrap, party)
        said = sum([counted(followed.drift(party.group)) for party in parties], Counter())
        print(f"{said.total()} decisions: {said.most_common()}")
        assert "drifted" not in {verdict for verdict, _ in said}
        judged = said.total() - said["not_applicable", "the group is empty"]
        assert said["identical", None] >= 0.95 * judged, said


def is_at_rest(followed: Followed, party: ShareParty) -> bool:
    rows = followed.members(party.group)
    return len(rows) == len(party.members) and not followed.health(party.group).findings


def assert_as_described(followed: Followed, bootstrap: str, party: ShareParty) -> None:
    """Members, state and partitions are those of Kafka's own tool."""

    def is_as_described() -> bool:
        state, described = describe_share_group(bootstrap, party.group)
        shown = {
            name: {(of.topic, number) for of in row.partitions or () for number in of.partitions}
            for name, row in followed.members(party.group).items()
        }
        return state == followed.health(party.group).state and shown == {m: of for m, (_, _, of) in described.items()}

    until(is_as_described, followed.round)
    health = followed.health(party.group)
    assert health.verdict == "identical", health
    assert health.imbalance is not None
