"""AVG_BY_CIRCLE: queues are dealt in turn (`AllocateMessageQueueAveragelyByCircle`, 5.5.0)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assignors.rocketmq.strategy import Checked, Queues

__all__ = ["ByCircle"]


class ByCircle(Checked):
    """The k-th client gets every c-th queue from the k-th on."""

    name = "AVG_BY_CIRCLE"

    def _share(self, queues: Queues, clients: Sequence[str]) -> Callable[[str, int], Queues]:
        return lambda _client, index: queues[index :: len(clients)]
