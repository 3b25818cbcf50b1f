"""`evenkeel up` against a cluster with a login, started from the installed wheel as a user starts it.

Most tests share one run (the fixture `life`): its processes are killed, then `up` is stopped. They check what the run
left behind.
"""

from __future__ import annotations

import signal
import socket
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from streaming.config import KafkaSettings, Settings
from streaming.demo.broker import EmbeddedBroker
from streaming.demo.ports import free_port
from streaming.places import cache_folder
from streaming.spark import class_archive
from streaming.tables import TABLES, LakeReader
from tests.probe.witness import closed_of
from tests.short_lived import SHORT_LIVED
from tests.started import Started, get

if TYPE_CHECKING:
    from tests.installed import Installed

pytest_plugins = ("tests.installed",)

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("installed"),
    pytest.mark.turn(1),
]

_SECRET = "correct-horse-battery-staple"


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""  # it has ended in the meantime


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedBroker, int]]:
    """A broker with a plain port for the test and a port with a login for Evenkeel."""
    broker = EmbeddedBroker(tmp_path_factory.mktemp("secured") / "broker")
    port = free_port()
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    plain, secure = f"PLAINTEXT://{broker.bootstrap}", f"SASL_PLAINTEXT://127.0.0.1:{port}"
    broker._overrides |= {
        "listeners": f"{plain},CONTROLLER://127.0.0.1:{broker._controller_port},{secure}",
        "advertised.listeners": f"{plain},{secure}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{login} user_watcher="{_SECRET}";',
    }
    with broker:
        yield broker, port


class _Up(Started):
    """A running `evenkeel up`; without a terminal, so that it prints the logs."""

    def __init__(self, installed: Installed, elsewhere: Path, folder: Path, port: int, page: int) -> None:
        self.lake = folder / "lake"
        self.reader = LakeReader(self.lake)
        self.back: set[str] = set()
        kafka = {
            "SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "SASL_MECHANISM": "PLAIN",
            "SASL_USERNAME": "watcher",
            "SASL_PASSWORD": _SECRET,
        }
        settings = {f"EVENKEEL_KAFKA__{name}": value for name, value in kafka.items()}
        settings |= {"EVENKEEL_PROBE__INTERVAL_MS": "2000", "EVENKEEL_JOB__TRIGGER_MS": "2000"}
        settings |= {"EVENKEEL_SERVE__LISTEN": f"127.0.0.1:{page}"}
        # With the archive of classes that the other tests' sessions have.
        shorter = {"EVENKEEL_CACHE": str(cache_folder()), "SPARK_LAUNCHER_OPTS": " ".join(SHORT_LIVED)}
        command = ["up", "--bootstrap", f"127.0.0.1:{port}", "--lake", str(self.lake), "--cluster", "mine"]
        environment = installed.environment | settings | shorter
        super().__init__([installed.bin / "evenkeel", *command], folder / "output", environment, elsewhere)

    def of(self, *words: str) -> set[psutil.Process]:
        """The running processes whose command lines contain all these words, without guards."""
        told = {process: _command_line(process) for process in self.below()}
        return {process for process, line in told.items() if all(w in line for w in words) and "_guard.py" not in line}

    def kill_kinds(self, kinds: dict[str, tuple[str, str]]) -> None:
        """Kill all processes of these kinds at once, and wait for their successors."""
        old = {name: self.until(lambda words=words: self.of(*words)) for name, words in kinds.items()}
        for process in set().union(*old.values()):
            process.kill()
        for name, words in kinds.items():
            self.until(lambda name=name, words=words: self.of(*words) - old[name])
            self.back.add(name)

    def newest_round(self) -> int:
        self.reader.refresh()
        return int(self.reader.rows("SELECT coalesce(max(round), -1) AS newest FROM rounds")[0]["newest"])


def _repeated(reader: LakeReader) -> dict[str, int]:
    """Number of duplicate rows by table: key and order of a key's rows must be unique."""
    found = {}
    for table in TABLES:
        columns = ", ".join(f'"{name}"' for name in dict.fromkeys(table.key + table.newest_by))
        rows = f"SELECT count(*) AS n FROM {table.name} GROUP BY {columns}"
        found[table.name] = reader.rows(f"SELECT coalesce(sum(n - 1), 0)::INT AS more FROM ({rows})")[0]["more"]
    return {name: more for name, more in found.items() if more}


@contextmanager
def _commits(bootstrap: str) -> Iterator[None]:
    """A group that commits all the time."""
    stop = threading.Event()
    partitions = [TopicPartition("orders", number) for number in range(2)]

    def commit() -> None:
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id="orders-check", enable_auto_commit=False)
        consumer.assign(partitions)
        while not stop.wait(0.2):
            consumer.commit({partition: OffsetAndMetadata(0, "", -1) for partition in partitions})
        consumer.close()

    thread = threading.Thread(target=commit)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@dataclass(frozen=True)
class _Life:
    """What the run left behind.

    Attributes:
        up: The command, which has ended.
        page: The port of its server.
        port: The broker's port with the login.
        second: A second job for the same cluster and lake.
        closed: Rounds that closed.
        told: The command lines of its processes.
        of_the_server: The environment of the server's process.
    """

    up: _Up
    page: int
    port: int
    second: subprocess.CompletedProcess[str]
    closed: set[int]
    told: str
    of_the_server: dict[str, str]


@pytest.fixture(scope="module")
def life(
    secured: tuple[EmbeddedBroker, int],
    installed: Installed,
    elsewhere: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> _Life:
    broker, port = secured
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics({"orders": {"num_partitions": 2, "replication_factor": 1}}, wait_for_metadata=True)
    admin.close()
    page = free_port()
    with _commits(broker.bootstrap), _Up(installed, elsewhere, tmp_path_factory.mktemp("up"), port, page) as up:
        up.until(lambda: up.newest_round() >= 0)
        run = ["run", "--bootstrap", broker.bootstrap, "--lake", str(up.lake), "--cluster", "mine"]
        second = installed.run("evenkeel", *run, cwd=elsewhere)
        up.kill_kinds(
            {
                "probe": ("-m", "streaming.probe"),
                "server": ("-m", "streaming.serve"),
                "the job's JVM": ("java", "SparkSubmit"),
            }
        )
        newest = up.newest_round()
        up.until(lambda: up.newest_round() > newest + 2)
        up.until(lambda: get(f"http://127.0.0.1:{page}/")[0] == 200)
        told = "\n".join(map(_command_line, up.below()))
        (of_the_server,) = up.of("-m", "streaming.serve")
        environment = of_the_server.environ()
        ours = [psutil.Process(up.pid), *up.below()]
        up.stop()
    assert psutil.wait_procs(ours, timeout=60)[1] == []
    watched = Settings(kafka=KafkaSettings(bootstrap_servers=broker.bootstrap))
    closed = {record.round for record in closed_of(watched)}
    return _Life(up, page, port, second, closed, told, environment)


def test_every_process_that_is_killed_is_back(life: _Life) -> None:
    assert life.up.back == {"probe", "server", "the job's JVM"}
    files = sorted((life.up.lake / "_logs" / "mine").glob("*.log*"))
    assert [file.stem for file in files] == ["job", "probe", "server", "up"]
    assert life.up.said.rstrip().endswith("all processes have ended")
    assert "job     | " in life.up.said
    # The job's last message about its killed JVM is one sentence, which `up` repeats.
    assert "job ended with code 1 (Spark's JVM is gone" in life.up.said


def test_the_tables_are_whole_whatever_was_killed(life: _Life) -> None:
    # No duplicates and no losses: every round that closed before the newest in the tables is there, and was judged.
    reader = life.up.reader
    newest = life.up.newest_round()
    rounds = {row["round"] for row in reader.rows("SELECT round FROM rounds")}
    assert rounds == {number for number in life.closed if number <= newest}
    assert _repeated(reader) == {}
    sql = "SELECT cluster, group_id, state, verdict FROM group_health_current"
    told_of = {"cluster": "mine", "group_id": "orders-check", "state": "Empty", "verdict": "not_applicable"}
    assert reader.rows(sql) == [told_of]


def test_the_secret_is_in_no_output_no_command_line_and_no_file(life: _Life) -> None:
    logs = "\n".join(file.read_text(errors="replace") for file in (life.up.lake / "_logs" / "mine").glob("*.log*"))
    assert _SECRET not in life.up.said + life.told + logs
    assert "EVENKEEL_LAKE" in life.of_the_server
    assert _SECRET not in "".join(life.of_the_server.values())
    written = [file for file in life.up.lake.rglob("*") if file.is_file() and _SECRET.encode() in file.read_bytes()]
    assert written == [], "the secret is in the lake or its checkpoint"


def test_its_logs_are_this_users_alone_and_its_tables_are_as_any_file(life: _Life, tmp_path: Path) -> None:
    logs = life.up.lake / "_logs" / "mine"
    assert stat.S_IMODE(logs.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in logs.iterdir()} == {0o600}
    (tmp_path / "any").mkdir()
    assert stat.S_IMODE((life.up.lake / "rounds").stat().st_mode) == stat.S_IMODE((tmp_path / "any").stat().st_mode)


def test_nothing_of_the_working_folder_is_imported(life: _Life, elsewhere: Path) -> None:
    assert "watching cluster mine" in life.up.said
    assert not (elsewhere / "trapped").exists()


def test_its_jvm_has_the_configuration_of_the_wheel(life: _Life, installed: Installed) -> None:
    [conf] = installed.bin.parent.glob("lib/python*/site-packages/streaming/conf")
    assert f"--properties-file {conf}/spark-defaults.conf" in life.told
    assert f"-Dlog4j2.configurationFile={conf}/log4j2.properties" in life.told
    # The archive of the checkout: another environment of the same Python and Spark needs none of its own.
    assert f"-XX:SharedArchiveFile={class_archive()}" in life.told


def test_a_second_job_on_its_lake_is_refused(life: _Life) -> None:
    assert life.second.returncode == 2
    sentence = f"Another job for the cluster 'mine' with the lake {life.up.lake} runs (process "
    assert life.second.stderr.startswith(sentence)
    assert life.second.stderr.count("\n") == 1


@pytest.mark.nightly
def test_with_another_program_on_the_servers_port_the_rest_goes_on_and_nothing_outlives_a_kill(
    life: _Life, installed: Installed, elsewhere: Path, tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # an earlier connection may still be closing
        taken.bind(("127.0.0.1", life.page))
        taken.listen()
        with _Up(installed, elsewhere, tmp_path, life.port, life.page) as again:
            again.until(lambda: "server cannot run: The server cannot listen on" in again.said)
            again.until(lambda: again.of("java", "SparkSubmit"))
            ours = again.below()
            again.end(signal.SIGKILL)
    assert psutil.wait_procs(ours, timeout=60)[1] == []
