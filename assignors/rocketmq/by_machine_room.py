"""MACHINE_ROOM: the queues of some rooms, by the first part of the broker name (5.5.0).

The class is `AllocateMessageQueueByMachineRoom`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assignors.rocketmq.exceptions import NULL_POINTER, CallWouldFail
from assignors.rocketmq.strategy import Checked, Queues

__all__ = ["ByMachineRoom"]


class ByMachineRoom(Checked):
    """Queues whose broker is named "room@broker" with a configured room; the others have no owner.

    Each client gets a block of equal size; remaining queues are appended one by one from the tail, so a client's queues
    need not be contiguous.

    Attributes:
        consumeridcs: Rooms; None if never set.
    """

    name = "MACHINE_ROOM"

    def __init__(self, consumeridcs: frozenset[str] | None = None) -> None:
        self.consumeridcs = consumeridcs

    def _share(self, queues: Queues, clients: Sequence[str]) -> Callable[[str, int], Queues]:
        here = tuple(queue for queue in queues if self._is_here(queue.broker))
        quota, rest = divmod(len(here), len(clients))

        def share(_client: str, index: int) -> Queues:
            block = here[quota * index : quota * (index + 1)]
            return (*block, here[index + quota * len(clients)]) if rest > index else block

        return share

    def _is_here(self, broker: str) -> bool:
        parts = _java_split(broker)
        if len(parts) != 2:
            return False
        if self.consumeridcs is None:
            reason = "consumeridcs is not set"
            raise CallWouldFail(NULL_POINTER, reason)
        return parts[0] in self.consumeridcs


def _java_split(text: str) -> list[str]:
    """`String.split("@")`, which drops empty parts at the end, unless there is no "@" at all."""
    parts = text.split("@")
    if len(parts) > 1:
        while parts and not parts[-1]:
            parts.pop()
    return parts
