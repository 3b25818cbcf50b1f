"""The real probe and the source agree on every field of the rounds."""

from __future__ import annotations

import pytest
from kafka import KafkaAdminClient

from streaming.config import Filters, KafkaSettings, ProbeSettings, Settings
from streaming.job.source import SourceSettings
from streaming.job.source.connection import kept_reader
from streaming.job.source.planner import Planner
from streaming.job.source.positions import INITIAL
from streaming.job.source.read import task_rows
from streaming.probe import Probe
from streaming.records import ROUNDS_KEY, CommitWindow, GroupObservation, decode_inputs, group_of
from tests.probe.witness import Cluster

pytestmark = pytest.mark.kafka


def test_what_the_probe_writes_the_source_takes_without_a_complaint(bootstrap: str, unique: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    cluster = Cluster(bootstrap, unique, admin)
    settings = Settings(
        cluster=unique,
        kafka=KafkaSettings(bootstrap_servers=bootstrap),
        filters=Filters(groups=(f"/^{unique}/",)),
        probe=ProbeSettings(
            interval_ms=200, events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds", cluster_topics=False
        ),
    )
    source = SourceSettings.of(settings)
    topic = cluster.topic()
    stays, leaves = cluster.commit("stays", topic, [1, 2, 3]), cluster.commit("leaves", topic, [1])
    commits = {stays: 3, leaves: 1}
    with Probe(settings) as probe:
        closed = [probe.round()]
        cluster.produce(topic, [5, 0, 0])
        commits[cluster.commit("stays", topic, [4, 2, 3])] += 3
        closed.append(probe.round())
        cluster.delete_group(leaves)
        closed.append(probe.round())
        closed.append(probe.round())
    planner = Planner(source, kept_reader)
    planner.available_now()
    offsets, rows = INITIAL, []
    while (end := planner.latest(offsets, 1)) is not offsets:
        rows += [row for task in planner.tasks(offsets, end) for row in task_rows(task, source, kept_reader(source))]
        offsets = end
    admin.close()

    others = {key for key, _ in rows if group_of(key) is None}
    assert others == {ROUNDS_KEY}, "nothing is in quarantine, nothing is missing"
    inputs = [(group_of(key), item) for key, payload in rows if group_of(key) for item in decode_inputs(payload)]
    observations = {(group, item.round): item for group, item in inputs if isinstance(item, GroupObservation)}
    rounds = [c.round for c in closed]
    assert {number for group, number in observations if group == stays} == set(rounds)
    assert [observations[leaves, number].gone for number in rounds[:3]] == [None, None, "deleted"]
    assert (leaves, rounds[3]) not in observations
    assert [t.topic for t in observations[stays, rounds[1]].topics] == [topic]
    windows = [(group, item) for group, item in inputs if isinstance(item, CommitWindow)]
    assert {group: sum(w.commits for g, w in windows if g == group) for group in commits} == commits
    tombstones = sum(w.tombstones for g, w in windows if g == leaves)
    assert tombstones == 1
