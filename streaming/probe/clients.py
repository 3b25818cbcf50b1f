"""The probe's Kafka clients, opened from `KafkaSettings`. None has a `group.id`: Evenkeel is not a consumer group.

The admin client's own methods ask one coordinator after the other, decode members on the way, raise at the first bad
partition, and look coordinators up. Here request objects of kafka-python (`kafka.protocol`) go through its connection
manager (`KafkaAdminClient._manager`: private, so the release is pinned): to all brokers at once, one request after the
other on each, because a connection takes no more than five in flight (`Connections`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from threading import Event
from typing import Any, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    SaslAuthenticationFailedError,
)
from kafka.net.compat import KafkaNetClient
from kafka.protocol.metadata import MetadataRequest

from streaming.config import KafkaSettings
from streaming.events import MAX_RECORD_BYTES
from streaming.probe.deadline import Deadline, RoundAbandonedError, error_text
from streaming.record_batches import RangeReader, take_whole_batches

CLIENT_ID = "evenkeel-probe"
"""The probe's name in the brokers' request logs and quotas."""

_BOOTSTRAP_MS = 5_000
"""A cluster that does not answer within this time counts as unreachable; nothing can end this wait early."""

_WHY_MS = 1_000
"""Limit for one connection that is only made to learn its error."""

_RECONNECT_MAX_MS = 2_000
"""kafka-python's default of 30 s would cost several rounds after a broker's restart."""

_MAX_BLOCK_MS = 5_000
"""Limit for a send that waits for metadata or memory: a stop waits as long."""

_DELIVERY_MS = 30_000
"""Nobody waits longer for an acknowledgement: the round is given up earlier."""

_BATCH_BYTES = 256 * 1024
"""A round's events are sent at once, so large batches cost nothing and compress better than the default of 16 KiB."""

_PATIENCE_S = 5.0
"""How long a topic may bring nothing; of the offsets log coordinators are asked then, which the round can afford."""

_FETCH_WAIT_MS = 20
"""A fetch beyond the last record waits so long at the broker, and the next read behind it."""

_NOT_READY_PAUSE_S = 0.05
"""Until a connection is asked again that is in back-off or throttled by a quota; it reports either at once."""

_T = TypeVar("_T")
_Node = TypeVar("_Node", int, None)


def open_admin(settings: KafkaSettings, bootstrap_ms: int = _BOOTSTRAP_MS) -> Any:
    """A `KafkaAdminClient` that has reached the cluster.

    Raises:
        KafkaError: It could not be reached, or refused the credentials.
        SetupError: A secret cannot be read.
    """
    opened: list[Any] = []

    def remember(**config: Any) -> Any:
        opened.append(KafkaNetClient(**config))
        return opened[-1]

    try:
        return KafkaAdminClient(
            **_config(settings, KafkaAdminClient), bootstrap_timeout_ms=bootstrap_ms, kafka_client=remember
        )
    except BaseException as error:
        why = _why(opened[0]) if opened and isinstance(error, KafkaTimeoutError) else None
        # kafka-python 3.0.12 leaves the IO thread of a client that could not bootstrap running.
        for client in opened:
            with contextlib.suppress(KafkaError, RuntimeError, OSError):
                client.close()
        if why is None:
            raise
        raise why from error


def _why(client: Any) -> KafkaError | None:
    """Connect once more to learn why a bootstrap failed: its own error only says that the time is over."""
    manager = client._manager  # noqa: SLF001 - no public way leads to a connection's error

    async def connect(node: Any) -> None:
        manager.reset_backoff(node)
        connection = manager.get_connection(node, timeout_ms=_WHY_MS, refresh_metadata_on_err=False)
        try:
            await connection
        except KafkaConnectionError as error:
            # Brokers answer a wrong password and hang up. kafka-python 3.0.12 drops the bytes that it reads together
            # with the end of the stream, so the answer is often lost. The broker has sent its version before that.
            if manager.config["sasl_mechanism"] and connection.broker_version_data is not None:
                message = "the broker hung up during the login"
                raise SaslAuthenticationFailedError(message) from error
            raise

    why: KafkaError | None = None
    for broker in manager.cluster.bootstrap_brokers():
        try:
            manager.run(connect, broker.node_id)
        except KafkaError as error:
            why = error
    return why


def open_producer(settings: KafkaSettings) -> Any:
    """An idempotent `KafkaProducer` that waits for all in-sync replicas.

    Raises:
        KafkaError: The cluster could not be reached, or refused the credentials.
        SetupError: A secret cannot be read.
    """
    config = _config(settings, KafkaProducer)
    return KafkaProducer(
        **config
        | {
            "acks": "all",
            "enable_idempotence": True,
            # gzip is in the standard library, so every reader has it; numbers as text shrink to a fifth.
            "compression_type": "gzip",
            "batch_size": _BATCH_BYTES,
            "linger_ms": 5,
            "max_request_size": MAX_RECORD_BYTES,
            "max_block_ms": _MAX_BLOCK_MS,
            "request_timeout_ms": min(config["request_timeout_ms"], _DELIVERY_MS - 1_000),
            "delivery_timeout_ms": _DELIVERY_MS,
            "allow_auto_create_topics": False,
            "metrics_enabled": False,
            "bootstrap_timeout_ms": _BOOTSTRAP_MS,
        }
    )


def open_consumer(settings: KafkaSettings, **wanted: Any) -> Any:
    """A `KafkaConsumer` without a group, for partitions given to it by hand; `wanted` are further options.

    Raises:
        KafkaError: The cluster could not be reached, or refused the credentials.
        SetupError: A secret cannot be read.
    """
    return KafkaConsumer(
        **_config(settings, KafkaConsumer)
        | {
            "group_id": None,
            "enable_auto_commit": False,
            "auto_offset_reset": "none",
            # Brokers have checked them, and kafka-python computes them in Python.
            "check_crcs": False,
            "allow_auto_create_topics": False,
            "metrics_enabled": False,
            "bootstrap_timeout_ms": _BOOTSTRAP_MS,
            **wanted,
        }
    )


def open_reader(settings: KafkaSettings) -> RangeReader:
    """A reader of ranges of a topic, as far as transactions have ended; raises as `open_consumer`."""
    consumer = open_consumer(settings, isolation_level="read_committed", fetch_max_wait_ms=_FETCH_WAIT_MS)
    # What is not there any more is asked for: no reason to wait for a leader that is still catching up.
    return RangeReader(take_whole_batches(consumer), patience_s=_PATIENCE_S, settle_s=0.0)


def _config(settings: KafkaSettings, client: Any) -> dict[str, Any]:
    defaults = {"client_id": CLIENT_ID, "reconnect_backoff_max_ms": _RECONNECT_MAX_MS}
    # An option that one client knows and another does not is only passed to the first.
    return defaults | {name: value for name, value in settings.client_config().items() if name in client.DEFAULT_CONFIG}


class Connections:
    """Sends requests."""

    def __init__(self, admin: Any) -> None:
        """Use an open `KafkaAdminClient`, which stays the caller's to close."""
        self._manager = admin._manager  # noqa: SLF001 - see the module's docstring

    def knows(self, request: Any) -> bool:
        """Whether the brokers answer this class of request."""
        return request.API_KEY in self._manager.broker_version_data.api_versions

    def version(self, request: Any) -> int:
        """Newest version of this class of request that the brokers and the client know."""
        version: int = self._manager.broker_version_data.api_version(request)
        return version

    def ask(self, work: Sequence[tuple[int | None, Any]], deadline: Deadline, *, needs_all: bool = True) -> list[Any]:
        """Send requests, and wait for all answers.

        Args:
            work: Node id of the broker, None for any, and request; those of one broker are sent in this order.
            deadline: For each answer; it goes on with each of them.
            needs_all: A request that fails abandons the round. Otherwise its answer is None, unless time was up.

        Returns:
            Answers in the order of `work`.

        Raises:
            RoundAbandonedError: A broker did not answer, or not in time.
        """
        deadline.begin()
        answers: list[Any] = [None] * len(work)
        positions: dict[int | None, list[int]] = {}
        for position, (node, _) in enumerate(work):
            positions.setdefault(node, []).append(position)

        async def series(node: int | None) -> None:
            for position in positions[node]:
                try:
                    answers[position] = await self._send(node, work[position][1], deadline)
                except RoundAbandonedError:
                    if needs_all:
                        raise
                deadline.answered()

        try:
            for future in [self._manager.call_soon(series, node) for node in positions]:
                _result(future, deadline)
        except RuntimeError as error:
            # kafka-python's IO loop ended.
            message = f"the connections to the cluster were closed ({error})"
            raise RoundAbandonedError(message) from error
        return answers

    async def _send(self, node: int | None, request: Any, deadline: Deadline) -> Any:
        while True:
            try:
                answer = await self._manager.send(
                    request, node_id=node, request_timeout_ms=max(1, int(deadline.remaining() * 1000))
                )
            except NodeNotReadyError:
                await self._manager._net.sleep(_NOT_READY_PAUSE_S)  # noqa: SLF001 - see the module's docstring
            except KafkaError as error:
                asked = "a broker" if node is None else f"broker {node}"
                message = f"{asked} did not answer {request.name.removesuffix('Request')} ({error_text(error)})"
                raise RoundAbandonedError(message) from error
            else:
                if isinstance(request, MetadataRequest):
                    # Otherwise a broker that joined would be unknown to the manager until its own next refresh.
                    self._manager.cluster.update_metadata(answer)
                return answer


def _result(future: Any, deadline: Deadline) -> None:
    done = Event()
    future.add_both(lambda _: done.set())
    deadline.wait(done.wait)
    if future.exception is not None:
        raise future.exception


def chunks_by_node(nodes: Mapping[_T, _Node], size: int) -> Iterator[tuple[_Node, list[_T]]]:
    """Split the things to ask for into requests: node id, None for any, and at most `size` things of that node."""
    by_node: dict[_Node, list[_T]] = {}
    for thing, node in nodes.items():
        by_node.setdefault(node, []).append(thing)
    for node, things in by_node.items():
        for start in range(0, len(things), size):
            yield node, things[start : start + size]
