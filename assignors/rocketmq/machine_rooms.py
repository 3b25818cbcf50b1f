"""MACHINE_ROOM: the queues of some rooms; MACHINE_ROOM_NEARBY-<delegate>: each room's own queues first (5.5.0).

The classes are `AllocateMessageQueueByMachineRoom`, which finds the room in the broker's name, and
`AllocateMachineRoomNearby`, which gives the queues of rooms without clients to all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from assignors.exceptions import ILLEGAL_ARGUMENT, NULL_POINTER, BadOption, CallWouldFail
from assignors.order import sorted_utf16
from assignors.rocketmq.strategy import Allocate, AllocateStrategy, Checked, MessageQueue, Queues


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
            return (*block, here[index + quota * len(clients)]) if rest > index else block

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
        BadOption: The separator is empty.
    """
    if not separator:
        message = "The room_separator is empty: give the text between the room and the rest of a name."
        raise BadOption(message)
    return lambda name: name.partition(separator)[0]
