"""The embedded broker is a real one, keeps its data, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from streaming.demo.broker import EmbeddedBroker
from streaming.exceptions import SetupError

pytestmark = [pytest.mark.kafka, pytest.mark.turn(3)]


def _topics(broker: EmbeddedBroker) -> set[str]:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        return set(admin.list_topics())
    finally:
        admin.close()


def _create(broker: EmbeddedBroker, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        admin.create_topics([NewTopic(topic, 1, 1)])
    finally:
        admin.close()


def _gone(pid: int, within_s: float) -> bool:
    try:
        psutil.Process(pid).wait(within_s)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True


@pytest.mark.nightly
def test_a_topic_survives_a_restart_a_kill_and_a_new_start_on_the_same_port(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "cluster", overrides={"num.partitions": "7"}) as broker:
        assert "num.partitions=7\n" in (tmp_path / "cluster" / "server.properties").read_text()
        _create(broker, "kept")
        before = broker.bootstrap
        broker.restart()
        assert _topics(broker) >= {"kept"}
        broker.kill()
        assert broker.pid is None
        broker.start()
        assert broker.bootstrap == before
        assert _topics(broker) >= {"kept"}


@pytest.mark.parametrize("death", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)])
def test_the_broker_dies_with_the_process_that_started_it(tmp_path: Path, death: signal.Signals) -> None:
    program = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        from streaming.demo.broker import EmbeddedBroker
        from tests.prepared_brokers import use_what_is_prepared
        use_what_is_prepared()
        broker = EmbeddedBroker(Path(sys.argv[1]))
        broker.start()
        print(broker.pid, flush=True)
        time.sleep(600)
        """
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    guard = psutil.Process(pid).parent()
    assert guard is not None
    starter.send_signal(death)
    starter.wait(60)
    assert _gone(pid, 60)
    assert _gone(guard.pid, 60)


def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(SetupError, match=f"Port {port} of 127.0.0.1 is in use: stop the program that uses"):
            EmbeddedBroker(tmp_path, port=port).start()


@pytest.mark.nightly
def test_a_broker_that_dies_while_starting_names_its_last_words(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path, overrides={"num.io.threads": "none"})
    with pytest.raises(SetupError, match=r"cannot hold a broker|ended while starting"):
        broker.start()
    assert broker.pid is None


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    with pytest.raises(SetupError, match="cannot hold a broker"):
        EmbeddedBroker(file / "cluster").start()
