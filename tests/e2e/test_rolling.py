"""An upgrade from the last release and the way back: its wheel beside today's on one cluster and one lake."""

from __future__ import annotations

import io
import json
import shutil
import signal
import subprocess
import tarfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from streaming.demo.ports import free_port
from streaming.events import decode_round
from streaming.places import cache_folder
from streaming.records import RoundClosed
from streaming.tables import LakeReader
from tests.e2e.lakes import contents, differences
from tests.installed import install
from tests.probe.witness import Cluster
from tests.short_lived import SHORT_LIVED

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


class _Process:
    """A command of one of the two installations."""

    def __init__(self, installed: Installed, folder: Path, log: Path, *arguments: str, **environment: str) -> None:
        self._log = log
        # With the archive of classes that the other tests' sessions have.
        shorter = {"EVENKEEL_CACHE": str(cache_folder()), "SPARK_LAUNCHER_OPTS": " ".join(SHORT_LIVED)}
        with self._log.open("wb") as out:
            self._process = subprocess.Popen(
                [installed.bin / "evenkeel", *arguments],
                cwd=folder,
                env=installed.environment | shorter | environment,
                stdout=out,
                stderr=out,
            )

    @property
    def said(self) -> str:
        return self._log.read_text("utf-8", "replace")

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> int:
        return self._process.wait(600)

    def end(self) -> None:
        """Stop it as a supervisor does; it must end well."""
        self._process.send_signal(signal.SIGTERM)
        assert self.wait() == 0, self.said[-3000:]

    def kill(self) -> None:
        if self.runs:
            family = psutil.Process(self._process.pid)
            for process in (*family.children(recursive=True), family):
                process.kill()
            self._process.wait(60)


class _Deployment:
    """One cluster's processes, of either installation, on one lake."""

    def __init__(self, folder: Path, bootstrap: str, unique: str) -> None:
        self.folder, self.lake = folder, folder / "lake"
        self._bootstrap, self._rounds = bootstrap, f"{unique}.rounds"
        self._consumer: KafkaConsumer | None = None
        self._closed: list[RoundClosed] = []
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
rounds_topic = "{self._rounds}"
[job]
trigger_ms = 500
shuffle_partitions = 1
"""
        )
        self._processes: list[_Process] = []

    def start(self, installed: Installed, *arguments: str, **environment: str) -> _Process:
        log = self.folder / f"{len(self._processes)}-{arguments[0]}.log"
        self._processes.append(_Process(installed, self.folder, log, *arguments, **environment))
        return self._processes[-1]

    def kill(self) -> None:
        for process in self._processes:
            process.kill()
        if self._consumer is not None:
            self._consumer.close()

    def closed(self) -> list[RoundClosed]:
        """The closing records of the rounds topic so far."""
        place = TopicPartition(self._rounds, 0)
        if self._consumer is None:
            self._consumer = KafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None)
            self._consumer.assign([place])
            self._consumer.seek(place, 0)
        end = self._consumer.end_offsets([place])[place]
        while self._consumer.position(place) < end:
            for record in self._consumer.poll(1_000).get(place, ()):
                decoded = decode_round(record.value)
                if isinstance(decoded, RoundClosed):
                    self._closed.append(decoded)
        return self._closed

    def newest_row(self) -> int:
        if not (self.lake / "rounds" / "_delta_log").exists():
            return -1
        [row] = LakeReader(self.lake).rows("SELECT coalesce(max(round), -1) AS newest FROM rounds")
        return int(row["newest"])

    def rounds_go_on(self, probe: _Process) -> set[str]:
        """Wait until some more rounds have closed; returns ids of the probes that made them."""
        before = len(self.closed())
        until(lambda: len(self.closed()) >= before + _ROUNDS, probe)
        return {record.probe for record in self.closed()[before : before + _ROUNDS]}

    def goes_on(self, probe: _Process, job: _Process) -> set[str]:
        """Wait until some more rounds have closed and have their rows; returns ids of the probes that made them."""
        before = len(self.closed())
        until(lambda: len(self.closed()) >= before + _ROUNDS, probe)
        more = self.closed()[before : before + _ROUNDS]
        until(lambda: self.newest_row() >= more[-1].round, job)
        return {record.probe for record in more}


def until(done: Callable[[], Any], *needed: _Process) -> None:
    """Wait until something is so; the processes that it needs must not end before."""
    limit, pause = time.monotonic() + 600, threading.Event()
    while not done():
        for process in needed:
            assert process.runs, process.said[-3000:]
        assert time.monotonic() < limit, [process.said[-3000:] for process in needed]
        pause.wait(1)


@pytest.fixture
def deployment(tmp_path: Path, bootstrap: str, unique: str) -> Iterator[_Deployment]:
    made = _Deployment(tmp_path, bootstrap, unique)
    yield made
    made.kill()


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


def _answer(port: int, path: str) -> Any:
    """The body of an answer, a JSON value if it is one; None where there is none yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            body = answer.read().decode()
    except (OSError, urllib.error.URLError):
        return None
    return json.loads(body) if body.startswith("{") else body


def _serves(deployment: _Deployment, installed: Installed, *needed: _Process) -> Any:
    """Let a server open the lake, and ask its health, page and API; returns the groups of the API."""
    port = free_port()
    server = deployment.start(installed, "serve", "--listen", f"127.0.0.1:{port}")
    until(lambda: (_answer(port, "/health") or {}).get("status") == "ok", server, *needed)
    assert _CLUSTER in _answer(port, "/")
    groups = _answer(port, "/api/v1/groups")
    server.end()
    return groups


def test_probes_of_both_releases_stand_by_for_each_other_and_hand_over(
    deployment: _Deployment, released: Installed, installed: Installed, cluster: Cluster
) -> None:
    cluster.commit("g", cluster.topic(), [1])
    probe, makers = deployment.start(released, "probe"), []
    for other in (installed, released):
        makers.append(deployment.rounds_go_on(probe))
        after = deployment.start(other, "probe")
        until(lambda after=after: "Standing by" in after.said, after)
        assert deployment.rounds_go_on(probe) == makers[-1]
        probe.end()
        probe = after
    makers.append(deployment.rounds_go_on(probe))
    assert len(set.union(*makers)) == len(makers)
    probe.end()


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
        job.end()
        job = deployment.start(installed, "run")
        assert deployment.goes_on(probe, job) == {old}

        # Then the probe, which stands by until the old one ends.
        newer = deployment.start(installed, "probe")
        until(lambda: "Standing by" in newer.said, newer)
        assert deployment.goes_on(probe, job) == {old}
        probe.end()
        probe = newer
        with _member(cluster, "first", topic), _member(cluster, "second", topic):
            [new] = deployment.goes_on(probe, job)
        assert new != old

        # The server last; until then the old one shows what the new processes write.
        shown, today = (_serves(deployment, release, probe, job) for release in (released, installed))
        assert {group["group_id"] for group in shown["items"]} == {group["group_id"] for group in today["items"]}

        # And the way back, again the job first.
        job.end()
        assert {"batches", "clusters"} <= {path.name for path in deployment.lake.iterdir()}
        refused = deployment.start(released, "run")
        assert refused.wait() == 2, refused.said[-3000:]
        assert "this release reads 1: run the release that wrote it, or run evenkeel run" in refused.said
        job = deployment.start(released, "run", "--rebuild-state")
        with _member(cluster, "first", topic):
            assert deployment.goes_on(probe, job) == {new}
        older = deployment.start(released, "probe")
        until(lambda: "Standing by" in older.said, older)
        probe.end()
        probe = older
        assert not {old, new} & deployment.goes_on(probe, job)
    probe.end()
    closed = deployment.closed()
    until(lambda: deployment.newest_row() == closed[-1].round, job)
    job.end()

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
