"""The embedded broker is a real one, keeps its data, and leaves nothing behind; its stage, its ports."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import psutil
import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from streaming.demo import ports
from streaming.demo.broker import EmbeddedBroker
from streaming.demo.ports import free_port
from streaming.demo.stage import Stage
from streaming.exceptions import SetupError


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


@pytest.mark.kafka
@pytest.mark.turn(3)
@pytest.mark.nightly
def test_a_topic_survives_a_restart_a_kill_and_a_new_start_on_the_same_port(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "cluster", overrides={"num.partitions": "7"}) as broker:
        assert "num.partitions=7\n" in (tmp_path / "cluster" / "server.properties").read_text()
        _create(broker, "kept")
        before = broker.bootstrap
        broker.stop()
        broker.start()
        assert _topics(broker) >= {"kept"}
        broker.kill()
        assert broker.pid is None
        broker.start()
        assert broker.bootstrap == before
        assert _topics(broker) >= {"kept"}


@pytest.mark.kafka
@pytest.mark.turn(3)
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
    pid = int(starter.stdout.readline())
    guard = psutil.Process(pid).parent()
    assert guard is not None
    starter.send_signal(death)
    starter.wait(60)
    assert _gone(pid, 60)
    assert _gone(guard.pid, 60)


@pytest.mark.kafka
@pytest.mark.turn(3)
def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(SetupError, match=f"Port {port} of 127.0.0.1 is in use: stop the program that uses"):
            EmbeddedBroker(tmp_path, port=port).start()


@pytest.mark.kafka
@pytest.mark.turn(3)
@pytest.mark.nightly
def test_a_broker_that_dies_while_starting_names_its_last_words(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path, overrides={"num.io.threads": "none"})
    with pytest.raises(SetupError, match=r"cannot hold a broker|ended while starting"):
        broker.start()
    assert broker.pid is None


@pytest.mark.kafka
@pytest.mark.turn(3)
def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    with pytest.raises(SetupError, match="cannot hold a broker"):
        EmbeddedBroker(file / "cluster").start()


@pytest.mark.kafka
def test_a_member_whose_thread_dies_is_a_failure_of_the_play(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(bootstrap, tmp_path)
    monkeypatch.setattr(threading, "excepthook", stage.thread_died)

    def lose_its_broker() -> None:
        raise OSError("connection lost")

    member = threading.Thread(target=lose_its_broker, name="billing-1")
    member.start()
    member.join()
    stage.close()

    assert stage.failures == ["The thread billing-1 died: OSError('connection lost')"]
    written = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text("utf-8").splitlines()]
    assert [(of["what"], of["error"]) for of in written if "error" in of] == [("failed", "OSError('connection lost')")]


_CHILD = """\
import sys
from streaming.demo import ports
wanted = int(sys.argv[1])
drawn = iter([wanted])
chance = ports._RANDOM.randint
ports._RANDOM.randint = lambda first, last: next(drawn, None) or chance(first, last)
print(ports.free_port(), flush=True)
sys.stdin.read()
"""
"""Draws a given number first; ends with its input."""


def _draw(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    """Let the next random numbers be these."""
    drawn, chance = iter(numbers), random.SystemRandom()
    monkeypatch.setattr(ports._RANDOM, "randint", lambda first, last: next(drawn, None) or chance.randint(first, last))


def test_a_choice_of_ports_leaves_seeded_random_numbers_as_they_were() -> None:
    before = random.getstate()
    assert 20_000 <= free_port(neighbours=2) <= 32_000
    assert random.getstate() == before


def test_a_number_drawn_twice_is_given_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    _draw(monkeypatch, port, port)
    assert free_port() != port


def test_ports_below_that_a_server_takes_as_well_are_given_out_with_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port(neighbours=2)
    _draw(monkeypatch, port - 2, port - 1)
    assert free_port() not in range(port - 2, port + 1)
    _draw(monkeypatch, port + 2)
    assert free_port(neighbours=2) != port + 2


def test_another_process_gets_a_port_only_after_its_holder_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = free_port()
    command = [sys.executable, "-c", _CHILD, str(ours)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        theirs = int(child.stdout.readline())
        assert theirs != ours
        _draw(monkeypatch, theirs)
        assert free_port() != theirs
    _draw(monkeypatch, theirs)
    assert free_port() == theirs
