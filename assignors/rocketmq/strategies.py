"""All RocketMQ strategies, following the classes of 5.5.0, and by name. A new one needs its class and one line here.

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
from dataclasses import dataclass
from functools import cache
from hashlib import md5

from assignors.exceptions import ILLEGAL_ARGUMENT, NULL_POINTER, BadGroup, CallWouldFail, CannotTell, UnknownStrategy
from assignors.order import sorted_utf16
from assignors.rocketmq.strategy import (
    Allocate,
    AllocateStrategy,
    Checked,
    MessageQueue,
    Queues,
    checked,
    sorted_clients,
    sorted_queues,
)


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
            raise BadGroup(message)
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
        here = tuple(queue for queue in queues if self.is_here(queue.broker))
        quota, rest = divmod(len(here), len(clients))

        def share(_client: str, index: int) -> Queues:
            block = here[quota * index : quota * (index + 1)]
            if rest > index:
                return (*block, here[index + quota * len(clients)])
            return block

        return share

    def is_here(self, broker: str) -> bool:
        """Whether a broker is in a configured room; raises CallWouldFail where the class throws."""
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


Resolver = Callable[[str], str]
"""The room of a broker, by its name, or of a client, by its id; "" means none."""


class MachineRoomNearby(Checked):
    """A client gets its share of its own room's queues, then its share of every room that has no client.

    Rooms are walked in Java's order of strings, and each room without clients is dealt separately, so the first clients
    get all remainders.

    Attributes:
        delegate: The strategy that deals each room's queues.
        room_of: The `MachineRoomResolver`, the same rule for brokers and clients.
    """

    def __init__(self, delegate: AllocateStrategy, room_of: Resolver) -> None:
        self.delegate = delegate
        self.room_of = room_of

    @property
    def name(self) -> str:
        """The class's prefix and the delegate's name."""
        return f"MACHINE_ROOM_NEARBY-{self.delegate.name}"

    def _share(self, queues: Queues, clients: Sequence[str]) -> Callable[[str, int], Queues]:
        queues_of: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            queues_of.setdefault(self._room(queue.broker, f"mq {queue.text()}"), []).append(queue)
        clients_of: dict[str, list[str]] = {}
        for client in clients:
            clients_of.setdefault(self._room(client, f"consumer id {client}"), []).append(client)
        for_all = [
            self.delegate.prepare(tuple(queues_of[room]), clients)
            for room in sorted_utf16(queues_of)
            if room not in clients_of
        ]

        @cache
        def of_room(room: str) -> Allocate:
            return self.delegate.prepare(tuple(queues_of[room]), clients_of[room])

        def share(client: str, _index: int) -> Queues:
            own = self.room_of(client)
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

    def _room(self, name: str, what: str) -> str:
        room = self.room_of(name)
        if not room:
            reason = f"Machine room is null for {what}"
            raise CallWouldFail(ILLEGAL_ARGUMENT, reason)
        return room


def before_separator(separator: str) -> Resolver:
    """A resolver: the room is the text before the first separator; a name without one is a room itself.

    Raises:
        BadGroup: The separator is empty.
    """
    if not separator:
        message = "The room_separator is empty: give the text between the room and the rest of a name."
        raise BadGroup(message)
    return lambda name: name.partition(separator)[0]


_NEARBY = "MACHINE_ROOM_NEARBY-"


@dataclass(frozen=True, slots=True)
class Options:
    """Constructor options of the strategies; each strategy takes its own.

    Attributes:
        virtual_node_cnt: For CONSISTENT_HASH.
        message_queue_list: For CONFIG; None when not set.
        consumeridcs: For MACHINE_ROOM; None when not set.
        room_separator: For MACHINE_ROOM_NEARBY: the room is the text before it, in broker names and client ids.
    """

    virtual_node_cnt: int = 10
    message_queue_list: Queues | None = None
    consumeridcs: frozenset[str] | None = None
    room_separator: str | None = None


_MAKERS: dict[str, Callable[[Options], AllocateStrategy]] = {
    "AVG": lambda _: Averagely(),
    "AVG_BY_CIRCLE": lambda _: ByCircle(),
    "CONFIG": lambda options: ByConfig(options.message_queue_list),
    "MACHINE_ROOM": lambda options: ByMachineRoom(options.consumeridcs),
    "CONSISTENT_HASH": lambda options: ConsistentHash(options.virtual_node_cnt),
}


def known_allocate_strategies() -> tuple[str, ...]:
    """Names of all strategies; each is also a delegate, after "MACHINE_ROOM_NEARBY-"."""
    return tuple(_MAKERS)


def strategy_named(name: str, options: Options | None = None) -> AllocateStrategy:
    """The strategy with this `getName()`, constructed with these options.

    Raises:
        UnknownStrategy: There is none with this name.
        BadGroup: The class cannot be constructed with them.
    """
    options = options or Options()
    if name.startswith(_NEARBY):
        delegate = strategy_named(name.removeprefix(_NEARBY), options)
        if options.room_separator is None:
            message = "MACHINE_ROOM_NEARBY needs a rule for rooms: give the option room_separator."
            raise BadGroup(message)
        return MachineRoomNearby(delegate, before_separator(options.room_separator))
    maker = _MAKERS.get(name)
    if maker is None:
        known = ", ".join((*_MAKERS, f"{_NEARBY}<one of these>"))
        message = f"RocketMQ strategy {name!r} is not known: use one of {known}."
        raise UnknownStrategy(message)
    return maker(options)


def allocate(
    strategy: AllocateStrategy | str, client: str, queues: Iterable[MessageQueue], clients: Sequence[str]
) -> Queues | None:
    """The result of one call of the class's `allocate`, with the lists in the given order.

    Args:
        strategy: A strategy, or the name of one that needs no options.
        client: `currentCID`.
        queues: `mqAll`.
        clients: `cidAll`; may contain a client twice, as real ones do.

    Returns:
        The client's queues in the class's order; None where the class returns null.

    Raises:
        CallWouldFail: The class throws.
        BadGroup: A queue id is not an int32.
        CannotTell: The result cannot be recomputed; `reason` says why.
    """
    chosen = strategy_named(strategy) if isinstance(strategy, str) else strategy
    return chosen.prepare(checked(queues), clients)(client)


def allocate_all(
    strategy: AllocateStrategy | str,
    queues: Iterable[MessageQueue],
    clients: Sequence[str],
    *,
    presort: bool = True,
) -> dict[str, Queues | CallWouldFail | None]:
    """The queues that every client computes for itself, by client, in the given order.

    Args:
        strategy: As in `allocate`.
        queues: All queues of the topic.
        clients: All clients of the group.
        presort: Sort both first, as `RebalanceImpl.rebalanceByTopic` does; else keep their order.

    Returns:
        As `allocate` for each client; the exception where its call would throw.

    Raises:
        BadGroup: A queue id is not an int32.
        CannotTell: The result cannot be recomputed; `reason` says why.
    """
    chosen = strategy_named(strategy) if isinstance(strategy, str) else strategy
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
