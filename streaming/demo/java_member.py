"""Members that run Kafka's own programs, each in its own JVM of 60 to 100 MB.

The console consumer (jar set `tools`), the word count of the examples, a streams group (`streams`), and a worker of
Connect (`connect`) with two connectors: one reads the lines of a file, the other writes a topic's records into a file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import Request, urlopen

from kafka import TopicPartition
from kafka.admin import OffsetSpec

from streaming.demo.ports import free_port
from streaming.demo.stage import Stage
from streaming.jars import classpath, find_java
from streaming.process import GuardedProcess

JVM: list[str] = []
"""Further options of every tool's JVM. The tests set it, because theirs live for a second or two."""

_AUTO_COMMIT_MS = 1_000
"""Auto-commits happen also when nothing has moved, so they cannot be counted; only the final offsets are certain."""

_STOP_S = 20.0
"""Leaving takes a second at most, but a JVM that is still starting finishes its start first."""


class JvmMember:
    """One running program."""

    def __init__(self, stage: Stage, group: str, topic: str, jars: str, *command: str | Path) -> None:
        """Start its JVM.

        Args:
            stage: Where it plays.
            group: Its group, or the one whose commits say that everything is read.
            topic: What that group reads.
            jars: The jar set.
            command: Main class and arguments.
        """
        self._process = GuardedProcess([*java_command(jars), *command], log=stage.folder / "members.log")
        self._stage, self._topic, self._group = stage, topic, group

    @property
    def settled(self) -> bool:
        """Whether its group has committed the ends of the topic."""
        return has_read_all(self._stage, self._group, self._topic)

    def leave(self) -> None:
        """Stop the JVM; it commits and leaves its group."""
        self._process.stop(_STOP_S)


class JavaMember(JvmMember):
    """A consumer with Kafka's default strategies: [range, cooperative-sticky], so `range`, eager."""

    def __init__(self, topic: str, group: str, client_id: str, stage: Stage) -> None:
        """Start its JVM."""
        properties = {
            "client.id": client_id,
            "auto.commit.interval.ms": str(_AUTO_COMMIT_MS),
            "auto.offset.reset": "earliest",
            "session.timeout.ms": "10000",
        }
        command = ["org.apache.kafka.tools.consumer.ConsoleConsumer"]
        command += ["--bootstrap-server", stage.bootstrap, "--topic", topic, "--group", group]
        command += [part for key, value in properties.items() for part in ("--command-property", f"{key}={value}")]
        command += ["--formatter", "org.apache.kafka.tools.consumer.NoOpMessageFormatter"]
        super().__init__(stage, group, topic, "tools", *command)


def has_read_all(stage: Stage, group: str, topic: str) -> bool:
    """Whether a group has committed the ends of a topic to which nothing is written any more."""
    if not stage.drained.is_set():
        return False
    partitions = [TopicPartition(topic, number) for number in range(stage.partitions_of(topic))]
    ends = stage.admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    committed = stage.admin.list_group_offsets({group: partitions})[group]
    return all(tp in committed and committed[tp].offset >= ends[tp].offset for tp in partitions)


def properties_file(folder: Path, settings: Mapping[str, str]) -> Path:
    """Write the file that a program reads its settings from."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "settings.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), "utf-8")
    return file


def java_command(jars: str = "tools") -> list[str | Path]:
    """The beginning of a command line for one of Kafka's programs, with the jars of this set."""
    # Their work is small: a small heap, one collector thread, and no time spent on optimising code.
    flags = ["-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=ERROR"]
    return [find_java(), *flags, *JVM, "-cp", os.pathsep.join(map(str, classpath(jars)))]


WORDS = "streams-plaintext-input"
"""The topic that the application reads; the example does not let choose it."""

_COUNTS = "streams-wordcount-output"


class WordCountMember(JvmMember):
    """One instance of the application, with one thread, so one member."""

    def __init__(self, group: str, client_id: str, stage: Stage) -> None:
        """Start its JVM."""
        folder = stage.folder / client_id
        settings = {
            "application.id": group,
            "bootstrap.servers": stage.bootstrap,
            "client.id": client_id,
            "group.protocol": "streams",
            "state.dir": str(folder / "state"),
            "commit.interval.ms": "1000",
            # Without RocksDB, whose library would be 70 MB.
            "dsl.store.suppliers.class": (
                "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers"
            ),
        }
        stage.create_topics({_COUNTS: 1})
        main = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
        super().__init__(stage, group, WORDS, "streams", main, properties_file(folder, settings))


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


class ConnectWorker(JvmMember):
    """One running worker; it is settled when the sink has committed the ends of its topic."""

    def __init__(self, group: str, name: str, stage: Stage) -> None:
        """Start its JVM."""
        self._is_gone = False
        self._folder = stage.folder / name
        self._address = f"http://127.0.0.1:{free_port()}"
        sinks = {"consumer.session.timeout.ms": "6000", "consumer.heartbeat.interval.ms": "1500"}
        settings = worker_settings(stage.bootstrap, group, self._address, _DELAY_MS) | sinks
        super().__init__(stage, SINK_GROUP, TOPIC, "connect", WORKER, properties_file(self._folder, settings))

    @property
    def settled(self) -> bool:
        """Whether it is gone, or everything is read."""
        return self._is_gone or super().settled

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

    def _takes(self, name: str, config: dict[str, str]) -> bool:
        request = Request(  # noqa: S310 - our own address
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
