"""Rounds against a RocketMQ cluster, written to a folder or to the Kafka of `[bus]`. They have no log positions.

And what is checked before the start: do name servers and brokers answer, and may this client ask what the probe asks?
Nothing is written, created or joined.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from streaming.config import RocketMQSettings, Settings
from streaming.exceptions import SetupError
from streaming.probe.bus import read_back
from streaming.probe.deadline import Deadline, RoundAbandonedError
from streaming.probe.rocketmq import parts
from streaming.probe.rocketmq.cluster import RocketMQCluster
from streaming.probe.rocketmq.observe import RocketMQMemory, recall, round_of_groups
from streaming.probe.rounds_probe import ObservedRound, RoundsProbe
from streaming.probe.standby.others import Identity
from streaming.probe.writer import Opened
from streaming.records import REFUSED, ROCKETMQ, TIMEOUT
from streaming.rocketmq import Client, Credentials, Question, Request, answers


def open_client(settings: RocketMQSettings) -> Client:
    """A client with the connection's security.

    Raises:
        SetupError: A secret or a certificate cannot be read.
    """
    login = settings.login()
    return Client(settings.tls_context(), None if login is None else Credentials(*login))


class RocketMQProbe(RoundsProbe[RocketMQMemory]):
    """Runs rounds against one RocketMQ cluster; `rocketmq` is given in the settings."""

    LEAST_ROUND_S = 20.0
    """A name server and a broker that say nothing cost 3 s each at every step; there are eight."""

    def __init__(self, settings: Settings, stop: threading.Event | None = None, who: Identity | None = None) -> None:
        """Prepare, as `RoundsProbe` does."""
        assert settings.rocketmq is not None  # noqa: S101 - the caller's choice of this class
        super().__init__(settings, stop, who)
        self._cluster_settings = settings.rocketmq
        self._client: Client | None = None
        self._cluster: RocketMQCluster | None = None
        self._stamp: tuple[int | None, ...] = ()

    def _close(self) -> None:
        client, self._client, self._cluster = self._client, None, None
        if client is not None:
            client.close()

    def _remember(self, deadline: Deadline) -> RocketMQMemory:
        return read_back(self._settings, deadline, recall) or RocketMQMemory()

    def _prepare(self, memory: RocketMQMemory, deadline: Deadline) -> None:  # noqa: ARG002
        given = self._cluster_settings
        stamp = given.stamp()
        if self._cluster is None or stamp != self._stamp:
            self._close()
            try:
                self._client = open_client(given)
            except SetupError as error:
                # They were right at the start: one is being replaced.
                raise RoundAbandonedError(str(error)) from error
            self._cluster = RocketMQCluster(self._client, given.addresses, self._settings.filters)
            self._stamp = stamp

    def _observe(self, opened: Opened, memory: RocketMQMemory, deadline: Deadline) -> ObservedRound[RocketMQMemory]:
        assert self._cluster is not None  # noqa: S101 - it is prepared
        settings = self._settings
        look = self._cluster.observe_groups(memory.groups, memory.quiet, opened.time, deadline)
        events, after = round_of_groups(
            settings.cluster,
            opened.number,
            opened.time,
            look,
            memory,
            settings.filters,
            settings.job.heartbeat_ms,
            self._pace.interval_ms,
            self._configured,
        )
        closing = {
            "log": (),
            "log_end": (),
            "untold": after.untold(events),
            "source": ROCKETMQ,
            "known_brokers": dict(after.brokers),
        }
        return ObservedRound(events, after, closing)


_CHECK_S = 5.0
"""A server that is well answers within milliseconds."""

_NOBODY = "evenkeel-preflight"
"""A group that need not exist: rights are checked before its existence."""


def cluster_problems(settings: Settings) -> Iterator[str]:
    """What a person must fix before RocketMQ's groups can be watched: a sentence each."""
    given = settings.rocketmq
    assert given is not None  # noqa: S101 - the caller's choice of this check
    try:
        client = open_client(given)
    except SetupError as error:
        yield str(error)
        return
    with client:
        yield from _problems(client, given)


def _problems(client: Client, given: RocketMQSettings) -> Iterator[str]:
    questions = [Question(address, Request.GET_BROKER_CLUSTER_INFO) for address in given.addresses]
    brokers: set[str] = set()
    reasons = []
    for address, answer in zip(given.addresses, client.ask(questions, _CHECK_S), strict=True):
        how, reason, info = parts.outcome(answer, answers.ClusterInfo)
        if info is None:
            reasons.append(f"{address}: {reason or how}")
        else:
            brokers |= {address for data in info.brokerAddrTable.values() for address in data.brokerAddrs.values()}
    if len(reasons) == len(given.addresses):
        yield (
            f"No name server of the RocketMQ cluster answers ({'; '.join(reasons)}): correct rocketmq.name_servers, or "
            "start them (with TLS or access control, docs/rocketmq.md)."
        )
        return
    reasons = []
    code = Request.GET_CONSUMER_CONNECTION_LIST
    asked = [Question(address, code, {"consumerGroup": _NOBODY}) for address in sorted(brokers)]
    for question, answer in zip(asked, client.ask(asked, _CHECK_S), strict=True):
        how, reason, _ = parts.outcome(answer, answers.ConsumerConnection)
        if how == REFUSED:
            who = "This client" if given.access_key is None else f"User {given.access_key!r}"
            yield (
                f"{who} may not ask broker {question.address} about groups ({reason}): correct rocketmq.access_key and "
                "its secret, or grant the rights of docs/rocketmq.md."
            )
            return
        if how == TIMEOUT:
            reasons.append(f"{question.address}: {reason}")
    if len(reasons) == len(asked):
        yield (
            f"No broker of the {len(asked)} that the name servers know can be reached from here "
            f"({'; '.join(reasons[:1]) or 'let brokers register'}): they must be reachable under the addresses that "
            "they give the name servers (brokerIP1)."
        )
