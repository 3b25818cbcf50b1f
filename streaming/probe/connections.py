"""The connections of kafka-python's admin client, used for many requests at once.

The admin client's own methods ask one coordinator after the other, decode members on the way, raise at the first bad
partition, and look coordinators up. Here request objects of kafka-python (`kafka.protocol`) go through its connection
manager (`KafkaAdminClient._manager`: private, so the release is pinned): to all brokers at once, one request after the
other on each, because a connection takes no more than five in flight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from threading import Event
from typing import Any, TypeVar

from kafka.errors import KafkaError, NodeNotReadyError
from kafka.protocol.metadata import MetadataRequest

from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError, error_text

__all__ = ["Connections", "chunks_by_node"]

_NOT_READY_PAUSE_S = 0.05
"""Until a connection is asked again that is in back-off or throttled by a quota; it reports either at once."""

_T = TypeVar("_T")


class Connections:
    """Sends requests; counts them in `sent` by Kafka's name until `sent` is cleared."""

    def __init__(self, admin: Any) -> None:
        """Use an open `KafkaAdminClient`, which stays the caller's to close."""
        self._manager = admin._manager  # noqa: SLF001  (see the module's docstring)
        self.sent: Counter[str] = Counter()

    def knows(self, request: Any) -> bool:
        """Whether the brokers answer this class of request."""
        return request.API_KEY in self._manager.broker_version_data.api_versions

    def version(self, request: Any) -> int:
        """Newest version of this class of request that the brokers and the client know."""
        version: int = self._manager.broker_version_data.api_version(request)
        return version

    def ask(self, work: Sequence[tuple[int | None, Any]], deadline: Deadline) -> list[Any]:
        """Send requests, and wait for all answers.

        Args:
            work: Node id of the broker, None for any, and request; those of one broker are sent in this order.
            deadline: For all answers.

        Returns:
            Answers in the order of `work`.

        Raises:
            RoundAbandonedError: A broker did not answer in time.
        """
        answers: list[Any] = [None] * len(work)
        places: dict[int | None, list[int]] = {}
        for place, (node, _) in enumerate(work):
            places.setdefault(node, []).append(place)

        async def series(node: int | None) -> None:
            for place in places[node]:
                answers[place] = await self._send(node, work[place][1], deadline)

        try:
            for future in [self._manager.call_soon(series, node) for node in places]:
                _result(future, deadline)
        except RuntimeError as error:
            # kafka-python's IO loop ended.
            message = f"the connections to the cluster were closed ({error})"
            raise RoundAbandonedError(message) from error
        return answers

    async def _send(self, node: int | None, request: Any, deadline: Deadline) -> Any:
        self.sent[request.name.removesuffix("Request")] += 1
        while True:
            try:
                answer = await self._manager.send(
                    request, node_id=node, request_timeout_ms=max(1, int(deadline.remaining() * 1000))
                )
            except NodeNotReadyError:
                await self._manager._net.sleep(_NOT_READY_PAUSE_S)  # noqa: SLF001  (see the module's docstring)
            except KafkaError as error:
                place = "a broker" if node is None else f"broker {node}"
                message = f"{place} did not answer {request.name.removesuffix('Request')} ({error_text(error)})"
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


def chunks_by_node(nodes: Mapping[_T, int], size: int) -> Iterator[tuple[int, list[_T]]]:
    """Split the things to ask for into requests: node id, and at most `size` things of that node."""
    by_node: dict[int, list[_T]] = {}
    for thing, node in nodes.items():
        by_node.setdefault(node, []).append(thing)
    for node, things in by_node.items():
        for start in range(0, len(things), size):
            yield node, things[start : start + size]
