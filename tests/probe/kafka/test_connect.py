"""What is configured for Connect groups: read as a worker reads it, round by round."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from streaming.probe.deadline import Deadline, RoundAbandonedError
from streaming.probe.kafka.connect_groups import ConfigTail, ConnectConfigs, ConnectGroups
from streaming.probe.kafka.look import ListedGroup
from streaming.probe.kafka.requests import OffsetKind, Refused, TopicMetadata
from streaming.records import Connector, SeenConnectors
from tests.oracle.java_connect import RELEASES, Connect, Fields
from tests.probe.kafka.build import ReadTopic, unreadable

Topic = list[tuple[str, Fields | None]]

PROPERTIES: Fields = {"properties": {"password": "secret"}}


def read(records: Iterable[tuple[str, Fields | None]]) -> tuple[Connector, ...]:
    configs = ConnectConfigs()
    for key, value in records:
        configs.apply(key.encode(), None if value is None else json.dumps(value).encode())
    return configs.connectors


def tasks_of(name: str, *numbers: int) -> Topic:
    return [(f"task-{name}-{number}", PROPERTIES) for number in numbers]


def test_tasks_count_with_their_commit_and_not_before() -> None:
    topic: Topic = [("connector-db", PROPERTIES), *tasks_of("db", 0, 1)]
    assert read(topic) == (Connector("db", 0, "STARTED"),)
    topic.append(("commit-db", {"tasks": 2}))
    assert read(topic) == (Connector("db", 2, "STARTED"),)
    topic += tasks_of("db", 0)
    assert read([*topic, ("commit-db", {"tasks": 1})]) == (Connector("db", 1, "STARTED"),)


def test_a_null_deletes_a_connector_with_its_tasks() -> None:
    topic: Topic = [("connector-db", PROPERTIES), *tasks_of("db", 0), ("commit-db", {"tasks": 1})]
    topic += [("connector-db", None), ("target-state-db", None)]
    assert read(topic) == ()
    assert read([*topic, ("connector-db", PROPERTIES)]) == (Connector("db", 0, "STARTED"),)


def test_the_newer_field_of_a_target_state_counts_and_one_that_is_not_known_changes_nothing() -> None:
    topic: Topic = [("connector-db", PROPERTIES), ("target-state-db", {"state": "PAUSED", "state.v2": "STOPPED"})]
    assert read(topic) == (Connector("db", 0, "STOPPED"),)
    assert read([*topic, ("target-state-db", {"state": "ASLEEP"})]) == (Connector("db", 0, "STOPPED"),)
    assert read([*topic, ("target-state-db", None)]) == (Connector("db", 0, "STARTED"),)


def test_how_many_tasks_there_are_is_unknown_where_compaction_has_removed_what_a_commit_needs() -> None:
    before: Topic = [*tasks_of("db", 0), ("commit-db", {"tasks": 1}), ("connector-db", PROPERTIES)]
    assert read(before) == (Connector("db", -1, "STARTED"),)
    half: Topic = [("connector-db", PROPERTIES), *tasks_of("db", 1), ("commit-db", {"tasks": 2}), *tasks_of("db", 0)]
    assert read(half) == (Connector("db", -1, "STARTED"),)


def test_what_is_no_such_record_is_passed_over_and_nothing_of_it_is_kept() -> None:
    configs = ConnectConfigs()
    configs.apply(b"connector-db", json.dumps(PROPERTIES).encode())
    for key, value in (
        (None, None), (b"\xff", b"{}"), (b"session-key", b'{"key": "secret"}'), (b"connector-a", b"{"),
        (b"connector-b", b'{"properties": 1}'), (b"task-db", b"{}"), (b"task-db-" + b"9" * 5_000, b'{"properties":{}}'),
        (b"commit-db", b'{"tasks": "2"}'), (b"commit-db", None), (b"commit-c", b'{"tasks": 2147483647}'),
    ):  # fmt: skip
        configs.apply(key, value)
    assert configs.connectors == (Connector("db", 0, "STARTED"),)
    assert "secret" not in repr(vars(configs))


NAMES = ("a", "a-1", "a-b", "task-x", "connector-", "é☃", "commit-a")


def written(random: Random, *, stops: bool, cut: bool) -> Topic:
    """A topic as leaders write it; with `cut` some of them die between the records of a change."""
    topic: Topic = []
    there: set[str] = set()
    for _ in range(random.randint(1, 25)):
        name = random.choice(NAMES)
        what = random.randrange(7) if name in there else 0
        change: Topic = []
        if what in {0, 1}:
            there.add(name)
            change = [(f"connector-{name}", PROPERTIES)]
        elif what in {2, 3, 4}:
            count = random.randint(0, 4)
            change = [*tasks_of(name, *range(count)), (f"commit-{name}", {"tasks": count})]
        elif what == 5:
            there.discard(name)
            change = [(f"connector-{name}", None), (f"target-state-{name}", None)]
        elif stops and random.random() < 0.5:
            change = [(f"commit-{name}", {"tasks": 0})]
            change += [(f"target-state-{name}", {"state": "PAUSED", "state.v2": "STOPPED"})]
        else:
            change = [(f"target-state-{name}", {"state": random.choice(("STARTED", "PAUSED"))})]
        if cut and random.random() < 0.1:
            change = change[: random.randrange(len(change))]
        topic += change
        if random.random() < 0.2:
            topic.append(
                random.choice(
                    (
                        ("session-key", {"key": "c2VjcmV0"}),
                        (f"tasks-fencing-{name}", {"task-count": 3}),
                        (f"restart-connector-{name}", {"only-failed": "x"}),
                        ("something", PROPERTIES),
                    )
                )
            )
    return topic


def compacted(random: Random, topic: Topic) -> Topic:
    """What is left when all records up to some offset were compacted, tombstones too or not."""
    until, without = random.randint(0, len(topic)), random.random() < 0.5
    newest = {key: at for at, (key, _) in enumerate(topic)}
    return [
        (key, value)
        for at, (key, value) in enumerate(topic)
        if at >= until or (newest[key] == at and not (without and value is None))
    ]


@pytest.mark.java
@pytest.mark.parametrize(
    ("release", "topics"),
    [("4.3.1", 200), *(pytest.param(release, 5_000, marks=pytest.mark.nightly) for release in RELEASES)],
)
def test_what_a_topic_says_is_what_a_worker_reads_from_it(release: str, topics: int) -> None:
    random, stops = Random(54), release != "3.4.1"
    whole = [written(random, stops=stops, cut=False) for _ in range(topics)]
    rest = [compacted(random, written(random, stops=stops, cut=True)) for _ in range(topics)]
    with Connect(release) as java:
        told = java.configured([*whole, *rest])
    known = 0
    for number, (topic, expected) in enumerate(zip([*whole, *rest], told, strict=True)):
        found = {of.name: (of.tasks, of.state) for of in read(topic)}
        unknown = {name for name, (tasks, _) in found.items() if tasks < 0}
        assert not unknown or number >= topics, topic
        known += len(found) - len(unknown)
        assert found == {
            name: (-1 if name in unknown else tasks, state) for name, (tasks, state) in expected.items()
        }, topic
    assert known > 2 * topics


def record(name: str) -> tuple[bytes, bytes]:
    return f"connector-{name}".encode(), json.dumps(PROPERTIES).encode()


class World(ReadTopic):
    """A cluster with a group of Connect workers, whose configuration topic has these records."""

    ends_at = OffsetKind.STABLE  # workers read no open transaction

    def __init__(self) -> None:
        super().__init__([record("db")])
        self.asked = 0
        made: Any = self
        self.groups = ConnectGroups(made, {"workers": ConfigTail("configs", lambda: made)})

    def metadata(self, topics: Iterable[str], deadline: Deadline) -> Any:
        self.asked += 1
        return super().metadata(topics, deadline)

    def round(self, state: str = "Stable", protocol_type: str = "connect") -> SeenConnectors | None:
        listed = [
            ListedGroup("workers", 1, state, protocol_type, "classic"),
            ListedGroup("others", 1, "Stable", "connect", "classic"),
        ]
        found = self.groups.observe(listed, Deadline.after(30))
        assert found.keys() <= {"workers"}
        return found.get("workers")


def names(seen: SeenConnectors | None) -> list[str] | None:
    return None if seen is None else [connector.name for connector in seen.connectors]


def test_a_round_reads_on_where_the_one_before_has_ended() -> None:
    world = World()
    assert world.round() == SeenConnectors("configs", (Connector("db", 0, "STARTED"),))
    world.log.append(record("files"))
    assert names(world.round()) == ["db", "files"]
    assert names(world.round()) == ["db", "files"]
    assert world.read_from == [0, 1]


def test_without_workers_and_of_groups_that_are_none_nothing_is_asked() -> None:
    world = World()
    assert world.round(state="Empty") is None
    assert world.round(protocol_type="consumer") is None
    assert world.asked == 0


@pytest.mark.parametrize("how", ["cut back", "created again"])
def test_a_topic_that_begins_again_is_read_from_its_beginning(how: str) -> None:
    world = World()
    world.log.append(record("files"))
    world.round()
    world.log = [record("new")] * (1 if how == "cut back" else 3)
    if how == "created again":
        world.topic = TopicMetadata("id-2", (1,), ())
    assert names(world.round()) == ["new"]


@pytest.mark.parametrize("how", ["no right to describe", "no right to read"])
def test_a_right_that_is_missing_is_said_once_and_not_tried_again(how: str, caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    if how == "no right to describe":
        world.topic = Refused.FORBIDDEN
    else:
        world.raises = unreadable()
    assert [world.round() for _ in range(5)] == [None] * 5
    (said,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    right = "Describe" if how == "no right to describe" else "Read"
    assert said == (
        "What is configured for Connect group workers cannot be read from topic configs "
        f"(the right {right} on it is missing): connectors and tasks that never ran are not missed."
    )
    assert world.asked == 1


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        (Refused.UNKNOWN, "there is no such topic"),
        (TopicMetadata(None, (1, 1), ()), "it has 2 partitions, and Connect's has one"),
        (TopicMetadata(None, (None,), ()), "its leader does not tell its end"),
    ],
)
def test_a_topic_that_cannot_be_read_is_said_once_in_its_third_round_and_read_when_it_is_there(
    topic: TopicMetadata | Refused, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    good, world.topic = world.topic, topic
    assert [world.round() for _ in range(2)] == [None] * 2
    assert not [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [world.round() for _ in range(4)] == [None] * 4
    (said,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert why in said
    world.topic = good
    assert names(world.round()) == ["db"]


def test_brokers_that_do_not_answer_cost_what_is_known_and_not_the_round() -> None:
    world = World()
    world.raises = RoundAbandonedError("no answer came")
    assert world.round() is None
    world.raises = None
    assert names(world.round()) == ["db"]
