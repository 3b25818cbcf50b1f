"""A real Kafka broker in a folder: one JVM with broker and controller (KRaft), for the demo and the tests."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from streaming.demo.ports import check_port_is_free, free_port
from streaming.exceptions import SetupError
from streaming.jars import classpath, find_java
from streaming.process import GuardedProcess

DEMO_OVERRIDES = {
    # Nobody kills this broker and starts it again. On a busy machine its heartbeats to its own controller may be
    # seconds late. A broker that is fenced for that unloads its groups, and a member that is joining one may be lost.
    "broker.session.timeout.ms": "20000",
}
"""Broker settings of the demo beyond those of every embedded broker; pass them to `EmbeddedBroker`."""

_HOST = "127.0.0.1"

_START_S = 120.0
"""A start takes 4 to 8 s on two idle cores, and several times that while Spark starts on the same machine."""

_STOP_S = 20.0
"""A clean shutdown takes 1 to 2 s. After this time the broker is killed; its log survives that."""

_ANSWER_MS = 2_000
"""Limit for one request of the readiness check; then the next attempt follows."""

_POLL_S = 0.1

_DEFAULTS: Mapping[str, str] = {
    # One broker holds every replica.
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # As in production: readers of the offsets log must cope with its 50 partitions.
    "offsets.topic.num.partitions": "50",
    # Nothing here needs 50 more partitions of transaction state; each costs files and start-up time.
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    # By default the first member of a group waits 3 s for others.
    "group.initial.rebalance.delay.ms": "200",
    # A killed member is only noticed after its session timeout, whose floor is 6 s by default: too long to wait here.
    "group.min.session.timeout.ms": "1000",
    # Members of a group with a broker-side assignor hear of a new target at their next heartbeat, every 5 s by default.
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "1000",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "1000",
    # A group may ask for a shorter session than the 45 s of the default, so that a killed instance is soon noticed.
    "group.streams.min.session.timeout.ms": "3000",
    # A typing error must not create a topic.
    "auto.create.topics.enable": "false",
    # The only controller need not wait for others.
    "controller.quorum.election.timeout.ms": "500",
    # A killed broker is admitted again only when its old registration expires: 3 s instead of 9.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # By default the controller writes a record every half second, so that lag of metadata can be measured: a fifth of
    # what an idle broker computes, and nothing here measures it.
    "metadata.max.idle.interval.ms": "0",
    # Recorded and replayed streams must not lose records to retention.
    "log.retention.hours": "-1",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "num.recovery.threads.per.data.dir": "2",
}
"""Broker settings that differ from Kafka's defaults; `overrides` win over them."""

_LOG4J = """\
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
logger.request.name = kafka.request.logger
logger.request.level = WARN
"""


class EmbeddedBroker:
    """One broker on 127.0.0.1 with data, settings and log in one folder.

    Used as a context manager, or with `start()` and `stop()`. When it is started again, it has the same topics, groups
    and ports. It dies with the process that started it, killed or not, and a terminal's Ctrl-C does not reach it: the
    starter stops it when the rest has stopped.

    Attributes:
        jvm: Further options of every broker's JVM. The tests set it, because their brokers live for seconds.
        bootstrap: `127.0.0.1:PORT`, known before the start and the same after every restart.
        log: File with what the broker printed.
    """

    jvm: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        heap: str = "512m",
        overrides: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare a broker; nothing runs yet.

        Args:
            folder: Created if missing. If a broker ran here before, its data is used again.
            port: Port for clients; None takes a free one.
            heap: The JVM's largest heap, as `-Xmx` wants it. 512 MB carries the demo and a backlog of 5 M commits.
            overrides: Broker settings (`server.properties`) that win over ours.
        """
        self.folder = folder
        self.log = folder / "broker.log"
        self._properties = folder / "server.properties"
        self._heap = heap
        self._overrides = dict(overrides or {})
        self._process: GuardedProcess | None = None
        self._port = port or free_port()
        self._controller_port = free_port()
        self.bootstrap = f"{_HOST}:{self._port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """The JVM's process id, or None while none runs."""
        running = self._process is not None and self._process.poll() is None
        if running and self._process is not None:
            return self._process.pid
        return None

    def start(self) -> None:
        """Start it and return once it answers; formats the folder the first time.

        Raises:
            SetupError: No Java, no jars, a port that is taken, a folder that cannot be written, or a JVM that died.
        """
        if self.pid is not None:
            return
        for port in (self._port, self._controller_port):
            check_port_is_free(port)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._write_settings()
            if not (self.folder / "data" / "meta.properties").exists():
                self._format()
            self._process = GuardedProcess(
                [*self._java(), f"-Xmx{self._heap}", "kafka.Kafka", self._properties], log=self.log
            )
        except OSError as error:
            message = f"The folder {self.folder} cannot hold a broker ({error.strerror or error}): choose another."
            raise SetupError(message) from error
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Shut it down cleanly (SIGTERM), and kill it if that takes too long; does nothing if it is down."""
        if self._process is not None:
            self._process.stop(_STOP_S)
            self._process = None

    def kill(self) -> None:
        """End it as a crash would (SIGKILL); does nothing if it is down."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _write_settings(self) -> None:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{_HOST}:{self._controller_port}",
            "listeners": f"PLAINTEXT://{_HOST}:{self._port},CONTROLLER://{_HOST}:{self._controller_port}",
            "advertised.listeners": f"PLAINTEXT://{_HOST}:{self._port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.folder / "data"),
            **_DEFAULTS,
            **self._overrides,
        }
        lines = (f"{key}={_escaped(value)}" for key, value in settings.items())
        self._properties.write_text("\n".join(lines) + "\n", "utf-8")
        (self.folder / "log4j2.properties").write_text(_LOG4J, "utf-8")

    def _java(self) -> list[str | Path]:
        return [
            find_java(),
            # Fewer threads and less memory than G1; pauses of a 512 MB heap are short.
            "-XX:+UseSerialGC",
            *self.jvm,
            "-Djava.awt.headless=true",
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
            "-cp",
            os.pathsep.join(map(str, classpath("broker"))),
        ]

    def _format(self) -> None:
        tool: list[str | Path] = ["kafka.tools.StorageTool", "format", "-t", _cluster_id(), "-c", self._properties]
        with self.log.open("ab") as log:
            code = subprocess.run(
                [*self._java(), "-XX:TieredStopAtLevel=1", *tool], stdout=log, stderr=log, check=False
            ).returncode
        if code:
            message = f"The folder {self.folder} cannot hold a broker, see {self.log}: choose another."
            raise SetupError(message)

    def _wait_until_it_answers(self) -> None:
        process = self._process
        assert process is not None  # noqa: S101 - only called by start
        deadline = time.monotonic() + _START_S
        while not self._answers():
            if process.poll() is not None:
                message = f"The broker ended while starting, see its log {self.log}: {process.last_line()}"
                raise SetupError(message)
            if time.monotonic() > deadline:
                message = (
                    f"The broker did not answer within {_START_S:.0f} s, see its log {self.log}: {process.last_line()}"
                )
                raise SetupError(message)
            time.sleep(_POLL_S)

    def _answers(self) -> bool:
        """Whether this broker has joined its cluster: before that it accepts connections but refuses requests."""
        try:
            socket.create_connection((_HOST, self._port), 1).close()
            admin = KafkaAdminClient(
                bootstrap_servers=self.bootstrap, bootstrap_timeout_ms=_ANSWER_MS, request_timeout_ms=_ANSWER_MS
            )
        except (OSError, KafkaError):
            return False
        try:
            return bool(admin.describe_cluster()["brokers"])
        except KafkaError:
            return False
        finally:
            admin.close()


def _escaped(value: str) -> str:
    """Escape backslashes, which Java's properties format would drop."""
    return value.replace("\\", "\\\\")


def _cluster_id() -> str:
    """A new id; it begins with "A", because Kafka refuses a leading "-", which would look like an option."""
    return urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
