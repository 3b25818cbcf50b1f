"""The recording that the tests of this folder share, and the job's lakes from it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from pyspark.sql import SparkSession

from streaming.config import Settings
from streaming.demo.broker import DEMO_OVERRIDES, EmbeddedBroker
from streaming.demo.ports import free_port
from streaming.job.run import start_query
from streaming.tables import DeltaLake
from tests.e2e.recording import Recording, record, settings_for
from tests.patience import unless_too_busy
from tests.probe.witness import Cluster

UNDISTURBED_ROUNDS = 60
"""Rounds per batch of the undisturbed run; the others have fewer."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording and its lakes.

    Attributes:
        recording: The recording.
        quiet_lake: The lake at the time when all was quiet and all members were in their groups.
        lake: The lake at the end, from the same query, started again on its checkpoint.
    """

    recording: Recording
    quiet_lake: Path
    lake: Path


@pytest.fixture
def cluster(bootstrap: str, unique: str) -> Iterator[Cluster]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield Cluster(bootstrap, unique, admin)
    admin.close()


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Recorded]:
    """The recording; its broker runs until the end of the test run, and nothing writes to it any more.

    If several processes share the tests, they also share the recording: the first that needs it plays it, which takes
    two minutes, and the others wait. The broker dies with the process that started it, so that process ends only when
    the others are done; if another one needs it after that, it starts the broker again.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder /= "recorded"
    folder.mkdir(exist_ok=True)
    with (folder / "turn").open("w") as turn, (folder / "users").open("w") as users:
        fcntl.flock(turn, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_SH)
        begun = folder / "begun"
        is_first = not begun.exists()
        if is_first:
            begun.write_text(str(free_port()))
        # A separate broker: it has only the demo's groups, so no filter is needed.
        broker = EmbeddedBroker(folder / "broker", port=int(begun.read_text()), overrides=DEMO_OVERRIDES)
        if is_first:
            broker.start()
            made = _play(broker.bootstrap, folder, request.getfixturevalue("spark"))
            (folder / "made").write_bytes(pickle.dumps(made))
        elif not (folder / "made").exists():
            pytest.fail("the recording failed in another process of this run")
        elif not _is_up(broker):
            broker.start()
        fcntl.flock(turn, fcntl.LOCK_UN)
        yield pickle.loads((folder / "made").read_bytes())
        if broker.pid is not None:
            fcntl.flock(users, fcntl.LOCK_EX)
            broker.stop()


def _play(bootstrap: str, folder: Path, spark: SparkSession) -> Recorded:
    lake, quiet_lake = folder / "lake", folder / "quiet_lake"
    settings = settings_for(bootstrap, lake, max_rounds=UNDISTURBED_ROUNDS)

    def when_quiet() -> None:
        run_to_the_end(spark, settings)
        shutil.copytree(lake, quiet_lake)

    recording = record(bootstrap, folder / "play", when_quiet)
    run_to_the_end(spark, settings)
    return Recorded(recording, quiet_lake, lake)


def _is_up(broker: EmbeddedBroker) -> bool:
    host, port = broker.bootstrap.split(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 5):
        return True
    return False


def in_this_session(spark: SparkSession, patch: pytest.MonkeyPatch) -> None:
    """Let the job (`streaming.job.run.run`) use this process's session instead of starting and stopping its own."""

    class Kept:
        def __getattr__(self, name: str) -> object:
            return getattr(spark, name)

        def stop(self) -> None:
            pass

    patch.setattr("streaming.job.run.start_session", lambda *_: Kept())


def run_to_the_end(spark: SparkSession, settings: Settings) -> None:
    """Run the job to the present end of the topics, in this process's own session."""
    lake = DeltaLake(settings.lake)
    lake.create()
    unless_too_busy(lambda: start_query(spark, settings, lake, available_now=True).awaitTermination())
