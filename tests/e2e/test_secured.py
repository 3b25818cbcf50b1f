"""Probe and job against a secured broker that ends sessions, with secrets that change while both run."""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from streaming.config import JobSettings, KafkaSettings, ProbeSettings, Settings, environment_of
from streaming.demo.broker import EmbeddedBroker
from streaming.doctor import examine
from streaming.probe import Probe
from streaming.tables import LakeReader
from tests.e2e.conftest import run_to_the_end
from tests.loopback import TokenEndpoint
from tests.probe.secured import RIGHTS, Secured, client_certificate, running, trust
from tests.probe.witness import closed_of
from tests.short_lived import SHORT_LIVED
from tests.started import Started

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.nightly,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("sessions"),
]

_SESSION_MS = 3_000

_METADATA_S = 15
"""After it the source's consumers ask for metadata again (`streaming/job/source/connection.py`)."""


@pytest.fixture(scope="module")
def ends_sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker that wants every client to log in again after three seconds (KIP-368)."""
    with running(tmp_path_factory.mktemp("sessions"), connections__max__reauth__ms=str(_SESSION_MS)) as secured:
        secured.grant(*RIGHTS)
        yield secured


def _settings(kafka: KafkaSettings, folder: Path, unique: str) -> Settings:
    return Settings(
        cluster=unique,
        lake=str(folder / "lake"),
        kafka=kafka,
        probe=ProbeSettings(
            interval_ms=500, events_topic=f"evenkeel.{unique}", rounds_topic=f"evenkeel.{unique}-rounds"
        ),
        job=JobSettings(trigger_ms=500),
    )


@pytest.fixture(params=["SCRAM-SHA-512", "token file", "token endpoint", "certificate"])
def logs_in(request: pytest.FixtureRequest, ends_sessions: Secured, tmp_path: Path) -> Iterator[KafkaSettings]:
    """A connection with a secret that the broker takes."""
    secret = tmp_path / "secret"
    if request.param == "SCRAM-SHA-512":
        ends_sessions.set_password("p")
        secret.write_text("p\n")
        yield ends_sessions.by_password(secret)
    elif request.param == "token file":
        secret.write_text(ends_sessions.tokens.token())
        yield ends_sessions.by_token(sasl_oauth_token_file=secret)
    elif request.param == "token endpoint":
        # Tokens that end within the test: sessions end with them.
        with TokenEndpoint(lambda: {"access_token": ends_sessions.tokens.token(8), "expires_in": 8}) as endpoint:
            secret.write_text(endpoint.secret)
            client = {"sasl_username": "me", "sasl_password_file": secret}
            yield ends_sessions.by_token(sasl_oauth_token_url=endpoint.url, **client)
    else:
        yield ends_sessions.by_certificate(ends_sessions.ca_file.parent)


def test_doctor_probe_and_job_work_over_a_secured_connection_beyond_the_end_of_its_sessions(
    logs_in: KafkaSettings, spark: SparkSession, tmp_path: Path, unique: str
) -> None:
    settings = _settings(logs_in, tmp_path, unique)
    with Probe(settings) as probe:
        closed = [probe.round().round]
        run_to_the_end(spark, settings)
        begin = time.monotonic()
        while time.monotonic() - begin < 4 * _SESSION_MS / 1000:
            closed.append(probe.round().round)
        run_to_the_end(spark, settings)
    reader = LakeReader(settings.lake)
    assert [row["round"] for row in reader.rows("SELECT round FROM rounds ORDER BY round")] == closed
    told = io.StringIO()
    examine([settings], Console(file=told, width=200))
    assert f"kafka: connection: {logs_in.bootstrap_servers} answers with {logs_in.security_protocol}" in told.getvalue()
    assert "\nwrong" not in told.getvalue()


class _Pair:
    """A probe and a job in processes of their own."""

    def __init__(self, settings: Settings, broker: EmbeddedBroker, probe: Started, job: Started) -> None:
        plain = KafkaSettings(bootstrap_servers=broker.bootstrap)
        self._settings, self.probe, self.job = settings.model_copy(update={"kafka": plain}), probe, job
        self._reader = LakeReader(settings.lake)

    def rounds(self) -> list[int]:
        """The rounds in the table, in order."""
        if not Path(self._settings.lake, "rounds", "_delta_log").exists():
            return []
        self._reader.refresh()
        return [row["round"] for row in self._reader.rows("SELECT round FROM rounds ORDER BY round")]

    def closed(self) -> list[int]:
        """The rounds that closed, by a plain client of the broker's plain port."""
        return [record.round for record in closed_of(self._settings)]

    def until(self, true: Callable[[], Any]) -> None:
        self.job.until(true, self.probe)

    def goes_on(self) -> None:
        """Wait for the rows of rounds that have not begun yet."""
        newest = max(self.closed(), default=-1)
        self.until(lambda: len([number for number in self.rounds() if number > newest]) >= 3)


@contextmanager
def _watching(settings: Settings, broker: EmbeddedBroker, folder: Path) -> Iterator[_Pair]:
    """A probe and a job that have begun; at the end nothing was lost, and neither process nor query started again."""
    environment = os.environ | environment_of(settings) | {"SPARK_LAUNCHER_OPTS": " ".join(SHORT_LIVED)}
    command = [sys.executable, "-P", "-m"]
    with (
        Started([*command, "streaming.probe"], folder / "probe.log", environment) as probe,
        Started([*command, "streaming.job"], folder / "job.log", environment) as job,
    ):
        pair = _Pair(settings, broker, probe, job)
        pair.until(lambda: len(pair.rounds()) >= 2)
        yield pair
        closed = pair.closed()
        pair.until(lambda: closed[-1] in pair.rounds())
        assert pair.rounds()[: len(closed)] == closed
        for process in (probe, job):
            process.end(signal.SIGTERM)
            assert "Traceback" not in process.said


def test_a_password_changes_on_the_broker_and_in_its_file_and_nothing_is_lost_or_starts_again(
    ends_sessions: Secured, tmp_path: Path, unique: str
) -> None:
    file = tmp_path / "password"
    ends_sessions.set_password("first")
    file.write_text("first\n")
    settings = _settings(ends_sessions.by_password(file), tmp_path, unique)
    with _watching(settings, ends_sessions.broker, tmp_path) as pair:
        # As Kubernetes does it: the broker knows the new one at once, the file a while later.
        ends_sessions.set_password("second")
        pair.until(lambda: "No round closes" in pair.probe.said)
        file.write_text("second\n")
        pair.goes_on()
        # The other order, with connections that are new.
        file.write_text("third\n")
        ends_sessions.set_password("third")
        ends_sessions.broker.stop()
        ends_sessions.broker.start()
        pair.goes_on()


def test_a_certificate_and_its_key_are_replaced_one_after_the_other_and_nothing_is_lost_or_starts_again(
    ends_sessions: Secured, tmp_path: Path, unique: str
) -> None:
    own = ends_sessions.ca_file.parent
    files = tmp_path / "files"
    files.mkdir()
    for name in ("client.pem", "client.key", "key-password"):
        shutil.copy(own / name, files / name)
    settings = _settings(ends_sessions.by_certificate(files), tmp_path, unique)
    with _watching(settings, ends_sessions.broker, tmp_path) as pair:
        certificate, key = client_certificate(own, "renewed", "another-one")
        trust(own, certificate)
        shutil.copy(certificate, files / "client.pem")
        ends_sessions.broker.stop()
        ends_sessions.broker.start()
        pair.until(lambda: "No round closes" in pair.probe.said)
        # Long enough for every process to ask for metadata meanwhile, the workers among them.
        threading.Event().wait(2 * _METADATA_S)
        shutil.copy(key, files / "client.key")
        (files / "key-password").write_text("another-one\n")
        pair.goes_on()
