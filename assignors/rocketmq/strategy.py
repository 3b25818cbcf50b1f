"""The interface of a RocketMQ strategy, and the check that all but CONFIG make first.

Every client runs the strategy for itself, with itself as `currentCID`. `prepare` computes the common part once and
returns a function to call for each client.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from assignors.rocketmq.exceptions import ILLEGAL_ARGUMENT, CallWouldFail
from assignors.rocketmq.queues import MessageQueue

__all__ = ["Allocate", "AllocateStrategy", "Checked", "Queues"]

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
