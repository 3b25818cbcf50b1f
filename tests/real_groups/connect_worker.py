"""Real workers of Kafka Connect, each a process with a port of its own on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import requests

from streaming.demo.java_member import WORKER, worker_settings
from streaming.demo.ports import free_port
from streaming.jars import classpath, find_java
from streaming.process import GuardedProcess
from tests.short_lived import SHORT_LIVED

Units = frozenset[tuple[str, str, int]]
"""Who runs what: URL of the worker, connector, and number of the task, or -1 for the connector itself."""

_TARGET_STATES = {"PAUSED": "PAUSED", "STOPPED": "STOPPED"}
_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


class ConnectWorker:
    """One worker. A context manager, at whose end it leaves."""

    def __init__(self, bootstrap: str, group: str, folder: Path, *, delay_ms: int = 0) -> None:
        self.group = group
        self.address = f"http://127.0.0.1:{free_port()}"
        self._folder = folder
        self._settings = worker_settings(bootstrap, group, self.address, delay_ms)
        self._process: GuardedProcess | None = None

    def __enter__(self) -> Self:
        self._folder.mkdir(exist_ok=True)
        settings = self._folder / "worker.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in self._settings.items()), "utf-8")
        jars = os.pathsep.join(map(str, classpath("connect")))
        command = [find_java(), "-Xmx256m", *SHORT_LIVED, "-cp", jars, WORKER, settings]
        self._process = GuardedProcess(command, log=self._folder / "log")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.stop(30)

    def leave(self) -> None:
        """Leave the group in an orderly way."""
        self.__exit__(None, None, None)
        self._process = None

    def crash(self) -> None:
        """End without a word to anybody, and all its children with it."""
        for process in [*psutil.Process(self._process.pid).children(recursive=True), psutil.Process(self._process.pid)]:
            process.kill()
        self.leave()

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

    def source(self, name: str, topic: str) -> bool:
        """Create a connector with one task that writes the lines of a file into a topic; False as above."""
        file = self._folder / f"{name}.in"
        file.touch()
        config = {"connector.class": _SOURCE, "topic": topic, "file": str(file)}
        return requests.put(f"{self.address}/connectors/{name}/config", json=config, timeout=30).ok

    def put(self, name: str, what: str) -> bool:
        """Let a connector "pause", "stop" or "resume"; False as above."""
        return requests.put(f"{self.address}/connectors/{name}/{what}", timeout=30).ok

    def configured(self) -> dict[str, tuple[int, str]]:
        """Number of tasks and target state of each connector, by the REST API of this worker."""
        status = self._get("/connectors?expand=status&expand=info") or {}
        return {
            name: (len(of["info"]["tasks"]), _TARGET_STATES.get(of["status"]["connector"]["state"], "STARTED"))
            for name, of in status.items()
        }

    def delete(self, name: str) -> bool:
        """Delete a connector; False as above."""
        return requests.delete(f"{self.address}/connectors/{name}", timeout=30).ok

    def running(self) -> Units:
        """What runs where, by the REST API of this worker."""
        status = self._get("/connectors?expand=status") or {}
        told = [(name, -1, of["status"]["connector"]) for name, of in status.items()]
        told += [(name, task["id"], task) for name, of in status.items() for task in of["status"]["tasks"]]
        return frozenset(
            (f"http://{of['worker_id']}/", name, number) for name, number, of in told if of["state"] == "RUNNING"
        )

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
