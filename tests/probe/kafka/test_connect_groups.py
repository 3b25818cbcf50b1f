"""What is configured for Connect groups, round by round: read on, begun again, and unknown where it cannot be read."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import TopicAuthorizationFailedError

from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError
from streaming.probe.kafka.connect_groups import ConfigTail, ConnectGroups
from streaming.probe.kafka.look import ListedGroup
from streaming.probe.kafka.requests import OffsetKind, Refused, TopicMetadata
from streaming.record_batches import FetchedBatch, OffsetRange, UnreadableTopicError
from streaming.records import Connector, SeenConnectors

PROPERTIES = {"properties": {}}


class World:
    """A cluster with a group of Connect workers, whose configuration topic has these records."""

    def __init__(self) -> None:
        self.log: list[tuple[str, object]] = [("connector-db", PROPERTIES)]
        self.topic: TopicMetadata | Refused = TopicMetadata("id-1", (1,), ())
        self.raises: Exception | None = None
        self.read_from: list[int] = []
        self.asked = 0
        made: Any = self
        self.groups = ConnectGroups(made, made, {"workers": ConfigTail("configs", lambda: made)})

    # What requests and readers of a round are called.

    def metadata(self, topics: Iterable[str], _: Deadline) -> Any:
        self.asked += 1
        if isinstance(self.raises, RoundAbandonedError):
            raise self.raises
        return SimpleNamespace(topics=dict.fromkeys(topics, self.topic))

    def offsets(self, kind: object, leaders: Mapping[tuple[str, int], int], _: Deadline) -> dict[tuple[str, int], int]:
        assert kind is OffsetKind.STABLE, "workers read no open transaction"
        return dict.fromkeys(leaders, len(self.log))

    def read(self, ranges: Iterable[OffsetRange]) -> Iterator[tuple[OffsetRange, FetchedBatch]]:
        if self.raises is not None:
            raise self.raises
        for where in ranges:
            self.read_from.append(where.start)
            for at in range(where.start, where.end):
                key, value = self.log[at]
                record = SimpleNamespace(offset=at, timestamp=0, key=key.encode(), value=json.dumps(value).encode())
                yield where, FetchedBatch(at, at, 0, [record])

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
    world.log.append(("connector-files", PROPERTIES))
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
    world.log.append(("connector-files", PROPERTIES))
    world.round()
    world.log = [("connector-new", PROPERTIES)] * (1 if how == "cut back" else 3)
    if how == "created again":
        world.topic = TopicMetadata("id-2", (1,), ())
    assert names(world.round()) == ["new"]


@pytest.mark.parametrize("how", ["no right to describe", "no right to read"])
def test_a_right_that_is_missing_is_said_once_and_not_tried_again(how: str, caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    if how == "no right to describe":
        world.topic = Refused.FORBIDDEN
    else:
        world.raises = UnreadableTopicError()
        world.raises.__cause__ = TopicAuthorizationFailedError()
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
