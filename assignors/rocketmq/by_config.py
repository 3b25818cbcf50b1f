"""CONFIG: what the consumer was configured with, whatever there is (`AllocateMessageQueueByConfig`, 5.5.0)."""

from __future__ import annotations

from collections.abc import Sequence

from assignors.rocketmq.strategy import Allocate, AllocateStrategy, Queues

__all__ = ["ByConfig"]


class ByConfig(AllocateStrategy):
    """The only strategy without any check: it answers an empty client id, queues that do not exist, no lists.

    Attributes:
        message_queue_list: `messageQueueList`; None when it was never set, and then every answer is null, which
            `RebalanceImpl` takes as no queues.
    """

    name = "CONFIG"

    def __init__(self, message_queue_list: Queues | None = None) -> None:
        self.message_queue_list = message_queue_list

    def prepare(self, queues: Queues, clients: Sequence[str]) -> Allocate:  # noqa: ARG002 - the class ignores them too
        """Every client gets the list."""
        return lambda _client: self.message_queue_list
