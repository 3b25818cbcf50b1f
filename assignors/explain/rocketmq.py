"""Steps of RocketMQ's strategies: pools of queues, each dealt to some clients by one rule.

Most strategies have one pool, all queues and all clients; MACHINE_ROOM has only the queues of its rooms, and
MACHINE_ROOM_NEARBY one pool per room. Who gets what is asked of the strategy itself; the checks are the rules written
down a second time, as simply as possible.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5

from assignors.assignment import Assignment, PartitionId
from assignors.exceptions import AssignorError, CallWouldFail
from assignors.explain.ledger import Facts, Ledger, WrongStepError, require
from assignors.explain.steps import Result, Step
from assignors.explain.words import count, grouped, name, names, partition_names, shares
from assignors.order import utf16
from assignors.rocketmq import AllocateStrategy, MessageQueue, allocate_all, sorted_clients, sorted_queues
from assignors.rocketmq.averagely import Averagely, ByCircle, ByConfig
from assignors.rocketmq.consistent_hash import ConsistentHash
from assignors.rocketmq.machine_rooms import ByMachineRoom, MachineRoomNearby

_MOST_LINES = 12

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
        nodes: Virtual nodes of each client, for CONSISTENT_HASH.
    """

    kind = "pool"
    rule: str
    what: str
    queues: tuple[PartitionId, ...]
    clients: tuple[str, ...]
    given: tuple[tuple[PartitionId, str], ...]
    in_order: bool
    nodes: int = 0
    texts: tuple[str, ...] = ()

    def _text(self, partition: PartitionId | None) -> str:
        if partition is not None:
            owners = [client for queue, client in self.given if queue == partition]
            if not owners:
                return f"{name(partition[0])} {partition[1]} goes to nobody."
            if self.rule == "CONFIG":
                return f"{name(partition[0])} {partition[1]} is in the configured list, so it goes to {names(owners)}."
            if self.rule == "CONSISTENT_HASH":
                own = _hash(self.texts[self.queues.index(partition)])
                return (
                    f"{name(partition[0])} {partition[1]} has the hash {own} on the ring of 2^32; the next node "
                    f"after it belongs to {name(owners[0])}."
                )
            return (
                f"{name(partition[0])} {partition[1]} is number {self.queues.index(partition) + 1} of "
                f"{count(len(self.queues), 'queue')}, and {name(owners[0])} number "
                f"{self.clients.index(owners[0]) + 1} of {count(len(self.clients), 'client')}: its share."
            )
        lists = grouped(self.given)
        order = f" ({_IN_ORDER})" if self.in_order else ""
        make = ""
        if self.clients and self.rule in ("AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM"):
            quota, larger = divmod(len(self.queues), len(self.clients))
            make = f" make {shares(quota, larger)}"
        listed = "; ".join(
            f"{name(client)}: {partition_names(mine)}" for client, mine in list(lists.items())[:_MOST_LINES]
        )
        left = len(lists) - _MOST_LINES
        more = "" if left <= 0 else f"; and {count(left, 'more client')}"
        what = f" {self.what}" if self.what else ""
        return (
            f"{count(len(self.queues), 'queue')}{what} for {count(len(self.clients), 'client')}{make}{order}. "
            f"{listed or 'Nobody gets any'}{more}."
        )

    def _about(self) -> Iterable[PartitionId]:
        return self.queues

    def _enter(self, ledger: Ledger) -> None:
        if self.in_order:
            keys = [utf16(client) for client in self.clients]
            require(keys == sorted(keys), "the clients are not in order")
        expected = _CHECKS[self.rule](self) if self.clients else {}
        require({c: q for c, q in expected.items() if q} == grouped(self.given), f"{self.rule} gives something else")
        for queue, client in self.given:
            ledger.give(client, queue)


def _hash(text: str) -> int:
    return int.from_bytes(md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest()[:4], "big")


def _blocks(pool: Pool) -> dict[str, list[PartitionId]]:
    quota, larger = divmod(len(pool.queues), len(pool.clients))
    result, start = {}, 0
    for index, client in enumerate(pool.clients):
        stop = start + quota + (index < larger)
        result[client], start = list(pool.queues[start:stop]), stop
    return result


def _circle(pool: Pool) -> dict[str, list[PartitionId]]:
    result: dict[str, list[PartitionId]] = {client: [] for client in pool.clients}
    for index, queue in enumerate(pool.queues):
        result[pool.clients[index % len(pool.clients)]].append(queue)
    return result


def _listed(pool: Pool) -> dict[str, list[PartitionId]]:
    return {client: list(pool.queues) for client in pool.clients}


def _rooms(pool: Pool) -> dict[str, list[PartitionId]]:
    quota, larger = divmod(len(pool.queues), len(pool.clients))
    result = {client: list(pool.queues[quota * i : quota * (i + 1)]) for i, client in enumerate(pool.clients)}
    for index in range(larger):
        result[pool.clients[index]].append(pool.queues[quota * len(pool.clients) + index])
    return result


def _ring(pool: Pool) -> dict[str, list[PartitionId]]:
    ring = {_hash(f"{client}-{node}"): client for client in pool.clients for node in range(pool.nodes)}
    positions = sorted(ring)
    result: dict[str, list[PartitionId]] = {client: [] for client in pool.clients}
    for queue, text in zip(pool.queues, pool.texts, strict=True):
        if positions:
            result[ring[positions[bisect_left(positions, _hash(text)) % len(positions)]]].append(queue)
    return result


_CHECKS: Mapping[str, Callable[[Pool], dict[str, list[PartitionId]]]] = {
    "AVG": _blocks,
    "AVG_BY_CIRCLE": _circle,
    "CONFIG": _listed,
    "MACHINE_ROOM": _rooms,
    "CONSISTENT_HASH": _ring,
}


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

    def _text(self, partition: PartitionId | None) -> str:
        del partition
        return f"The call of {names(self.clients)} throws ({self.reason}): such a client keeps the queues that it has."

    def _enter(self, ledger: Ledger) -> None:
        require(set(self.clients) <= set(ledger.owned), "it names a stranger")


QueueExplanation = tuple[str, tuple[Step, ...], Assignment | None, str | None]
"""Rule, steps, assignment and reason of an `Explanation`."""


def explain_rocketmq(
    strategy: AllocateStrategy, queues: Sequence[MessageQueue], clients: Sequence[str], *, presort: bool
) -> QueueExplanation:
    """Explain one topic's allocation; a queue is named "topic on broker" and its number."""
    rule = rule_of(strategy)
    try:
        dealt = allocate_all(strategy, queues, clients, presort=presort)
    except AssignorError as error:
        return rule, (), None, str(getattr(error, "reason", error)).rstrip(".")
    assignment: Assignment = {}
    failing: dict[str, list[str]] = {}
    for client, mine in dealt.items():
        assignment[client] = {}
        if isinstance(mine, CallWouldFail):
            failing.setdefault(str(mine), []).append(client)
            continue
        by_topic: dict[str, list[int]] = {}
        for queue in mine or ():
            by_topic.setdefault(partition_of(queue)[0], []).append(queue.queue)
        assignment[client] = dict(by_topic)
    sizes = {client: sum(map(len, topics.values())) for client, topics in assignment.items()}
    result = Result(sizes, sum(sizes.values()))
    if len(set(queues)) < len(queues) or len(set(clients)) < len(clients):
        return rule, (result,), assignment, "a queue or a client is listed more than once"
    steps: list[Step] = [Fails(tuple(of), reason) for reason, of in failing.items()]
    ordered = sorted_queues(queues) if presort else tuple(queues)
    in_order = sorted_clients(clients) if presort else tuple(clients)
    if not failing:
        made = _pools(strategy, ordered, in_order, in_order=presort)
        if made is None:
            return rule, (result,), assignment, "it nests one rule for rooms in another"
        steps += made
    facts = Facts({client: frozenset() for client in clients}, {})
    ledger = Ledger(facts)
    try:
        for step in steps:
            step.enter(ledger)
        if not failing:
            ledger.require_equal(assignment)
    except WrongStepError:
        reason = (
            "they do not add up to the assignment, which is a mistake in Evenkeel: please report it with the inputs"
        )
        return rule, (result,), assignment, reason
    return rule, (*steps, result), assignment, None


def partition_of(queue: MessageQueue) -> PartitionId:
    """A queue as explanations name it."""
    return f"{queue.topic} on {queue.broker}", queue.queue


def spellings(topic: str, broker: str | None) -> tuple[str, ...]:
    """Names by which a person may mean a queue's topic: alone, as the steps name it, and as tables and page do."""
    return (topic,) if broker is None else (topic, f"{topic} on {broker}", f"{topic}@{broker}")


def with_configured(strategy: AllocateStrategy, queues: Sequence[MessageQueue]) -> tuple[MessageQueue, ...]:
    """The queues that a strategy can give: those it is asked about, and those of the list in a client's code."""
    while isinstance(strategy, MachineRoomNearby):
        strategy = strategy.delegate
    listed = strategy.message_queue_list or () if isinstance(strategy, ByConfig) else ()
    return (*queues, *listed)


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
    for room in sorted(rooms, key=utf16):
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
    nodes = 0
    listed = tuple(queues)
    if isinstance(strategy, ByConfig):
        listed = strategy.message_queue_list or ()
    elif isinstance(strategy, ByMachineRoom):
        rooms = strategy.consumeridcs or frozenset()
        listed = tuple(queue for queue in listed if _room(queue.broker) in rooms)
        what = f"of rooms {names(sorted(rooms))}" if not what else f"{what} in rooms {names(sorted(rooms))}"
    elif isinstance(strategy, ConsistentHash):
        nodes = strategy.virtual_node_cnt
    elif not isinstance(strategy, Averagely | ByCircle):
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
        nodes,
        tuple(queue.text() for queue in listed),
    )


def _room(broker: str) -> str | None:
    parts = broker.rstrip("@").split("@") if "@" in broker else []
    return parts[0] if len(parts) == 2 else None
