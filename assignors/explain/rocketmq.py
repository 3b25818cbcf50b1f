"""Steps of RocketMQ's strategies: pools of queues, each dealt to some clients by one rule.

Most strategies have one pool, all queues and all clients; MACHINE_ROOM has only the queues of its rooms, and
MACHINE_ROOM_NEARBY one pool per room. Who gets what is asked of the strategy itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assignors.assignment import PartitionId, from_pairs
from assignors.exceptions import AssignorError, CallWouldFail
from assignors.explain.explanation import Explanation
from assignors.jsonl.lines import ROCKETMQ_PREFIX, AllocateLine, as_queues
from assignors.order import sorted_utf16
from assignors.rocketmq import AllocateStrategy, MessageQueue, Queues, allocate_all, sorted_clients, sorted_queues
from assignors.rocketmq.strategies import (
    Averagely,
    ByCircle,
    ByConfig,
    ByMachineRoom,
    ConsistentHash,
    MachineRoomNearby,
    ring_hash,
)
from assignors.steps import Step
from assignors.words import count, name, names, one, partition_lines, shares

_RULES = {
    "AVG": (
        "AVG cuts the queues, in order, into one block per client; where they do not divide evenly, the first clients "
        "get one more."
    ),
    "AVG_BY_CIRCLE": "AVG_BY_CIRCLE deals the queues, in order, to the clients in turn, like cards.",
    "CONFIG": "CONFIG gives every client the queues that its code was configured with, whatever the others do.",
    "MACHINE_ROOM": (
        "MACHINE_ROOM deals only queues of brokers named room@broker with a configured room: one block per client, and "
        "what is left one by one to the first clients."
    ),
    "CONSISTENT_HASH": (
        "CONSISTENT_HASH puts every client several times on a ring, at hashes of its id; a queue belongs to the next "
        "client on the ring after the hash of its own name."
    ),
}

_IN_ORDER = "queues by topic, broker and number, clients by id, as Java compares strings"


@dataclass(frozen=True, slots=True)
class Pool(Step):
    """Queues dealt to clients by one rule.

    Attributes:
        rule: A key of `_RULES`.
        what: What the queues have in common, for the sentence; "" for all queues.
        queues: The queues in order.
        clients: The clients in order.
        given: (queue, client), client by client.
        in_order: Whether both lists are sorted, as clients of a real group do.
        texts: The text of each queue that CONSISTENT_HASH hashes.
    """

    kind = "pool"
    rule: str
    what: str
    queues: tuple[PartitionId, ...]
    clients: tuple[str, ...]
    given: tuple[tuple[PartitionId, str], ...]
    in_order: bool
    texts: tuple[str, ...] = ()

    def text(self) -> str:
        said = f"{count(len(self.queues), 'queue')}{f' {self.what}' if self.what else ''} for "
        said += count(len(self.clients), "client")
        if self.clients and self.rule in ("AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM"):
            said += f" make {shares(*divmod(len(self.queues), len(self.clients)))}"
        order = f" ({_IN_ORDER})" if self.in_order else ""
        return f"{said}{order}. {partition_lines(self.given, 'client') or 'Nobody gets any'}."

    def text_of(self, partition: PartitionId) -> str:
        owners = [client for queue, client in self.given if queue == partition]
        if not owners:
            return f"{one(partition)} goes to nobody."
        if self.rule == "CONFIG":
            return f"{one(partition)} is in the configured list, so it goes to {names(owners)}."
        position = self.queues.index(partition)
        if self.rule == "CONSISTENT_HASH":
            return (
                f"{one(partition)} has the hash {ring_hash(self.texts[position])} on the ring of 2^32; the next "
                f"node after it belongs to {name(owners[0])}."
            )
        return (
            f"{one(partition)} is number {position + 1} of {count(len(self.queues), 'queue')}, and "
            f"{name(owners[0])} number {self.clients.index(owners[0]) + 1} of "
            f"{count(len(self.clients), 'client')}: its share."
        )

    def about(self) -> Iterable[PartitionId]:
        return self.queues


@dataclass(frozen=True, slots=True)
class Fails(Step):
    """Clients whose own call throws: they keep the queues that they have.

    Attributes:
        clients: The clients.
        reason: What the class throws.
    """

    kind = "fails"
    clients: tuple[str, ...]
    reason: str

    def text(self) -> str:
        return f"The call of {names(self.clients)} throws ({self.reason}): such a client keeps the queues that it has."


def explain_rocketmq(line: AllocateLine) -> Explanation:
    """Explain one topic's allocation; a queue is named "topic on broker" and its number."""
    strategy = line.named(line.strategy)
    queues, clients = as_queues(line.queues), line.clients
    partitions: dict[str, set[int]] = {}
    places: dict[str, dict[str, None]] = {}
    for queue in (*queues, *_configured(strategy)):
        place, number = partition_of(queue)
        partitions.setdefault(place, set()).add(number)
        for spelling in spellings(queue.topic, queue.broker):
            places.setdefault(spelling, {})[place] = None
    blank = Explanation(
        ROCKETMQ_PREFIX + strategy.name,
        "every client for itself",
        rule_of(strategy),
        partitions=partitions,
        places={spelling: tuple(of) for spelling, of in places.items()},
    )
    try:
        dealt = allocate_all(strategy, queues, clients, presort=line.presort)
    except AssignorError as error:
        return blank.not_computed(error)
    assignment = from_pairs(
        {
            client: [] if isinstance(mine, CallWouldFail) else map(partition_of, mine or ())
            for client, mine in dealt.items()
        }
    )
    if len(set(queues)) < len(queues) or len(set(clients)) < len(clients):
        return blank.with_steps(assignment, (), "a queue or a client is listed more than once")
    failing: dict[str, list[str]] = {}
    for client, mine in dealt.items():
        if isinstance(mine, CallWouldFail):
            failing.setdefault(str(mine), []).append(client)
    if failing:
        return blank.with_steps(assignment, [Fails(tuple(of), reason) for reason, of in failing.items()])
    in_order = sorted_queues(queues) if line.presort else queues
    pools = _pools(strategy, in_order, sorted_clients(clients) if line.presort else clients, in_order=line.presort)
    return blank.with_steps(assignment, pools or (), None if pools else "it nests one rule for rooms in another")


def partition_of(queue: MessageQueue) -> PartitionId:
    """A queue as explanations name it."""
    return f"{queue.topic} on {queue.broker}", queue.queue


def spellings(topic: str, broker: str | None) -> tuple[str, ...]:
    """Names by which a person may mean a queue's topic: alone, as the steps name it, and as tables and page do."""
    return (topic,) if broker is None else (topic, f"{topic} on {broker}", f"{topic}@{broker}")


def _configured(strategy: AllocateStrategy) -> Queues:
    """The queues of the list in a client's code, which a strategy can give in addition to those it is asked about."""
    while isinstance(strategy, MachineRoomNearby):
        strategy = strategy.delegate
    return strategy.message_queue_list or () if isinstance(strategy, ByConfig) else ()


def rule_of(strategy: AllocateStrategy) -> str:
    """What a strategy does, in words."""
    if isinstance(strategy, MachineRoomNearby):
        return (
            "MACHINE_ROOM_NEARBY deals each room's queues among the clients of that room, and the queues of rooms "
            f"without a client among all. Within a room: {rule_of(strategy.delegate)}"
        )
    return _RULES.get(strategy.name, f"{strategy.name}.")


def _pools(
    strategy: AllocateStrategy, queues: Sequence[MessageQueue], clients: Sequence[str], *, in_order: bool
) -> list[Step] | None:
    if not isinstance(strategy, MachineRoomNearby):
        pool = _pool(strategy, queues, clients, "", in_order=in_order)
        return None if pool is None else [pool]
    rooms: dict[str, list[MessageQueue]] = {}
    for queue in queues:
        rooms.setdefault(strategy.room_of(queue.broker), []).append(queue)
    clients_of: dict[str, list[str]] = {}
    for client in clients:
        clients_of.setdefault(strategy.room_of(client), []).append(client)
    result: list[Step] = []
    for room in sorted_utf16(rooms):
        here = clients_of.get(room)
        what = f"of room {name(room)}" if here else f"of room {name(room)}, which has no client,"
        pool = _pool(strategy.delegate, rooms[room], here or list(clients), what, in_order=in_order)
        if pool is None:
            return None
        result.append(pool)
    return result


def _pool(
    strategy: AllocateStrategy, queues: Sequence[MessageQueue], clients: Sequence[str], what: str, *, in_order: bool
) -> Pool | None:
    listed = tuple(queues)
    if isinstance(strategy, ByConfig):
        listed = strategy.message_queue_list or ()
    elif isinstance(strategy, ByMachineRoom):
        rooms = strategy.consumeridcs or frozenset()
        listed = tuple(queue for queue in listed if strategy.is_here(queue.broker))
        what = f"of rooms {names(sorted(rooms))}" if not what else f"{what} in rooms {names(sorted(rooms))}"
    elif not isinstance(strategy, Averagely | ByCircle | ConsistentHash):
        return None
    allocate = strategy.prepare(tuple(queues), clients)
    given = tuple((partition_of(queue), client) for client in clients for queue in allocate(client) or ())
    return Pool(
        strategy.name,
        what,
        tuple(map(partition_of, listed)),
        tuple(clients),
        given,
        in_order,
        tuple(queue.text() for queue in listed),
    )
