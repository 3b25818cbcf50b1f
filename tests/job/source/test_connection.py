"""A monitored cluster that is only read: the bus, another Kafka or a folder, has what the probe writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.errors import KafkaConnectionError

from streaming.config import BusFolder, Filters, KafkaSettings, ProbeSettings, Settings
from streaming.job.source import connection
from streaming.job.source.connection import kept_readers
from streaming.job.source.planner import Planner
from streaming.job.source.positions import INITIAL, Positions
from streaming.job.source.read import task_rows
from streaming.job.source.settings import SourceSettings
from streaming.probe import Probe, check
from streaming.records import ROUNDS_KEY, CommitWindow, GroupObservation, decode_inputs, group_of
from tests.probe.witness import Cluster


@pytest.mark.kafka
@pytest.mark.xdist_group("broker")
@pytest.mark.parametrize("carrier", [pytest.param("kafka", marks=pytest.mark.nightly), "folder"])
def test_rounds_go_to_the_bus_and_the_source_joins_them_with_the_log_of_the_watched_cluster(
    bootstrap: str, unique: str, carrier: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    bus: KafkaSettings | BusFolder = BusFolder(folder=str(tmp_path))
    if carrier == "kafka":
        bus = KafkaSettings(bootstrap_servers=request.getfixturevalue("second_broker").bootstrap)
    watched = KafkaAdminClient(bootstrap_servers=bootstrap)
    cluster = Cluster(bootstrap, unique, watched)
    settings = Settings(
        cluster=unique,
        kafka=KafkaSettings(bootstrap_servers=bootstrap),
        bus=bus,
        filters=Filters(groups=(f"/^{unique}/",)),
        probe=ProbeSettings(
            interval_ms=200, events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds", cluster_topics=False
        ),
    )
    topic = cluster.topic()
    stays, leaves = cluster.commit("stays", topic, [1, 2, 3]), cluster.commit("leaves", topic, [1])
    assert check(settings) == []
    with Probe(settings) as probe:
        closed = [probe.round()]
    cluster.delete_group(leaves)
    with Probe(settings) as restarted:  # knows by the bus alone which groups there were
        closed += [restarted.round(), restarted.round()]

    own = {settings.probe.events_topic, settings.probe.rounds_topic}
    assert own & set(watched.list_topics()) == set(), "nothing was written to the watched cluster"
    if isinstance(bus, KafkaSettings):
        other = KafkaAdminClient(bootstrap_servers=bus.bootstrap_servers)
        assert own <= set(other.list_topics())
        assert other.describe_cluster()["cluster_id"] != watched.describe_cluster()["cluster_id"]
        other.close()

    source = SourceSettings.of(settings)
    planner = Planner(source, kept_readers)
    planner.available_now()
    offsets, rows = INITIAL, []
    while (end := planner.latest(offsets, 1)) is not offsets:
        rows += [row for task in planner.tasks(offsets, end) for row in task_rows(task, source, kept_readers(source))]
        offsets = end
    identity = Positions.read(offsets)
    assert identity.cluster_id == watched.describe_cluster()["cluster_id"]
    assert set(identity.topics) == {"log", "events", "rounds"}

    assert {key for key, _ in rows if group_of(key) is None} == {ROUNDS_KEY}, "nothing is in quarantine or missing"
    inputs = [(group_of(key), item) for key, payload in rows if group_of(key) for item in decode_inputs(payload)]
    observations = {(group, item.round): item for group, item in inputs if isinstance(item, GroupObservation)}
    rounds = [c.round for c in closed]
    assert {number for group, number in observations if group == stays} == set(rounds)
    assert [observations[leaves, number].gone for number in rounds[:2]] == [None, "deleted"]
    assert sum(w.commits for g, w in inputs if g == stays and isinstance(w, CommitWindow)) == 3
    watched.close()


@pytest.mark.kafka
def test_the_check_before_the_start_looks_at_both_and_names_the_section_that_is_wrong(
    bootstrap: str, unique: str
) -> None:
    own = ProbeSettings(events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds")
    reached, nowhere = KafkaSettings(bootstrap_servers=bootstrap), KafkaSettings(bootstrap_servers="127.0.0.1:1")

    def sentences(kafka: KafkaSettings, bus: KafkaSettings) -> list[str]:
        return [str(problem) for problem in check(Settings(kafka=kafka, bus=bus, probe=own))]

    (told,) = sentences(reached, nowhere)
    assert told == (
        "The Kafka cluster at 127.0.0.1:1 cannot be reached (connection refused): correct bus.bootstrap_servers, or "
        "start its brokers."
    )
    assert len(sentences(nowhere, reached)) == 1
    assert "correct kafka.bootstrap_servers" in sentences(nowhere, nowhere)[0]
    assert len(sentences(nowhere, nowhere)) == 2


def test_a_watched_cluster_that_is_away_leaves_no_connection_to_the_bus_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    class Consumer:
        def close(self) -> None:
            closed.append("bus")

    def consumer(kafka: KafkaSettings) -> Consumer:
        if kafka.bootstrap_servers == "watched:1":
            raise KafkaConnectionError
        return Consumer()

    monkeypatch.setattr(connection, "_consumer", consumer)
    monkeypatch.setattr(connection, "take_whole_batches", lambda it: it)
    settings = Settings(
        cluster="away",
        kafka=KafkaSettings(bootstrap_servers="watched:1"),
        bus=KafkaSettings(bootstrap_servers="bus:1"),
    )
    for attempt in range(1, 3):
        with pytest.raises(KafkaConnectionError):
            kept_readers(SourceSettings.of(settings))
        assert closed == ["bus"] * attempt
