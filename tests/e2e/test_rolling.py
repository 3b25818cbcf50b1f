"""Probes of the last release and of today on one cluster: both wheels, as processes."""

from __future__ import annotations

import io
import shutil
import signal
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from kafka import KafkaConsumer, TopicPartition

from streaming.events import decode_round
from streaming.places import cache_folder
from streaming.records import RoundClosed
from tests.installed import install
from tests.probe.witness import Cluster
from tests.short_lived import SHORT_LIVED

if TYPE_CHECKING:
    from tests.installed import Installed

pytest_plugins = ("tests.installed",)

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.nightly,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("installed"),
    pytest.mark.turn(1),
]

_ROOT = Path(__file__).resolve().parents[2]

_RELEASE, _COMMIT = "0.6.0", "0ce698e7"
"""The last release, and the commit that it is."""

_CLUSTER = "prod"

_ROUNDS = 3
"""Rounds that must close after each step."""


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
        self.folder = folder
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

    def rounds_go_on(self, probe: _Process) -> set[str]:
        """Wait until some more rounds have closed; returns ids of the probes that made them."""
        before = len(self.closed())
        until(lambda: len(self.closed()) >= before + _ROUNDS, probe)
        return {record.probe for record in self.closed()[before : before + _ROUNDS]}


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
