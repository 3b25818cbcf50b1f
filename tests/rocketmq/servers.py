"""Name servers and brokers of RocketMQ in a folder, each a JVM of its own, for the demo and the tests."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from streaming.demo.ports import free_port
from streaming.exceptions import SetupError
from streaming.jars import classpath, find_java
from streaming.process import GuardedProcess
from streaming.rocketmq import Credentials
from tests.rocketmq.commands import CommandRefused, Commands

_HOST = "127.0.0.1"

_START_S = 120.0
"""A start takes 1 to 3 s on two idle cores."""

_POLL_S = 0.05

RELEASE = "5.5.0"

_CLUSTER = "evenkeel"

_JVM = (
    *("-Xms32m", "-Xmx256m", "-XX:MaxDirectMemorySize=128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    "-Djava.awt.headless=true",
)
"""A name server takes 110 MB so, a broker 140 MB."""

_BROKER: Mapping[str, str] = {
    "brokerClusterName": _CLUSTER,
    "brokerId": "0",
    "bindAddress": _HOST,
    "brokerIP1": _HOST,
    "brokerIP2": _HOST,
    # A typing error must not create a topic.
    "autoCreateTopicEnable": "false",
    "autoCreateSubscriptionGroup": "true",
    # Files of a few MB instead of a GB each.
    "mappedFileSizeCommitLog": "4194304",
    "mappedFileSizeConsumeQueue": "60000",
    "maxHashSlotNum": "5000",
    "maxIndexNum": "20000",
    "timerWheelEnable": "false",
    # Nothing here fills a disk, and a full one of somebody else must not stop it.
    "diskMaxUsedSpaceRatio": "98",
    # Offsets are written to disk every 5 s by default; 1 s after a kill is what a member would lose.
    "flushConsumerOffsetInterval": "1000",
    # Until it writes for the first time, the thread for metrics of transactions runs in a busy loop: 10 s by default.
    "transactionMetricFlushInterval": "200",
}
"""Settings of a broker that differ from the defaults of its release."""

_LOGGING = '<configuration><root level="OFF"/></configuration>'
"""Otherwise each server writes some 240 lines to standard output, and more into files in its home folder."""


class Server:
    """One name server or broker.

    Attributes:
        name: "name-server-0", or a broker's name.
        address: "127.0.0.1:PORT".
        folder: Its settings, log and data.
        jvm: Further options of every server's JVM. The tests set it, because their servers live for seconds.
    """

    jvm: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str, port: int, folder: Path, main: str, jars: str, options: Sequence[str] = ()) -> None:
        self.name = name
        self.address = f"{_HOST}:{port}"
        self.folder = folder
        self._port = port
        self._main = main
        self._jars = jars
        self._options = tuple(options)
        self._process: GuardedProcess | None = None
        self.settings: dict[str, str] = {}

    @property
    def pid(self) -> int | None:
        """The JVM's process id; None while none runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def begin(self) -> None:
        """Start the JVM; does nothing if it runs.

        Raises:
            SetupError: No Java, no jars, or a folder that cannot be written.
        """
        if self.pid is not None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "rmq.logback-test.xml").write_text(_LOGGING, "utf-8")
            # A broker rewrites this file when a setting changes.
            settings = self.folder / "settings.properties"
            settings.write_text("".join(f"{name}={value}\n" for name, value in self.settings.items()), "utf-8")
            self._process = GuardedProcess(
                [
                    find_java(),
                    *_JVM,
                    *self.jvm,
                    *self._options,
                    # It must be there; logs go below it, and a native library into the temporary folder.
                    *(f"-D{name}={self.folder}" for name in ("rocketmq.home.dir", "user.home", "java.io.tmpdir")),
                    "-cp",
                    os.pathsep.join(map(str, (self.folder, *classpath(self._jars)))),
                    self._main,
                    "-c",
                    settings,
                ],
                log=self.folder / "server.log",
            )
        except OSError as error:
            raise SetupError(
                f"The folder {self.folder} cannot hold a server ({error.strerror or error}): choose another."
            ) from error

    def wait(self) -> None:
        """Return when it accepts connections.

        Raises:
            SetupError: It has ended, or takes too long.
        """
        process = self._process
        assert process is not None
        deadline = time.monotonic() + _START_S
        while True:
            try:
                socket.create_connection((_HOST, self._port), 1).close()
            except OSError:
                pass
            else:
                return
            if process.poll() is not None or time.monotonic() > deadline:
                what = "ended while starting" if process.poll() is not None else f"did not start in {_START_S:.0f} s"
                raise SetupError(f"{self.name} {what}, see its log {process.log}: {process.last_line()}")
            time.sleep(_POLL_S)

    def kill(self) -> None:
        """End it as a crash would, because a clean stop takes 7 to 13 s; does nothing if it is down."""
        if self._process is not None:
            self._process.kill()
            self._process = None


class EmbeddedRocketMQ:
    """A cluster on 127.0.0.1. A context manager; its servers end with the process that started them.

    (The port for replication listens on all interfaces whatever the settings say: not for an open network.)

    Attributes:
        name_servers: By number.
        brokers: By name.
    """

    def __init__(
        self,
        folder: Path,
        *,
        brokers: Sequence[str] = ("broker-a", "broker-b"),
        name_servers: int = 1,
        registers: Mapping[str, Sequence[int]] | None = None,
        settings: Mapping[str, str] | None = None,
        options: Sequence[str] = ("-Dtls.server.mode=disabled",),
        jars: str = f"rocketmq-server-{RELEASE}",
        credentials: Credentials | None = None,
        tls: Any = None,
    ) -> None:
        """Prepare a cluster; nothing runs yet.

        Args:
            folder: Created if missing; a folder per server in it.
            brokers: Names of the brokers, each a master.
            name_servers: How many.
            registers: Numbers of the name servers that a broker registers with, by its name; default: all.
            settings: Settings of all brokers that win over ours.
            options: Further options of all JVMs. (With TLS on offer each start takes seconds longer.)
            jars: Set of `conf/jars.toml` to run.
            credentials: With which commands are signed.
            tls: The `ssl.SSLContext` with which commands are sent.
        """
        self._secrets: dict[str, Any] = {"credentials": credentials, "tls": tls}
        self.name_servers: list[Server] = []
        for number in range(name_servers):
            name = f"name-server-{number}"
            main = "org.apache.rocketmq.namesrv.NamesrvStartup"
            server = Server(name, free_port(), folder / name, main, jars, options)
            server.settings = {"listenPort": server.address.rpartition(":")[2], "bindAddress": _HOST}
            self.name_servers.append(server)
        self.brokers: dict[str, Server] = {}
        for name in brokers:
            # It takes the port two below its own as well; the one between is for replication.
            port = free_port(neighbours=2)
            broker = Server(name, port, folder / name, "org.apache.rocketmq.broker.BrokerStartup", jars, options)
            known = range(name_servers) if registers is None or name not in registers else registers[name]
            broker.settings = {
                **_BROKER,
                "brokerName": name,
                "listenPort": str(port),
                "haListenPort": str(port - 1),
                "namesrvAddr": ";".join(self.name_servers[number].address for number in known),
                "storePathRootDir": str(folder / name / "store"),
                "storePathCommitLog": str(folder / name / "store" / "commitlog"),
                **(settings or {}),
            }
            self.brokers[name] = broker

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def addresses(self) -> tuple[str, ...]:
        """Addresses of the name servers."""
        return tuple(server.address for server in self.name_servers)

    def commands(self) -> Commands:
        """Commands to its servers; the caller closes them."""
        return Commands(self.addresses, **self._secrets)

    def start(self) -> None:
        """Start all that do not run, and return when every broker is registered.

        Raises:
            SetupError: A server did not start.
        """
        try:
            for server in self.name_servers:
                server.begin()
            for server in self.name_servers:
                server.wait()
            # A broker that finds no name server at its start tries again after 10 s.
            for broker in self.brokers.values():
                broker.begin()
            for broker in self.brokers.values():
                broker.wait()
            with self.commands() as commands:
                for broker in self.brokers.values():
                    self._registered(commands, broker)
        except BaseException:
            self.kill()
            raise

    def restart(self, name: str) -> None:
        """Start a broker again that was killed, and return when it is registered."""
        broker = self.brokers[name]
        broker.begin()
        broker.wait()
        with self.commands() as commands:
            self._registered(commands, broker)

    def kill(self) -> None:
        """End all servers at once."""
        for server in (*self.brokers.values(), *self.name_servers):
            server.kill()

    def _registered(self, commands: Commands, broker: Server) -> None:
        known = broker.settings["namesrvAddr"].split(";")
        deadline = time.monotonic() + _START_S
        while True:
            try:
                # Its first registration is skipped when it is not connected yet; the next would come 10 s later.
                commands.register(broker.address)
                if all(commands.brokers(server).get(broker.name) == broker.address for server in known):
                    return
            except CommandRefused as error:
                if time.monotonic() > deadline:
                    raise SetupError(
                        f"Broker {broker.name} does not answer ({error}): see {broker.folder / 'server.log'}."
                    ) from error
            if time.monotonic() > deadline:
                raise SetupError(f"Broker {broker.name} did not register: see {broker.folder / 'server.log'}.")
            time.sleep(_POLL_S)
