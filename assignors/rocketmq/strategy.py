"""What a RocketMQ strategy works on: queues and clients, checked, and sorted as Java does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from assignors.exceptions import BadGroup, CannotTell
from assignors.order import sorted_utf16, utf16

_MOST = 2**31 - 1


class MessageQueue(NamedTuple):
    """`org.apache.rocketmq.common.message.MessageQueue`.

    Attributes:
        topic: Topic.
        broker: Broker name.
        queue: Queue id, an int32.
    """

    topic: str
    broker: str
    queue: int

    def text(self) -> str:
        """Java's `toString()`, which CONSISTENT_HASH hashes."""
        return f"MessageQueue [topic={self.topic}, brokerName={self.broker}, queueId={self.queue}]"


def checked(queues: Iterable[MessageQueue]) -> tuple[MessageQueue, ...]:
    """Require every queue id to be an int32.

    Raises:
        BadGroup: An id is not.
    """
    listed = tuple(queues)
    for queue in listed:
        if type(queue.queue) is not int or not -_MOST - 1 <= queue.queue <= _MOST:
            message = f"Queue {queue.queue!r} of topic {queue.topic!r} on broker {queue.broker!r} is no int32."
            raise BadGroup(message)
    return listed


def sorted_queues(queues: Iterable[MessageQueue]) -> tuple[MessageQueue, ...]:
    """Sort as `MessageQueue.compareTo`: by topic and broker name, both as Java compares strings, then queue id.

    Raises:
        CannotTell: Ids are so far apart that the class's subtraction overflows, which no broker's are.
    """
    listed = tuple(queues)
    ids = [queue.queue for queue in listed]
    if ids and max(ids) - min(ids) > _MOST:
        reason = "queue ids overflow the subtraction of MessageQueue.compareTo"
        raise CannotTell(reason)
    if all(queue.topic.isascii() and queue.broker.isascii() for queue in listed):
        return tuple(sorted(listed))
    return tuple(sorted(listed, key=lambda queue: (utf16(queue.topic), utf16(queue.broker), queue.queue)))


def sorted_clients(clients: Iterable[str]) -> tuple[str, ...]:
    """Sort client ids as `Collections.sort`: 10.0.0.100@1 before 10.0.0.10@1 before 10.0.0.9@1."""
    return tuple(sorted_utf16(clients))


Queues = tuple[MessageQueue, ...]

Allocate = Callable[[str], Queues | None]
"""The result of `allocate` for a client; None where the class returns null. Raises CallWouldFail."""
