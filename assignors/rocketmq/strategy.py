"""The interface of a RocketMQ strategy, what it works on, and the check that all but CONFIG make first.

Every client runs the strategy for itself, with itself as `currentCID`. `prepare` computes the common part once and
returns a function to call for each client.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from assignors.exceptions import ILLEGAL_ARGUMENT, BadGroup, CallWouldFail, CannotTell
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


class AllocateStrategy(ABC):
    """`AllocateMessageQueueStrategy`; lists are used in the given order, no strategy sorts."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The result of `getName()`."""

    @abstractmethod
    def prepare(self, queues: Queues, clients: Sequence[str]) -> Allocate:
        """Take `mqAll` and `cidAll`; returns a function that takes `currentCID`."""


class Checked(AllocateStrategy):
    """A strategy that calls `AbstractAllocateMessageQueueStrategy.check` (5.5.0) first."""

    def prepare(self, queues: Queues, clients: Sequence[str]) -> Allocate:
        """Check the arguments before `_share`: three exceptions, then an empty list for an unlisted client."""
        first_index: dict[str, int] = {}
        for index, client in enumerate(clients):
            first_index.setdefault(client, index)
        refused: str | None = None
        if not queues:
            refused = "mqAll is null or mqAll empty"
        elif not clients:
            refused = "cidAll is null or cidAll empty"
        share: Callable[[str, int], Queues] | None = None

        def allocate(client: str) -> Queues:
            nonlocal share
            reason = "currentCID is empty" if not client else refused
            if reason is not None:
                raise CallWouldFail(ILLEGAL_ARGUMENT, reason)
            index = first_index.get(client)
            if index is None:
                return ()
            share = share or self._share(queues, clients)
            return share(client, index)

        return allocate

    @abstractmethod
    def _share(self, queues: Queues, clients: Sequence[str]) -> Callable[[str, int], Queues]:
        """Queues of a client by its id and its first index; called only for lists that pass the check.

        Raises:
            CallWouldFail: The class throws for every client that passes the check.
        """
