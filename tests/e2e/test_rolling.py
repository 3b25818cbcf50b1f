"""An upgrade from the last release and the way back: its wheel beside today's on one cluster and one lake."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaConsumer
from kafka.errors import KafkaError

from streaming.config import KafkaSettings, ProbeSettings, Settings
from streaming.demo.ports import free_port
from streaming.places import cache_folder
from streaming.records import RoundClosed
from streaming.tables import LakeReader
from tests.e2e.lakes import contents, differences
from tests.installed import install
from tests.probe.witness import Cluster, closed_of
from tests.short_lived import SHORT_LIVED
from tests.started import Started, get

if TYPE_CHECKING:
    from tests.installed import Installed

pytest_plugins = ("tests.installed",)

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.nightly,
    pytest.mark.timeout(3600),
    pytest.mark.xdist_group("installed"),
    pytest.mark.turn(1),
]

_ROOT = Path(__file__).resolve().parents[2]

_RELEASE, _COMMIT = "0.6.0", "0ce698e7"
"""The last release, and the commit that it is."""

_CLUSTER = "prod"

_ROUNDS = 3
"""Rounds whose rows must come after each step."""


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The last release's wheel in an environment of its own, with today's dependencies."""
    folder = tmp_path_factory.mktemp("released")
    packed = subprocess.run(["git", "archive", _COMMIT], cwd=_ROOT, capture_output=True, check=False)
    if packed.returncode:
        pytest.skip(f"this clone does not have commit {_COMMIT}, which is release {_RELEASE}")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder / "sources", filter="data")
    shutil.copytree(_ROOT / "dashboards/static/vendor", folder / "sources/dashboards/static/vendor")
    made = install(folder)
    assert made.wheel.name == f"evenkeel-{_RELEASE}-py3-none-any.whl"
    return made


class _Deployment(ExitStack):
    """One cluster's processes, of either installation, on one lake. A context manager that kills them all."""

    def __init__(self, folder: Path, bootstrap: str, unique: str) -> None:
        super().__init__()
        self.folder, self.lake = folder, folder / "lake"
        self.settings = Settings(
            kafka=KafkaSettings(bootstrap_servers=bootstrap), probe=ProbeSettings(rounds_topic=f"{unique}.rounds")
        )
        # In the form of release 0.6, with one entry.
        (folder / "evenkeel.toml").write_text(
            f"""
lake = "lake"
[[clusters]]
name = "{_CLUSTER}"
[clusters.kafka]
bootstrap_servers = "{bootstrap}"
[filters]
groups = ["/^{unique}/"]
[probe]
interval_ms = 2000
cluster_topics = false
events_topic = "{unique}.events"
rounds_topic = "{unique}.rounds"
[job]
trigger_ms = 500
shuffle_partitions = 1
"""
        )

    def start(self, installed: Installed, *arguments: str, **more: str) -> Started:
        # With the archive of classes that the other tests' sessions have.
        shorter = {"EVENKEEL_CACHE": str(cache_folder()), "SPARK_LAUNCHER_OPTS": " ".join(SHORT_LIVED)}
        log = self.folder / f"{len(list(self.folder.glob('*.log')))}-{arguments[0]}.log"
        environment = installed.environment | shorter | more
        return self.enter_context(Started([installed.bin / "evenkeel", *arguments], log, environment, self.folder))

    def closed(self) -> list[RoundClosed]:
        return closed_of(self.settings)

    def newest_row(self) -> int:
        if not (self.lake / "rounds" / "_delta_log").exists():
            return -1
        [row] = LakeReader(self.lake).rows("SELECT coalesce(max(round), -1) AS newest FROM rounds")
        return int(row["newest"])

    def rounds_go_on(self, probe: Started) -> set[str]:
        """Wait until some more rounds have closed; returns ids of the probes that made them."""
        before = len(self.closed())
        probe.until(lambda: len(self.closed()) >= before + _ROUNDS)
        return {record.probe for record in self.closed()[before : before + _ROUNDS]}

    def goes_on(self, probe: Started, job: Started) -> set[str]:
        """Wait until some more rounds have closed and have their rows; returns ids of the probes that made them."""
        before = len(self.closed())
        probe.until(lambda: len(self.closed()) >= before + _ROUNDS)
        more = self.closed()[before : before + _ROUNDS]
        job.until(lambda: self.newest_row() >= more[-1].round)
        return {record.probe for record in more}


@pytest.fixture
def deployment(tmp_path: Path, bootstrap: str, unique: str) -> Iterator[_Deployment]:
    with _Deployment(tmp_path, bootstrap, unique) as made:
        yield made


@contextmanager
def _member(cluster: Cluster, group: str, topic: str) -> Iterator[None]:
    """A member that consumes and commits."""
    stop, joined = threading.Event(), threading.Event()

    def consume() -> None:
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap,
            group_id=f"{cluster.unique}-{group}",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        while not stop.is_set():
            consumer.poll(500)
            stop.wait(0.5)
            if consumer.assignment():
                joined.set()
            try:
                consumer.commit()
            except KafkaError:
                continue  # the group rebalances
        consumer.close()

    thread = threading.Thread(target=consume)
    thread.start()
    try:
        assert joined.wait(120)
        yield
    finally:
        stop.set()
        thread.join()


def _serves(deployment: _Deployment, installed: Installed, *needed: Started) -> Any:
    """Let a server open the lake, and ask its health, page and API; returns the groups of the API."""
    port = free_port()
    server = deployment.start(installed, "serve", "--listen", f"127.0.0.1:{port}")
    address = f"http://127.0.0.1:{port}"
    server.until(lambda: '"status":"ok"' in get(f"{address}/health")[1].replace(" ", ""), *needed)
    assert _CLUSTER in get(address)[1]
    groups = get(f"{address}/api/v1/groups")[1]
    server.stop()
    return json.loads(groups)


def test_probes_of_both_releases_stand_by_for_each_other_and_hand_over(
    deployment: _Deployment, released: Installed, installed: Installed, cluster: Cluster
) -> None:
    cluster.commit("g", cluster.topic(), [1])
    probe, makers = deployment.start(released, "probe"), []
    for other in (installed, released):
        makers.append(deployment.rounds_go_on(probe))
        after = deployment.start(other, "probe")
        after.until(lambda after=after: "Standing by" in after.said)
        assert deployment.rounds_go_on(probe) == makers[-1]
        probe.stop()
        probe = after
    makers.append(deployment.rounds_go_on(probe))
    assert len(set.union(*makers)) == len(makers)
    probe.stop()


def test_each_process_takes_over_from_the_release_s_and_back_and_no_round_is_lost_or_doubled(
    deployment: _Deployment, released: Installed, installed: Installed, cluster: Cluster
) -> None:
    topic = cluster.topic()
    cluster.produce(topic, [30, 20, 10])
    with _member(cluster, "first", topic):
        probe, job = deployment.start(released, "probe"), deployment.start(released, "run")
        [old] = deployment.goes_on(probe, job)

        # The job first. (Beside the old one it is refused, and harms nothing.)
        beside = deployment.start(installed, "run")
        assert beside.wait() == 2, beside.said[-3000:]
        assert beside.said.startswith("Another job for the cluster 'prod'")
        deployment.goes_on(probe, job)
        job.stop()
        job = deployment.start(installed, "run")
        assert deployment.goes_on(probe, job) == {old}

        # Then the probe, which stands by until the old one ends.
        newer = deployment.start(installed, "probe")
        newer.until(lambda: "Standing by" in newer.said)
        assert deployment.goes_on(probe, job) == {old}
        probe.stop()
        probe = newer
        with _member(cluster, "first", topic), _member(cluster, "second", topic):
            [new] = deployment.goes_on(probe, job)
        assert new != old

        # The server last; until then the old one shows what the new processes write.
        shown, today = (_serves(deployment, release, probe, job) for release in (released, installed))
        assert {group["group_id"] for group in shown["items"]} == {group["group_id"] for group in today["items"]}

        # And the way back, again the job first.
        job.stop()
        assert {"batches", "clusters"} <= {path.name for path in deployment.lake.iterdir()}
        refused = deployment.start(released, "run")
        assert refused.wait() == 2, refused.said[-3000:]
        assert "this release reads 1: run the release that wrote it, or run evenkeel run" in refused.said
        job = deployment.start(released, "run", "--rebuild-state")
        with _member(cluster, "first", topic):
            assert deployment.goes_on(probe, job) == {new}
        older = deployment.start(released, "probe")
        older.until(lambda: "Standing by" in older.said)
        probe.stop()
        probe = older
        assert not {old, new} & deployment.goes_on(probe, job)
    probe.stop()
    closed = deployment.closed()
    job.until(lambda: deployment.newest_row() == closed[-1].round)
    job.stop()

    rows = LakeReader(deployment.lake).rows("SELECT round FROM rounds")
    assert Counter(row["round"] for row in rows) == Counter(record.round for record in closed)
    fresh = deployment.start(installed, "run", "--available-now", EVENKEEL_LAKE="fresh")
    assert fresh.wait() == 0, fresh.said[-3000:]
    carried, whole = contents(deployment.lake), contents(deployment.folder / "fresh")
    assert carried["rebalance_churn"]
    assert not carried["quarantine"]
    [rebuilt] = carried.pop("gaps")  # which the job of 0.6.0 writes of its rebuild
    assert "('kind', 'state')" in rebuilt
    assert not whole.pop("gaps")
    assert differences(carried, whole) == {}
