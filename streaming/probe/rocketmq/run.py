"""Rounds against a RocketMQ cluster, written to the Kafka of `[bus]`.

A round is opened, the cluster is asked for everything (`cluster.py`), the events are written and acknowledged, and the
closing record follows; it has no log positions, because there is no log. A round that fails is never continued.
"""

from __future__ import annotations

import contextlib
import threading
from types import TracebackType
from typing import Any, Self

from kafka.errors import KafkaError

from streaming.config import RocketMQSettings, Settings
from streaming.events import ROCKETMQ, RoundClosed
from streaming.lifecycle import room_log
from streaming.probe.clients import open_admin
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError, error_text
from streaming.probe.readback import read_back
from streaming.probe.rocketmq.cluster import RocketMQCluster
from streaming.probe.rocketmq.observe import RocketMQMemory, recall, round_of_groups
from streaming.probe.topics import create_missing
from streaming.probe.writer import RoundWriter
from streaming.rocketmq import Client, Credentials

_LOG = room_log(__name__)

_LEAST_ROUND_S = 20.0
"""A name server and a broker that say nothing cost 3 s each at every step; there are eight."""

_RECALL_S = 60.0
"""As for Kafka's rounds: for reading back a heartbeat's events before the first round."""


def open_client(settings: RocketMQSettings) -> Client:
    """A client with the connection's security.

    Raises:
        SetupError: A secret or a certificate cannot be read.
    """
    login = settings.login()
    return Client(settings.tls_context(), None if login is None else Credentials(*login))


class RocketMQProbe:
    """Runs rounds against one RocketMQ cluster. A context manager; not for several threads.

    Its clients open with the first round. After a round that failed it discards them and the memory: the next one
    starts as after a restart.
    """

    def __init__(self, settings: Settings, stop: threading.Event | None = None) -> None:
        """Prepare; nothing is opened yet.

        Args:
            settings: All settings; `rocketmq` and `bus` are given.
            stop: Set by the caller to end a round in progress.
        """
        assert settings.rocketmq is not None  # noqa: S101  (the caller's choice of this class)
        self._settings = settings
        self._cluster_settings = settings.rocketmq
        self._stop = stop or threading.Event()
        self._seconds = max(_LEAST_ROUND_S, 2 * settings.probe.interval_ms / 1000)
        self._client: Client | None = None
        self._cluster: RocketMQCluster | None = None
        self._writer: RoundWriter | None = None
        self._memory: RocketMQMemory | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def round(self) -> RoundClosed:
        """Run one round and return its closing record.

        Raises:
            RoundAbandonedError: It did not close.
            SetupError: A person must fix something first.
            StopRequestedError: `stop` was set.
        """
        try:
            cluster, writer, memory = self._opened()
            return self._round(cluster, writer, memory, Deadline.after(self._seconds, self._stop))
        except KafkaError as error:
            self.close()
            message = f"the bus did not answer ({error_text(error)})"
            raise RoundAbandonedError(message) from error
        except BaseException:
            self.close()
            raise

    @property
    def requests(self) -> dict[str, int]:
        """Requests sent since the client was opened, by RocketMQ's name."""
        return dict(self._cluster.sent) if self._cluster else {}

    def close(self) -> None:
        """Close the clients; records without an acknowledgement are given up."""
        writer, client = self._writer, self._client
        self._writer = self._client = self._cluster = self._memory = None
        with contextlib.ExitStack() as closing:
            if client is not None:
                closing.callback(client.close)
            if writer is not None:
                closing.callback(writer.close)

    def _round(
        self, cluster: RocketMQCluster, writer: RoundWriter, memory: RocketMQMemory, deadline: Deadline
    ) -> RoundClosed:
        settings = self._settings
        opened = writer.open(deadline)
        look = cluster.look(memory.groups, memory.quiet, opened.time, deadline)
        told = round_of_groups(
            settings.cluster,
            self._cluster_settings.addresses,
            opened.number,
            opened.time,
            look,
            memory,
            settings.filters,
            settings.job.heartbeat_ms,
        )
        written = writer.write(opened, told.events, deadline)
        closed = writer.close_round(opened, written, None, None, deadline, untold=told.untold, seen_by=ROCKETMQ)
        self._memory = told.memory
        return closed

    def _opened(self) -> tuple[RocketMQCluster, RoundWriter, RocketMQMemory]:
        settings, given = self._settings, self._cluster_settings
        if self._client is None:
            self._client = open_client(given)
        if self._cluster is None:
            self._cluster = RocketMQCluster(
                self._client,
                given.addresses,
                settings.filters,
                given.request_timeout_ms / 1000,
                given.client_timeout_ms / 1000,
            )
        if self._writer is None:
            self._writer = self._open_writer()
        if self._memory is None:
            deadline = Deadline.after(max(self._seconds, _RECALL_S), self._stop)
            self._memory = read_back(settings, deadline, recall) or RocketMQMemory()
        return self._cluster, self._writer, self._memory

    def _open_writer(self) -> RoundWriter:
        settings = self._settings
        admin: Any = open_admin(settings.bus_kafka)
        try:
            for topic in create_missing(admin, settings.probe):
                _LOG.info("Created topic %s.", topic)
        finally:
            admin.close()
        return RoundWriter(settings.cluster, settings.probe, settings.bus_kafka)
