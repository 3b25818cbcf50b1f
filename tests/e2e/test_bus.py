"""A cluster that is only read: its log is on one real broker, the probe's two topics on another (`[bus]`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer
from pyspark.sql import SparkSession

from streaming.config import Filters, JobSettings, KafkaSettings, OffsetsLog, ProbeSettings, Settings
from streaming.demo.broker import EmbeddedBroker
from streaming.job.source.connection import kept_readers
from streaming.job.source.settings import SourceSettings
from streaming.probe import Probe
from streaming.tables import LakeReader
from tests.e2e.conftest import run_to_the_end
from tests.e2e.plain_job import PlainJob
from tests.probe.witness import Cluster

pytestmark = [pytest.mark.kafka, pytest.mark.nightly, pytest.mark.timeout(900), pytest.mark.xdist_group("broker")]


@pytest.fixture
def bus(second_broker: EmbeddedBroker) -> EmbeddedBroker:
    return second_broker


@pytest.fixture
def watched(cluster: Cluster) -> Cluster:
    return cluster


def _settings(
    watched: Cluster,
    bus: EmbeddedBroker | None,
    lake: Path,
    name: str | None = None,
    offsets_log: OffsetsLog = "auto",
) -> Settings:
    return Settings(
        cluster=name or watched.unique,
        offsets_log=offsets_log,
        lake=str(lake),
        kafka=KafkaSettings(bootstrap_servers=watched.bootstrap),
        bus=KafkaSettings(bootstrap_servers=bus.bootstrap) if bus else None,
        filters=Filters(groups=(f"/^{watched.unique}/",)),
        probe=ProbeSettings(
            interval_ms=200,
            events_topic=f"{watched.unique}.events",
            rounds_topic=f"{watched.unique}.rounds",
            cluster_topics=False,
        ),
        job=JobSettings(max_rounds=2, trigger_ms=0),
    )


def _rounds(settings: Settings, count: int = 2) -> list[int]:
    with Probe(settings) as probe:
        return [probe.round().round for _ in range(count)]


def _there(cluster: Cluster) -> tuple[set[str], set[str]]:
    """Topics and groups."""
    return set(cluster.admin.list_topics()), {group["group_id"] for group in cluster.admin.list_groups()}


@pytest.mark.spark
@pytest.mark.parametrize("offsets_log", ["log", "admin"])
def test_the_whole_job_watches_a_cluster_on_which_nothing_of_ours_is_created(
    watched: Cluster, bus: EmbeddedBroker, spark: SparkSession, tmp_path: Path, offsets_log: OffsetsLog
) -> None:
    settings = _settings(watched, bus, tmp_path / "lake", offsets_log=offsets_log)
    own_topics = settings.filters.model_copy(update={"topics": settings.filters.groups})
    all_topics = settings.probe.model_copy(update={"cluster_topics": True})
    each_round = settings.job.model_copy(update={"heartbeat_ms": 1})  # looks at all of them
    settings = settings.model_copy(update={"filters": own_topics, "probe": all_topics, "job": each_round})
    topic, group = watched.topic(), f"{watched.unique}-g"
    watched.produce(topic, [5, 5, 5])
    member = KafkaConsumer(
        topic,
        bootstrap_servers=watched.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    read = 0
    while read < 15:
        read += sum(map(len, member.poll(timeout_ms=100).values()))
    member.commit()
    watched.commit("idle", topic, [1, 5, 5])
    before = _there(watched)

    closed = _rounds(settings)
    run_to_the_end(spark, settings)
    watched.produce(topic, [2, 0, 0])
    closed += _rounds(settings)  # with a restarted probe
    run_to_the_end(spark, settings)  # with a job that continues at its checkpoint
    member.close()

    assert _there(watched) == before
    tables = LakeReader(settings.lake)
    told = watched.admin.describe_cluster()["cluster_id"]
    assert tables.rows("SELECT cluster_id, round FROM rounds ORDER BY round") == [
        {"cluster_id": told, "round": number} for number in closed
    ]
    newest = "SELECT partition, lag FROM lag_current WHERE group_id = '{}' ORDER BY partition"
    lags = [[row["lag"] for row in tables.rows(newest.format(f"{watched.unique}-{name}"))] for name in ("g", "idle")]
    assert lags == [[2, 0, 0], [6, 0, 0]]
    verdicts = tables.rows(f"SELECT verdict FROM drift_current WHERE group_id = '{group}' AND verdict = 'identical'")
    assert verdicts  # one per generation
    # Filters leave out groups here, so nobody can say that a topic has no reader.
    seen = tables.rows("SELECT topic, partitions, groups, readers, read_by_nobody, records_max FROM topics_current")
    assert [row for row in seen if row["groups"]] == [
        {"topic": topic, "partitions": 3, "groups": 2, "readers": sorted([group, f"{watched.unique}-idle"]),
         "read_by_nobody": False, "records_max": 17}
    ]  # fmt: skip
    assert {row["read_by_nobody"] for row in seen if not row["groups"]} <= {None}
    assert tables.count("quarantine") == 0
    assert tables.rows("SELECT kind, topic FROM gaps WHERE kind <> 'rounds'") == []


def test_two_clusters_share_a_bus_and_its_topics(watched: Cluster, bus: EmbeddedBroker, tmp_path: Path) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bus.bootstrap)
    other = Cluster(bus.bootstrap, watched.unique, admin)
    here = _settings(watched, bus, tmp_path, name="here")
    there = _settings(other, None, tmp_path, name="there")  # monitors the bus itself
    group = watched.commit("g", watched.topic(), [0, 0, 0])
    assert other.commit("g", other.topic(), [0, 0]) == group
    numbers: dict[str, list[int]] = {"here": [], "there": []}
    for _ in range(2):
        for settings in (here, there):
            numbers[settings.cluster] += _rounds(settings, 1)
    admin.close()

    for settings, partitions in ((here, 3), (there, 2)):
        job = PlainJob(SourceSettings.of(settings), kept_readers)
        job.run()
        assert [row.round for row in job.rows.rounds] == numbers[settings.cluster]
        assert {(row.cluster, row.group_id) for row in job.rows.group_health} == {(settings.cluster, group)}
        assert {row.partition for row in job.rows.lag} == set(range(partitions))
        assert job.rows.quarantine == []
        assert [gap for gap in job.rows.gaps if gap.kind != "rounds"] == []
    assert not set(numbers["here"]) & set(numbers["there"])
