"""AVG: contiguous blocks, the first ones larger (`AllocateMessageQueueAveragely`, 5.5.0)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assignors.rocketmq.strategy import Checked, Queues

__all__ = ["Averagely"]


class Averagely(Checked):
    """The default strategy of every consumer class."""

    name = "AVG"

    def _share(self, queues: Queues, clients: Sequence[str]) -> Callable[[str, int], Queues]:
        quota, larger = divmod(len(queues), len(clients))

        def share(_client: str, index: int) -> Queues:
            start = index * quota + min(index, larger)
            return queues[start : start + quota + (index < larger)]

        return share
