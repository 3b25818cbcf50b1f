"""Rounds against a RocketMQ cluster, written to the Kafka of `[bus]`.

A round is opened, the cluster is asked for everything (`cluster.py`), the events are written and acknowledged, and the
closing record follows; it has no log positions, because there is no log. A round that fails is never continued.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from streaming.config import RocketMQSettings, Settings
from streaming.probe.clients import open_admin
from streaming.probe.readback import read_back
from streaming.probe.rocketmq.cluster import RocketMQCluster
from streaming.probe.rocketmq.observe import RocketMQMemory, recall, round_of_groups
from streaming.probe.rounds_probe import RoundsProbe
from streaming.probe.standby import Identity
from streaming.probe.writer import RoundWriter
from streaming.records import ROCKETMQ, RoundClosed
from streaming.rocketmq import Client, Credentials


def open_client(settings: RocketMQSettings) -> Client:
    """A client with the connection's security.

    Raises:
        SetupError: A secret or a certificate cannot be read.
    """
    login = settings.login()
    return Client(settings.tls_context(), None if login is None else Credentials(*login))


class RocketMQProbe(RoundsProbe):
    """Runs rounds against one RocketMQ cluster; `rocketmq` and `bus` are given in the settings."""

    LEAST_ROUND_S = 20.0
    """A name server and a broker that say nothing cost 3 s each at every step; there are eight."""

    KAFKA = "the bus"

    def __init__(self, settings: Settings, stop: threading.Event | None = None, who: Identity | None = None) -> None:
        """Prepare, as `RoundsProbe` does."""
        assert settings.rocketmq is not None  # noqa: S101  (the caller's choice of this class)
        super().__init__(settings, stop, who)
        self._cluster_settings = settings.rocketmq
        self._client: Client | None = None
        self._cluster: RocketMQCluster | None = None
        self._memory: RocketMQMemory | None = None

    @property
    def requests(self) -> dict[str, int]:
        """Requests sent since the client was opened, by RocketMQ's name."""
        return dict(self._cluster.sent) if self._cluster else {}

    def _close(self) -> None:
        writer, client = self._writer, self._client
        self._writer = self._client = self._cluster = self._memory = None
        with contextlib.ExitStack() as closing:
            if client is not None:
                closing.callback(client.close)
            if writer is not None:
                closing.callback(writer.close)

    def _round(self) -> RoundClosed:
        settings = self._settings
        cluster, writer, memory = self._opened()
        deadline = self._deadline()
        opened = self._turn.open(writer, deadline)
        look = cluster.observe_groups(memory.groups, memory.quiet, opened.time, deadline)
        told = round_of_groups(
            settings.cluster,
            self._cluster_settings.addresses,
            opened.number,
            opened.time,
            look,
            memory,
            settings.filters,
            settings.job.heartbeat_ms,
            self._pace.interval_ms,
            self._rules.of,
        )
        written = writer.write(opened, told.events, deadline)
        closed = writer.close_round(
            opened,
            written,
            None,
            None,
            deadline,
            untold=told.untold,
            source=ROCKETMQ,
            known_brokers=dict(told.memory.brokers),
        )
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
            self._turn.begin(self._writer, self._recall_deadline())
            self._memory = read_back(settings, self._recall_deadline(), recall) or RocketMQMemory()
        return self._cluster, self._writer, self._memory

    def _open_writer(self) -> RoundWriter:
        bus = self._settings.bus_kafka
        admin: Any = open_admin(bus)
        try:
            return self._writer_by(admin, bus)
        finally:
            admin.close()
