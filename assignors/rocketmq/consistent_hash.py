"""CONSISTENT_HASH: queues on a ring of hashed virtual nodes (`AllocateMessageQueueConsistentHash`, 5.5.0).

The ring is `ConsistentHashRouter`'s: MD5 of the UTF-8 bytes, its first four bytes as an unsigned number.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import md5

from assignors.exceptions import BadOption, CannotTell
from assignors.rocketmq.strategy import Checked, MessageQueue, Queues

# Limit for one ring: two seconds of hashing. The class's default is 10 per client. The class itself is slower, because
# it scans the ring for every client, and runs for every topic every 20 s, so rings of this size do not occur.
MOST_VIRTUAL_NODES = 2_000_000


class ConsistentHash(Checked):
    """Each client is on the ring `virtual_node_cnt` times; a queue belongs to the next node.

    Attributes:
        virtual_node_cnt: `virtualNodeCnt`, 0 or more; with 0 no queue has an owner.
    """

    name = "CONSISTENT_HASH"

    def __init__(self, virtual_node_cnt: int = 10) -> None:
        if not 0 <= virtual_node_cnt < 2**31:
            message = f"illegal virtualNodeCnt :{virtual_node_cnt}"
            raise BadOption(message)
        self.virtual_node_cnt = virtual_node_cnt

    def _share(self, queues: Queues, clients: Sequence[str]) -> Callable[[str, int], Queues]:
        if self.virtual_node_cnt * len(clients) > MOST_VIRTUAL_NODES:
            reason = f"more than {MOST_VIRTUAL_NODES} virtual nodes: not recomputed"
            raise CannotTell(reason)
        ring = self._ring(clients)
        positions = sorted(ring)
        owned: dict[str, list[MessageQueue]] = {}
        if positions:
            for queue in queues:
                after = bisect_left(positions, ring_hash(queue.text()))
                owner = ring[positions[after % len(positions)]]
                owned.setdefault(owner, []).append(queue)
        return lambda client, _index: tuple(owned.get(client, ()))

    def _ring(self, clients: Sequence[str]) -> dict[int, str]:
        """Client by position; a later node replaces an earlier one with the same hash."""
        ring: dict[int, str] = {}
        nodes: Counter[str] = Counter()
        for client in clients:
            # A client listed twice gets further nodes, numbered from the count that the ring still has of it.
            first = nodes[client]
            for number in range(first, first + self.virtual_node_cnt):
                position = ring_hash(f"{client}-{number}")
                if position in ring:
                    nodes[ring[position]] -= 1
                ring[position] = client
                nodes[client] += 1
        return ring


def ring_hash(text: str) -> int:
    """Position of a text on the ring."""
    # Java encodes half a surrogate pair as "?".
    return int.from_bytes(md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest()[:4], "big")
