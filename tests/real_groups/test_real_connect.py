"""A real Kafka Connect cluster: its workers' group, and the group of its sink's tasks, in both modes."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
import requests
from kafka import KafkaAdminClient

from streaming.demo.ports import free_port
from streaming.jars import classpath
from streaming.java import find_java
from streaming.process import GuardedProcess
from tests.probe.witness import Cluster
from tests.real_groups.both_modes import BothModes
from tests.real_groups.followed import until
from tests.short_lived import SHORT_LIVED

pytestmark = [pytest.mark.kafka, pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(900)]


_WORKER = "org.apache.kafka.connect.cli.ConnectDistributed"
_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"


class ConnectWorker:
    """One worker. A context manager, at whose end it leaves."""

    def __init__(self, bootstrap: str, group: str, folder: Path) -> None:
        self.group = group
        self.address = f"http://127.0.0.1:{free_port()}"
        self._folder = folder
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "listeners": self.address,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            **{f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("config", "offset", "status")},
            **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
            **{f"{kind}.storage.partitions": "1" for kind in ("offset", "status")},
            "plugin.discovery": "only_scan",
            "offset.flush.interval.ms": "500",
            "scheduled.rebalance.max.delay.ms": "0",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "500",
        }
        self._process: GuardedProcess | None = None

    def __enter__(self) -> Self:
        self._folder.mkdir()
        settings = self._folder / "worker.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in self._settings.items()), "utf-8")
        jars = os.pathsep.join(map(str, classpath("connect")))
        command = [find_java(), "-Xmx256m", *SHORT_LIVED, "-cp", jars, _WORKER, settings]
        self._process = GuardedProcess(command, log=self._folder / "log")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.stop(30)

    def answers(self) -> bool:
        """Whether the worker has joined its group and takes requests."""
        return self._get("/connectors") is not None

    def sink(self, name: str, topic: str, tasks: int) -> bool:
        """Create a connector that writes a topic's records into a file; False while the workers' group rebalances.

        Args:
            name: Name of the connector, and of its tasks' group (by default that would begin with "connect-").
            topic: What it reads.
            tasks: How many tasks, each a member of the group.
        """
        config = {
            "connector.class": _SINK,
            "topics": topic,
            "tasks.max": str(tasks),
            "file": str(self._folder / f"{name}.txt"),
            "consumer.override.group.id": name,
        }
        answer = requests.put(f"{self.address}/connectors/{name}/config", json=config, timeout=30)
        return answer.ok

    def running_tasks(self, name: str) -> int:
        """How many of a connector's tasks run, on whatever worker."""
        status = self._get(f"/connectors/{name}/status") or {}
        return sum(task["state"] == "RUNNING" for task in status.get("tasks", ()))

    def _get(self, path: str) -> Any:
        try:
            answer = requests.get(self.address + path, timeout=30)
        except requests.RequestException:
            return None
        return answer.json() if answer.ok else None


PARTITIONS, RECORDS = 4, 5


def test_workers_are_members_without_partitions_and_a_sink_is_a_group_like_any_other(
    bootstrap: str, unique: str, tmp_path: Path
) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    cluster = Cluster(bootstrap, unique, admin)
    topic = cluster.topic("orders", PARTITIONS)
    cluster.produce(topic, [RECORDS] * PARTITIONS)
    workers, sink = f"{unique}-workers", f"{unique}-sink"
    with (
        BothModes(bootstrap, unique) as modes,
        ConnectWorker(bootstrap, workers, tmp_path / "first") as first,
    ):
        until(first.answers)
        until(lambda: first.sink(sink, topic, tasks=2))
        until(lambda: first.running_tasks(sink) == 2)
        _read_to_the_end(admin, sink)
        modes.round()
        modes.round()
        for group in (workers, sink):
            verdicts = ("verdict", "verdict_reason")  # (met with its assignment)
            found = {at: of for at, of in modes.differing(group, decided=False).items() if set(of) - set(verdicts)}
            assert found == {}
        assert _shape(modes, workers) == (1, 0, "not_applicable")
        assert _shape(modes, sink)[:2] == (2, PARTITIONS)

        with ConnectWorker(bootstrap, workers, tmp_path / "second") as second:
            until(second.answers)
            until(lambda: modes.round() or _shape(modes, workers)[0] == 2)
            # Tasks are said to run until the workers have agreed who runs them from now on, and start again then.
            until(lambda: modes.round() or _shape(modes, sink) == (2, PARTITIONS, "identical"))
            until(lambda: first.running_tasks(sink) == 2)
            _read_to_the_end(admin, sink)
            modes.round()
            modes.round()
            assert modes.differing(workers, decided=False) == {}
            assert modes.differing(sink, decided=False) == {}
            assert _shape(modes, workers) == (2, 0, "not_applicable")
            assert _shape(modes, sink) == (2, PARTITIONS, "identical")
        for mode in (modes.log, modes.admin):
            assert all(row.verdict == "not_applicable" for row in mode.drift(workers).values())
            assert all(row.verdict != "drifted" for row in mode.drift(sink).values())
            assert mode.health(workers).findings == mode.health(sink).findings == ()
    admin.close()


def _shape(modes: BothModes, group: str) -> tuple[int, int, str]:
    """Members, assigned partitions and verdict, the same in both modes."""
    by_log, seen = modes.log.health(group), modes.admin.health(group)
    shape = (by_log.members, by_log.assigned_partitions, by_log.verdict)
    return shape if (seen.members, seen.assigned_partitions) == shape[:2] else (-1, -1, seen.verdict)


def _read_to_the_end(admin: KafkaAdminClient, group: str) -> None:
    def read() -> bool:
        offsets = admin.list_group_offsets(group)
        of_group = offsets.get(group, offsets)
        return sorted(meta.offset for meta in of_group.values()) == [RECORDS] * PARTITIONS

    until(read)
