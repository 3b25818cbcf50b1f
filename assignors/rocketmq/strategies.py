"""All RocketMQ strategies, following the classes of 5.5.0. A new one is a function and a line in `_SHARES`.

AVG, AVG_BY_CIRCLE and CONFIG are `AllocateMessageQueueAveragely`, `AllocateMessageQueueAveragelyByCircle` and
`AllocateMessageQueueByConfig`. CONSISTENT_HASH is `AllocateMessageQueueConsistentHash`, with the ring of
`ConsistentHashRouter`: MD5 of the UTF-8 bytes, its first four bytes as an unsigned number. MACHINE_ROOM is
`AllocateMessageQueueByMachineRoom`, which finds the room in the broker's name; MACHINE_ROOM_NEARBY-<delegate> is
`AllocateMachineRoomNearby`, which gives the queues of rooms without clients to all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import md5

from assignors.exceptions import ILLEGAL_ARGUMENT, NULL_POINTER, BadGroup, CallWouldFail, CannotTell, UnknownStrategy
from assignors.order import sorted_utf16
from assignors.rocketmq.strategy import Allocate, MessageQueue, Queues, checked, sorted_clients, sorted_queues

_NEARBY = "MACHINE_ROOM_NEARBY-"
_CONFIG = "CONFIG"
_HASH = "CONSISTENT_HASH"

_Share = Callable[[str, int], Queues]
"""Queues of a client by its id and its first index."""


@dataclass(frozen=True, slots=True)
class Options:
    """Constructor options of the strategies; each strategy takes its own.

    Attributes:
        virtual_node_cnt: For CONSISTENT_HASH, 0 or more; with 0 no queue has an owner.
        message_queue_list: For CONFIG; None when not set: then every result is null, which `RebalanceImpl` treats as no
            queues.
        consumeridcs: For MACHINE_ROOM; None when not set.
        room_separator: For MACHINE_ROOM_NEARBY: the room is the text before it, in broker names and client ids; a name
            without one is a room itself.
    """

    virtual_node_cnt: int = 10
    message_queue_list: Queues | None = None
    consumeridcs: frozenset[str] | None = None
    room_separator: str | None = None


@dataclass(frozen=True, slots=True)
class AllocateStrategy:
    """A strategy with its options; lists are used in the given order, no strategy sorts.

    Every client runs it for itself, with itself as `currentCID`.

    Attributes:
        name: The result of `getName()`.
        options: Its constructor options.

    Raises:
        UnknownStrategy: There is none with this name.
        BadGroup: The class cannot be constructed with these options.
    """

    name: str
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        if self.name.startswith(_NEARBY):
            self._delegate()
            if not self.options.room_separator:
                message = "MACHINE_ROOM_NEARBY needs a rule for rooms: give the option room_separator."
                raise BadGroup(message)
        elif self.name not in known_allocate_strategies():
            known = ", ".join((*known_allocate_strategies(), f"{_NEARBY}<one of these>"))
            message = f"RocketMQ strategy {self.name!r} is not known: use one of {known}."
            raise UnknownStrategy(message)
        if self.name == _HASH and not 0 <= self.options.virtual_node_cnt < 2**31:
            message = f"illegal virtualNodeCnt :{self.options.virtual_node_cnt}"
            raise BadGroup(message)

    def prepare(self, queues: Queues, clients: Sequence[str]) -> Allocate:
        """Take `mqAll` and `cidAll`; returns a function that takes `currentCID`.

        All but CONFIG call `AbstractAllocateMessageQueueStrategy.check` first: three exceptions, then an empty list for
        an unlisted client. CONFIG accepts an empty client id, nonexistent queues, and missing lists.
        """
        first_index: dict[str, int] = {}
        for index, client in enumerate(clients):
            first_index.setdefault(client, index)
        refused: str | None = None
        if not queues:
            refused = "mqAll is null or mqAll empty"
        elif not clients:
            refused = "cidAll is null or cidAll empty"
        share: _Share | None = None

        def allocate(client: str) -> Queues | None:
            nonlocal share
            if self.name == _CONFIG:
                return self.options.message_queue_list
            reason = "currentCID is empty" if not client else refused
            if reason is not None:
                raise CallWouldFail(ILLEGAL_ARGUMENT, reason)
            index = first_index.get(client)
            if index is None:
                return ()
            share = share or self._share(queues, clients)
            return share(client, index)

        return allocate

    def _share(self, queues: Queues, clients: Sequence[str]) -> _Share:
        """Share out lists that pass the check; raises CallWouldFail where the class throws for every client."""
        if self.name.startswith(_NEARBY):
            return _nearby(queues, clients, self._delegate())
        return _SHARES[self.name](queues, clients, self.options)

    def _delegate(self) -> AllocateStrategy:
        return AllocateStrategy(self.name.removeprefix(_NEARBY), self.options)


def _averagely(queues: Queues, clients: Sequence[str], _options: Options) -> _Share:
    """The default strategy of every consumer class."""
    quota, larger = divmod(len(queues), len(clients))

    def share(_client: str, index: int) -> Queues:
        start = index * quota + min(index, larger)
        return queues[start : start + quota + (index < larger)]

    return share


def _by_circle(queues: Queues, clients: Sequence[str], _options: Options) -> _Share:
    """The k-th client gets every c-th queue from the k-th on."""
    return lambda _client, index: queues[index :: len(clients)]


# Limit for one ring: two seconds of hashing. The class's default is 10 per client. The class itself is slower, because
# it scans the ring for every client, and runs for every topic every 20 s, so rings of this size do not occur.
MOST_VIRTUAL_NODES = 2_000_000


def _by_hash(queues: Queues, clients: Sequence[str], options: Options) -> _Share:
    """Each client is on the ring `virtual_node_cnt` times; a queue belongs to the next node."""
    if options.virtual_node_cnt * len(clients) > MOST_VIRTUAL_NODES:
        reason = f"more than {MOST_VIRTUAL_NODES} virtual nodes: not recomputed"
        raise CannotTell(reason)
    ring = _ring(clients, options.virtual_node_cnt)
    positions = sorted(ring)
    owned: dict[str, list[MessageQueue]] = {}
    if positions:
        for queue in queues:
            after = bisect_left(positions, ring_hash(queue.text()))
            owner = ring[positions[after % len(positions)]]
            owned.setdefault(owner, []).append(queue)
    return lambda client, _index: tuple(owned.get(client, ()))


def _ring(clients: Sequence[str], virtual_node_cnt: int) -> dict[int, str]:
    """Client by position; a later node replaces an earlier one with the same hash."""
    ring: dict[int, str] = {}
    nodes: Counter[str] = Counter()
    for client in clients:
        # A client listed twice gets further nodes, numbered from the count that the ring still has of it.
        first = nodes[client]
        for number in range(first, first + virtual_node_cnt):
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


def _by_machine_room(queues: Queues, clients: Sequence[str], options: Options) -> _Share:
    """Queues whose broker is named "room@broker" with a configured room; the others have no owner.

    Each client gets a block of equal size; remaining queues are appended one by one from the tail, so a client's queues
    need not be contiguous.
    """
    here = tuple(queue for queue in queues if _is_here(queue.broker, options.consumeridcs))
    quota, rest = divmod(len(here), len(clients))

    def share(_client: str, index: int) -> Queues:
        block = here[quota * index : quota * (index + 1)]
        if rest > index:
            return (*block, here[index + quota * len(clients)])
        return block

    return share


def _is_here(broker: str, consumeridcs: frozenset[str] | None) -> bool:
    """Whether a broker is in a configured room; raises CallWouldFail where the class throws."""
    parts = _java_split(broker)
    if len(parts) != 2:
        return False
    if consumeridcs is None:
        reason = "consumeridcs is not set"
        raise CallWouldFail(NULL_POINTER, reason)
    return parts[0] in consumeridcs


def _java_split(text: str) -> list[str]:
    """`String.split("@")`, which drops empty parts at the end, unless there is no "@" at all."""
    parts = text.split("@")
    if len(parts) > 1:
        while parts and not parts[-1]:
            parts.pop()
    return parts


def _nearby(queues: Queues, clients: Sequence[str], delegate: AllocateStrategy) -> _Share:
    """A client gets its share of its own room's queues, then its share of every room that has no client.

    The delegate deals each room's queues. Rooms are walked in Java's order of strings, and each room without clients is
    dealt separately, so the first clients get all remainders.
    """
    separator = delegate.options.room_separator or ""

    def room_of(name: str, what: str) -> str:
        room = name.partition(separator)[0]
        if not room:
            reason = f"Machine room is null for {what}"
            raise CallWouldFail(ILLEGAL_ARGUMENT, reason)
        return room

    queues_of: dict[str, list[MessageQueue]] = {}
    for queue in queues:
        queues_of.setdefault(room_of(queue.broker, f"mq {queue.text()}"), []).append(queue)
    clients_of: dict[str, list[str]] = {}
    for client in clients:
        clients_of.setdefault(room_of(client, f"consumer id {client}"), []).append(client)
    for_all = [
        delegate.prepare(tuple(queues_of[room]), clients) for room in sorted_utf16(queues_of) if room not in clients_of
    ]

    @cache
    def of_room(room: str) -> Allocate:
        return delegate.prepare(tuple(queues_of[room]), clients_of[room])

    def share(client: str, _index: int) -> Queues:
        own = client.partition(separator)[0]
        parts = [of_room(own), *for_all] if own in queues_of else for_all
        result: list[MessageQueue] = []
        for part in parts:
            dealt = part(client)
            if dealt is None:
                reason = "the delegate returned null"
                raise CallWouldFail(NULL_POINTER, reason)
            result += dealt
        return tuple(result)

    return share


_SHARES: dict[str, Callable[[Queues, Sequence[str], Options], _Share]] = {
    "AVG": _averagely,
    "AVG_BY_CIRCLE": _by_circle,
    "MACHINE_ROOM": _by_machine_room,
    _HASH: _by_hash,
}


def known_allocate_strategies() -> tuple[str, ...]:
    """Names of all strategies; each is also a delegate, after "MACHINE_ROOM_NEARBY-"."""
    return (*_SHARES, _CONFIG)


def allocate_all(
    strategy: AllocateStrategy | str,
    queues: Iterable[MessageQueue],
    clients: Sequence[str],
    *,
    presort: bool = True,
) -> dict[str, Queues | CallWouldFail | None]:
    """The queues that every client computes for itself, by client, in the given order.

    Args:
        strategy: A strategy, or the name of one that needs no options.
        queues: All queues of the topic, `mqAll`.
        clients: All clients of the group, `cidAll`; may contain a client twice, as real ones do.
        presort: Sort both first, as `RebalanceImpl.rebalanceByTopic` does; else keep their order.

    Returns:
        A client's queues in the class's order; None where the class returns null; the exception where it throws.

    Raises:
        BadGroup: A queue id is not an int32.
        CannotTell: The result cannot be recomputed; `reason` says why.
    """
    chosen = AllocateStrategy(strategy) if isinstance(strategy, str) else strategy
    listed = checked(queues)
    of_client = chosen.prepare(
        sorted_queues(listed) if presort else listed, sorted_clients(clients) if presort else clients
    )
    result: dict[str, Queues | CallWouldFail | None] = {}
    for client in clients:
        try:
            result[client] = of_client(client)
        except CallWouldFail as thrown:
            result[client] = thrown
    return result
