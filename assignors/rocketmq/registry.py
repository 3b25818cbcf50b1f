"""All RocketMQ strategies by name. A new one needs its own file and one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from assignors.exceptions import BadOption, CallWouldFail, UnknownStrategy
from assignors.rocketmq.averagely import Averagely, ByCircle, ByConfig
from assignors.rocketmq.consistent_hash import ConsistentHash
from assignors.rocketmq.machine_rooms import ByMachineRoom, MachineRoomNearby, before_separator
from assignors.rocketmq.strategy import AllocateStrategy, MessageQueue, Queues, checked, sorted_clients, sorted_queues

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
        BadOption: The class cannot be constructed with them.
    """
    options = options or Options()
    if name.startswith(_NEARBY):
        delegate = strategy_named(name.removeprefix(_NEARBY), options)
        if options.room_separator is None:
            message = "MACHINE_ROOM_NEARBY needs a rule for rooms: give the option room_separator."
            raise BadOption(message)
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
        BadQueue: A queue id is not an int32.
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
        BadQueue: A queue id is not an int32.
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
