"""CONFIG: the configured queues, whether they exist or not (`AllocateMessageQueueByConfig`, 5.5.0)."""

from __future__ import annotations

from collections.abc import Sequence

from assignors.rocketmq.strategy import Allocate, AllocateStrategy, Queues

__all__ = ["ByConfig"]


class ByConfig(AllocateStrategy):
    """The only strategy without any check: it accepts an empty client id, nonexistent queues, and missing lists.

    Attributes:
        message_queue_list: `messageQueueList`; None if it was never set: then every result is null, which
            `RebalanceImpl` treats as no queues.
    """

    name = "CONFIG"

    def __init__(self, message_queue_list: Queues | None = None) -> None:
        self.message_queue_list = message_queue_list

    def prepare(self, queues: Queues, clients: Sequence[str]) -> Allocate:  # noqa: ARG002 - the class ignores them too
        """Every client gets the list."""
        return lambda _client: self.message_queue_list
