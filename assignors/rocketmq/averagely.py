"""The strategies that need no options but a list: AVG, AVG_BY_CIRCLE and CONFIG.

The classes are `AllocateMessageQueueAveragely`, `AllocateMessageQueueAveragelyByCircle` and
`AllocateMessageQueueByConfig` (5.5.0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assignors.rocketmq.strategy import Allocate, AllocateStrategy, Checked, Queues


class Averagely(Checked):
    """The default strategy of every consumer class."""

    name = "AVG"

    def _share(self, queues: Queues, clients: Sequence[str]) -> Callable[[str, int], Queues]:
        quota, larger = divmod(len(queues), len(clients))

        def share(_client: str, index: int) -> Queues:
            start = index * quota + min(index, larger)
            return queues[start : start + quota + (index < larger)]

        return share


class ByCircle(Checked):
    """The k-th client gets every c-th queue from the k-th on."""

    name = "AVG_BY_CIRCLE"

    def _share(self, queues: Queues, clients: Sequence[str]) -> Callable[[str, int], Queues]:
        return lambda _client, index: queues[index :: len(clients)]


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
