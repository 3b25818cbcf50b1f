"""Rounds against a RocketMQ cluster, written to the Kafka of `[bus]`. No log is read, so they have no positions."""

from __future__ import annotations

import threading

from streaming.config import RocketMQSettings, Settings
from streaming.probe.deadline import Deadline
from streaming.probe.readback import read_back
from streaming.probe.rocketmq.cluster import RocketMQCluster
from streaming.probe.rocketmq.observe import RocketMQMemory, recall, round_of_groups
from streaming.probe.rounds_probe import ObservedRound, RoundsProbe
from streaming.probe.standby import Identity
from streaming.probe.writer import Opened
from streaming.records import ROCKETMQ
from streaming.rocketmq import Client, Credentials


def open_client(settings: RocketMQSettings) -> Client:
    """A client with the connection's security.

    Raises:
        SetupError: A secret or a certificate cannot be read.
    """
    login = settings.login()
    return Client(settings.tls_context(), None if login is None else Credentials(*login))


class RocketMQProbe(RoundsProbe[RocketMQMemory]):
    """Runs rounds against one RocketMQ cluster; `rocketmq` and `bus` are given in the settings."""

    LEAST_ROUND_S = 20.0
    """A name server and a broker that say nothing cost 3 s each at every step; there are eight."""

    def __init__(self, settings: Settings, stop: threading.Event | None = None, who: Identity | None = None) -> None:
        """Prepare, as `RoundsProbe` does."""
        assert settings.rocketmq is not None  # noqa: S101  (the caller's choice of this class)
        super().__init__(settings, stop, who)
        self._cluster_settings = settings.rocketmq
        self._client: Client | None = None
        self._cluster: RocketMQCluster | None = None

    @property
    def requests(self) -> dict[str, int]:
        """Requests sent since the client was opened, by RocketMQ's name."""
        return dict(self._cluster.sent) if self._cluster else {}

    def _close(self) -> None:
        client, self._client, self._cluster = self._client, None, None
        if client is not None:
            client.close()

    def _remember(self, deadline: Deadline) -> RocketMQMemory:
        return read_back(self._settings, deadline, recall) or RocketMQMemory()

    def _prepare(self, memory: RocketMQMemory, deadline: Deadline) -> None:  # noqa: ARG002
        if self._cluster is None:
            given = self._cluster_settings
            self._client = open_client(given)
            self._cluster = RocketMQCluster(
                self._client,
                given.addresses,
                self._settings.filters,
                given.request_timeout_ms / 1000,
                given.client_timeout_ms / 1000,
            )

    def _observe(self, opened: Opened, memory: RocketMQMemory, deadline: Deadline) -> ObservedRound[RocketMQMemory]:
        assert self._cluster is not None  # noqa: S101  (it is prepared)
        settings = self._settings
        look = self._cluster.observe_groups(memory.groups, memory.quiet, opened.time, deadline)
        told = round_of_groups(
            settings.cluster,
            opened.number,
            opened.time,
            look,
            memory,
            settings.filters,
            settings.job.heartbeat_ms,
            self._pace.interval_ms,
            self._rules.of,
        )
        closing = {
            "log": (),
            "log_end": (),
            "untold": told.untold,
            "source": ROCKETMQ,
            "known_brokers": dict(told.memory.brokers),
        }
        return ObservedRound(told.events, told.memory, closing)
