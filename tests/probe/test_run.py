"""The probe as a process: through a broker's restart, until it is stopped."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from streaming.config import Filters, KafkaSettings, ProbeSettings, Settings
from streaming.demo.broker import EmbeddedBroker
from streaming.demo.ports import free_port
from streaming.probe import Probe, RoundAbandonedError, StopRequestedError
from streaming.probe.kafka.cluster import KafkaCluster
from streaming.probe.run import _Beat
from streaming.records import RoundOpened
from tests.probe.witness import Cluster, MakeSettings, closed_of, rounds_of
from tests.started import Started, get, unconfigured

pytestmark = pytest.mark.turn(2)


@pytest.fixture
def new_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker that never had a group."""
    with EmbeddedBroker(tmp_path / "broker") as broker:
        yield broker


def own_settings(broker: EmbeddedBroker, unique: str) -> Settings:
    return Settings(
        kafka=KafkaSettings(bootstrap_servers=broker.bootstrap),
        filters=Filters(groups=(f"/^{unique}/",)),
        probe=ProbeSettings(
            interval_ms=200, events_topic=f"{unique}.events", rounds_topic=f"{unique}.rounds", cluster_topics=False
        ),
    )


@pytest.mark.nightly
@pytest.mark.kafka
def test_a_cluster_without_groups_is_waited_for_and_left_as_it_is(new_broker: EmbeddedBroker, unique: str) -> None:
    settings = own_settings(new_broker, unique)
    admin = KafkaAdminClient(bootstrap_servers=new_broker.bootstrap)
    with Probe(settings) as probe:
        with pytest.raises(RoundAbandonedError, match="has no topic __consumer_offsets yet"):
            probe.round()
        assert "__consumer_offsets" not in admin.list_topics()
        assert rounds_of(settings) == []
        cluster = Cluster(new_broker.bootstrap, unique, admin)
        group = cluster.commit("group", cluster.topic(), [1])
        closed = probe.round()
    admin.close()
    assert (group, closed.groups) == (f"{unique}-group", 1)


@pytest.mark.nightly
@pytest.mark.kafka
@pytest.mark.xdist_group("broker")
def test_a_broker_that_dies_in_a_round_leaves_it_open_and_the_next_one_closes(
    second_broker: EmbeddedBroker, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = own_settings(second_broker, unique)
    admin = KafkaAdminClient(bootstrap_servers=second_broker.bootstrap)
    cluster = Cluster(second_broker.bootstrap, unique, admin)
    topic = cluster.topic()
    for name in ("a", "b"):
        cluster.commit(name, topic, [1])
    look = KafkaCluster.observe_groups

    def look_and_die(self: KafkaCluster, *arguments: object) -> object:
        found = look(self, *arguments)  # type: ignore[arg-type]
        second_broker.kill()
        return found

    with Probe(settings) as probe:
        first = probe.round()
        with monkeypatch.context() as patch:
            patch.setattr(KafkaCluster, "observe_groups", look_and_die)
            with pytest.raises(RoundAbandonedError):
                probe.round()
        second_broker.start()
        deadline = time.monotonic() + 60
        while True:
            try:
                second = probe.round()
                break
            except RoundAbandonedError:
                assert time.monotonic() < deadline
    admin.close()
    records = [record for _, record in rounds_of(settings)]
    assert closed_of(settings) == [first, second]
    assert sum(isinstance(record, RoundOpened) for record in records) >= 3
    assert second.groups == first.groups == 2


@pytest.mark.nightly
@pytest.mark.kafka
def test_a_round_in_progress_ends_when_the_probe_is_to_stop(
    cluster: Cluster, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = threading.Event()
    positions = KafkaCluster.log_positions

    def stopped(self: KafkaCluster, *arguments: object) -> object:
        stop.set()
        return positions(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(KafkaCluster, "log_positions", stopped)
    with Probe(settings, stop) as probe, pytest.raises(StopRequestedError):
        probe.round()
    assert [record.ends for _, record in rounds_of(settings) if isinstance(record, RoundOpened)] == [False, True]
    assert closed_of(settings) == []


@pytest.mark.kafka
def test_the_process_runs_rounds_and_stops_cleanly(
    cluster: Cluster, make_settings: MakeSettings, tmp_path: Path
) -> None:
    settings = make_settings()
    cluster.commit("g", cluster.topic(), [1])
    port = free_port()
    environment = unconfigured() | {
        "EVENKEEL_CLUSTER": settings.cluster,
        "EVENKEEL_KAFKA__BOOTSTRAP_SERVERS": cluster.bootstrap,
        "EVENKEEL_PROBE__INTERVAL_MS": "200",
        "EVENKEEL_PROBE__ROUNDS_TOPIC": settings.probe.rounds_topic,
        "EVENKEEL_PROBE__EVENTS_TOPIC": settings.probe.events_topic,
        "EVENKEEL_PROBE__HEALTH": f"127.0.0.1:{port}",
    }

    def closed() -> bool:
        there = settings.probe.rounds_topic in cluster.admin.list_topics()
        return there and len(closed_of(settings)) >= 2

    with Started([sys.executable, "-m", "streaming.probe"], tmp_path / "log", environment) as process:
        process.until(closed)
        assert json.loads(get(f"http://127.0.0.1:{port}/health/ready")[1])["ready"]
        process.stop()
    assert "Traceback" not in process.said
    assert process.said.splitlines()[-1].endswith("Stopped.")


def test_an_unreachable_cluster_ends_the_process_with_one_sentence() -> None:
    address = f"127.0.0.1:{free_port()}"
    done = subprocess.run(
        [sys.executable, "-m", "streaming.probe"],
        env=unconfigured() | {"EVENKEEL_KAFKA__BOOTSTRAP_SERVERS": address},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"The Kafka cluster at {address} cannot be reached (connection refused): correct kafka.bootstrap_servers, "
        f"or start its brokers.\n"
    )


class Clock:
    """A clock that advances only by waiting and working."""

    def __init__(self) -> None:
        self.now = 100.0

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return False


def test_rounds_keep_their_beat_whatever_a_round_takes() -> None:
    clock, began = Clock(), []
    beat = _Beat(10.0, clock, lambda: clock.now)  # type: ignore[arg-type]
    for took in (3.0, 0.5, 25.0, 1.0, 10.0, 0.0):
        assert beat.wait()
        began.append(clock.now - 100.0)
        clock.now += took
    # A round that took the time of two others skips these, and the beat stays the same.
    assert began == [0.0, 10.0, 20.0, 50.0, 60.0, 80.0]


def test_a_probe_that_takes_over_keeps_the_beat_of_the_one_before() -> None:
    clock = Clock()
    beat = _Beat(10.0, clock, lambda: clock.now)  # type: ignore[arg-type]
    assert beat.wait()
    clock.now = 5_003.0  # it stood by
    beat.begin(5_007.0)
    began = []
    for _ in range(2):
        assert beat.wait()
        began.append(clock.now)
        clock.now += 0.5
    assert began == [5_007.0, 5_017.0]
