"""Probes and jobs of different releases on the same topics: the real probe, whose records are modified in transit.

A future probe writes additional fields in every object, additional types of records between the known ones, and a
higher version.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from kafka import KafkaAdminClient

from streaming.config import Filters, KafkaSettings, ProbeSettings, Settings
from streaming.job.source import SourceSettings
from streaming.job.source.connection import kept_reader
from streaming.job.source.planner import Planner
from streaming.job.source.positions import INITIAL
from streaming.job.source.read import task_rows
from streaming.probe import Probe
from streaming.probe import writer as writer_module
from streaming.probe.deadline import Deadline
from streaming.probe.readback import remember
from streaming.records import (
    ROUNDS_KEY,
    ClosedRound,
    CountedRecords,
    GroupObservation,
    PartitionInput,
    decode_closed_rounds,
    decode_inputs,
    decode_partition_inputs,
    group_of,
)
from tests.probe.witness import Cluster

pytestmark = pytest.mark.kafka

Changes = Callable[[dict[str, Any]], list[dict[str, Any]]]


def tomorrows(record: dict[str, Any]) -> list[dict[str, Any]]:
    """A future probe's records in place of one of today's."""
    newer: dict[str, Any] = {name: value for name, value in record.items() if name != "type"}
    newer |= {"v": 2, "quota": 1_000, "nested": {"a": [1, None, "x"]}, "type": record["type"]}
    if "saw" in newer:
        newer["saw"] = [*newer["saw"], "of tomorrow"]
    other = {"type": f"quota-of-{record['type']}", "v": 2, "cluster": record["cluster"], "saw": [7]}
    return [other, newer, other]


class _Changed:
    """A producer that modifies its records."""

    def __init__(self, producer: Any, changes: Changes) -> None:
        self._producer = producer
        self._changes = changes
        self._size = 0

    def send(self, topic: str, value: bytes, key: bytes, timestamp_ms: int) -> Any:
        record = json.loads(value)
        if record["type"] == "closed":
            # A probe of any release announces the size of the events as it has written them.
            record["size"], self._size = self._size, 0
        acks = {}
        for changed in self._changes(record):
            written = json.dumps(changed).encode()
            acks[changed["type"]] = self._producer.send(topic, written, key, timestamp_ms=timestamp_ms)
            if record["type"] not in {"opened", "closed"}:
                self._size += len(written)
        return acks[record["type"]]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)


@dataclass
class Read:
    """The job's results from some rounds."""

    observations: list[tuple[str, GroupObservation]]
    rounds: list[ClosedRound]
    unreadable: list[PartitionInput]


class Stage:
    """A cluster with groups, a probe of any release, and the present job."""

    def __init__(self, bootstrap: str, unique: str, admin: Any, patch: pytest.MonkeyPatch) -> None:
        self.cluster = Cluster(bootstrap, unique, admin)
        self.settings = Settings(
            cluster=unique,
            kafka=KafkaSettings(bootstrap_servers=bootstrap),
            filters=Filters(groups=(f"/^{unique}/",)),
            probe=ProbeSettings(
                interval_ms=200, events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds", cluster_topics=False
            ),
        )
        self._open, self._patch = writer_module.open_producer, patch

    def probe(self, changes: Changes | None) -> Probe:
        def opened(kafka: KafkaSettings) -> Any:
            producer = self._open(kafka)
            return producer if changes is None else _Changed(producer, changes)

        self._patch.setattr(writer_module, "open_producer", opened)
        return Probe(self.settings)

    def read(self) -> Read:
        source = SourceSettings.of(self.settings)
        planner = Planner(source, kept_reader)
        planner.available_now()
        offsets, rows = INITIAL, []
        while (end := planner.latest(offsets, 60)) is not offsets:
            for task in planner.tasks(offsets, end):
                rows += task_rows(task, source, kept_reader(source))
            offsets = end
        found = Read([], [], [])
        for key, payload in rows:
            group = group_of(key)
            if key == ROUNDS_KEY:
                found.rounds += decode_closed_rounds(payload)
            elif group is None:
                found.unreadable += decode_partition_inputs(payload)
            else:
                found.observations += [
                    (group, item) for item in decode_inputs(payload) if isinstance(item, GroupObservation)
                ]
        return found


@pytest.fixture
def stage(bootstrap: str, unique: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield Stage(bootstrap, unique, admin, monkeypatch)
    admin.close()


def seen(
    observations: list[tuple[str, GroupObservation]],
) -> list[tuple[str, str | None, list[tuple[str, int | None, bytes]]]]:
    """The observations of the groups, without their rounds."""
    return sorted(
        (
            group,
            observation.gone,
            [(topic.topic, topic.partitions, topic.high_watermarks) for topic in observation.topics],
        )
        for group, observation in observations
    )


def test_todays_job_reads_a_probe_of_another_release_like_todays(stage: Stage) -> None:
    first, second = stage.cluster.topic(), stage.cluster.topic("other")
    stage.cluster.commit("both", first, [1, 2, 3])
    stage.cluster.commit("both", second, [1])
    leaves = stage.cluster.commit("leaves", first, [1])
    for group in ("a", "b", "c", "d"):
        stage.cluster.commit(group, second, [1])
    with stage.probe(None) as probe:
        todays = probe.round().round
    with stage.probe(tomorrows) as probe:
        others = probe.round().round
    stage.cluster.delete_group(leaves)
    with stage.probe(tomorrows) as probe:
        probe.round()
    found = stage.read()
    assert seen([one for one in found.observations if one[1].round == others]) == seen(
        [one for one in found.observations if one[1].round == todays]
    )
    assert [len(observation.topics) for group, observation in found.observations if group.endswith("both")] == [2, 2, 2]
    assert [observation.gone for group, observation in found.observations if group == leaves] == [None, None, "deleted"]
    assert [told.round for told in found.rounds][:2] == [todays, others]
    kinds = {item.kind for item in found.unreadable if isinstance(item, CountedRecords)}
    assert all(isinstance(item, CountedRecords) for item in found.unreadable)
    assert {"event/quota-of-group", "record/quota-of-closed"} <= kinds


def test_todays_probe_remembers_the_round_of_a_probe_of_another_release(stage: Stage) -> None:
    topic = stage.cluster.topic()
    groups = {stage.cluster.commit(name, topic, [1]) for name in ("a", "b")}
    with stage.probe(tomorrows) as probe:
        probe.round()
    memory = remember(stage.settings, Deadline.after(60))
    assert dict(memory.topics) == dict.fromkeys(groups, frozenset({topic}))
