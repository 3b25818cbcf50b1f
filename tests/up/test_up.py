"""`evenkeel up` against somebody's own cluster, with a login: the whole as a user starts it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from streaming.devcluster.broker import EmbeddedBroker
from streaming.tables import LakeReader

_SECRET = "correct-horse-battery-staple"


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""  # it has ended meanwhile


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[EmbeddedBroker, int]]:
    """A broker with a plain port for the test and a port with a login for Evenkeel."""
    broker = EmbeddedBroker(tmp_path / "broker")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
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


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.timeout(420)
def test_up_watches_a_cluster_with_a_login_stops_when_told_and_shows_the_secret_nowhere(
    secured: tuple[EmbeddedBroker, int], tmp_path: Path
) -> None:
    broker, port = secured
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics({"orders": {"num_partitions": 2, "replication_factor": 1}}, wait_for_metadata=True)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="orders-check", enable_auto_commit=False)
    consumer.assign([TopicPartition("orders", 1)])
    consumer.commit({TopicPartition("orders", 1): OffsetAndMetadata(0, "", -1)})
    consumer.close()
    admin.close()

    lake = tmp_path / "lake"
    kafka = {
        "SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "SASL_MECHANISM": "PLAIN",
        "SASL_USERNAME": "watcher",
        "SASL_PASSWORD": _SECRET,
    }
    environment = {k: v for k, v in os.environ.items() if not k.startswith("EVENKEEL_") or k == "EVENKEEL_CACHE"}
    environment |= {f"EVENKEEL_KAFKA__{name}": value for name, value in kafka.items()}
    environment |= {"EVENKEEL_PROBE__INTERVAL_MS": "1000", "EVENKEEL_JOB__TRIGGER_MS": "1000"}
    command = ["up", "--bootstrap", f"127.0.0.1:{port}", "--lake", str(lake), "--cluster", "mine"]
    running = subprocess.Popen(
        [sys.executable, "-c", "from streaming.cli import main; main()", *command],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        reader = LakeReader(lake)
        sql = "SELECT cluster, group_id, state, verdict FROM group_health_current"
        pause = threading.Event()
        deadline = time.monotonic() + 300
        while not (rows := reader.rows(sql)) and time.monotonic() < deadline and running.poll() is None:
            pause.wait(0.5)
            reader.refresh()
        ours = [psutil.Process(running.pid), *psutil.Process(running.pid).children(recursive=True)]
        told = "\n".join(map(_command_line, ours))
        running.send_signal(signal.SIGTERM)
        output, _ = running.communicate(timeout=120)
    finally:
        running.kill()
    logs = "\n".join(file.read_text(errors="replace") for file in (lake / "_logs").glob("*.log"))
    assert rows == [{"cluster": "mine", "group_id": "orders-check", "state": "Empty", "verdict": "not_applicable"}], (
        logs
    )
    assert running.returncode == 0, output
    assert psutil.wait_procs(ours, timeout=30)[1] == []
    assert "Traceback" not in output + logs
    assert _SECRET not in output + told + logs
    written = [file for file in lake.rglob("*") if file.is_file() and _SECRET.encode() in file.read_bytes()]
    assert written == [], "the secret is in the lake or its checkpoint"
