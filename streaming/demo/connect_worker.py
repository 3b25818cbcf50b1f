"""A worker of Kafka Connect in its own JVM (jar set `connect`), and the two connectors that its cluster runs.

One reads the lines of a file, the other writes a topic's records into a file.
"""

from __future__ import annotations

import json
from typing import Final
from urllib.error import URLError
from urllib.request import Request, urlopen

from streaming.demo.java_member import has_read_all, java_command
from streaming.demo.ports import free_port
from streaming.demo.stage import Stage
from streaming.process import GuardedProcess

TOPIC: Final = "readings"
"""What the source writes and the sink reads; its connectors are named after it."""

SINK_GROUP: Final = f"connect-{TOPIC}-sink"
"""The group of the sink's tasks: Connect's default for its name."""

_SINK_TASKS: Final = 2

UNITS: Final = 1 + 1 + 1 + _SINK_TASKS
"""A source with its task, and a sink with its own."""

_DELAY_MS: Final = 10_000
"""`scheduled.rebalance.max.delay.ms`: long enough that rounds see it; the default is five minutes."""

_LINES: Final = 20

_AGAIN_S: Final = 1.0
"""While workers rebalance, they refuse changes."""

_ANSWER_S: Final = 20.0

_STOP_S: Final = 20.0
"""It stops its tasks and leaves its group within a second; a JVM that is still starting finishes its start first."""


WORKER: Final = "org.apache.kafka.connect.cli.ConnectDistributed"
"""A worker's main class; it takes the file with its settings."""


def worker_settings(bootstrap: str, group: str, address: str, delay_ms: int) -> dict[str, str]:
    """The settings of a worker.

    Args:
        bootstrap: `HOST:PORT` of the Kafka cluster.
        group: Its group; the topic of its configuration is `GROUP-config`.
        address: URL of its REST API.
        delay_ms: For how long its leader waits for one that is gone.
    """
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "listeners": address,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        **{f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.partitions": "1" for kind in ("offset", "status")},
        # Without a look at every class of every jar.
        "plugin.discovery": "service_load",
        "offset.flush.interval.ms": "500",
        "scheduled.rebalance.max.delay.ms": str(delay_ms),
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "500",
    }


class ConnectWorker:
    """One running worker."""

    def __init__(self, group: str, name: str, stage: Stage) -> None:
        """Start its JVM."""
        self._stage, self._is_gone = stage, False
        self._folder = stage.folder / name
        self._folder.mkdir(parents=True, exist_ok=True)
        self._address = f"http://127.0.0.1:{free_port()}"
        sinks = {"consumer.session.timeout.ms": "6000", "consumer.heartbeat.interval.ms": "1500"}
        settings = worker_settings(stage.bootstrap, group, self._address, _DELAY_MS) | sinks
        file = self._folder / "worker.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), "utf-8")
        self._process = GuardedProcess([*java_command("connect"), WORKER, file], log=stage.folder / "members.log")

    @property
    def settled(self) -> bool:
        """Whether the sink has committed the ends of its topic."""
        return self._is_gone or has_read_all(self._stage, SINK_GROUP, TOPIC)

    def deploy(self) -> None:
        """Create both connectors, as soon as the worker takes them.

        Raises:
            StageOverError: The stage goes quiet before.
        """
        lines = self._folder / "lines.txt"
        lines.write_text("".join(f"line {number}\n" for number in range(_LINES)), "utf-8")
        of_files = "org.apache.kafka.connect.file.FileStream"
        source = {"connector.class": f"{of_files}SourceConnector", "file": str(lines), "topic": TOPIC}
        sink = {"connector.class": f"{of_files}SinkConnector", "file": str(self._folder / "read.txt"), "topics": TOPIC}
        for name, config in (("source", source), ("sink", sink | {"tasks.max": str(_SINK_TASKS)})):
            while not self._takes(f"{TOPIC}-{name}", config):
                self._stage.sleep(_AGAIN_S)

    def vanish(self) -> None:
        """End without a word to anybody."""
        self._is_gone = True
        self._process.kill()

    def leave(self) -> None:
        """Stop the JVM; it leaves its group."""
        self._process.stop(_STOP_S)

    def _takes(self, name: str, config: dict[str, str]) -> bool:
        request = Request(  # noqa: S310  (our own address)
            f"{self._address}/connectors/{name}/config",
            json.dumps(config).encode(),
            {"Content-Type": "application/json"},
            method="PUT",
        )
        try:
            with urlopen(request, timeout=_ANSWER_S):  # noqa: S310
                return True
        except (URLError, OSError):
            return False
