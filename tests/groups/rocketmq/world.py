"""A RocketMQ cluster as rounds see it: brokers with lists, name servers with routes, clients that hold queues.

A test sets what each of them would say and lets rounds pass. Nothing is derived, except by `rebalance`, which lets a
client do what the Java client does: with one list and one route that the test names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from assignors.rocketmq import AllocateStrategy, MessageQueue, Options, sorted_clients, sorted_queues
from streaming.groups import GroupConfig, advance
from streaming.groups.context import Allocation
from streaming.groups.rows import Finding, GroupHealthRow, Rows
from streaming.groups.state import GroupState
from streaming.records import (
    CLUSTERING,
    ERROR,
    MISSING,
    NONE,
    OK,
    PUSH,
    TIMEOUT,
    BrokerSeen,
    ChannelSeen,
    Configured,
    HeldQueue,
    MemberSeen,
    QueuesSeen,
    RocketMQObservation,
    RouteBroker,
    RouteSeen,
    SubscriptionSeen,
    TopicSeen,
    decode_inputs,
    encode_inputs,
)

GROUP: Final = "billing"
TOPIC: Final = "orders"
RETRY: Final = f"%RETRY%{GROUP}"
START: Final = 1_767_225_600_000
SECOND: Final = 1_000
INTERVAL: Final = 10 * SECOND

_PACKAGE: Final = "org.apache.rocketmq.client.consumer.rebalance."
AVG: Final = f"{_PACKAGE}AllocateMessageQueueAveragely"
CIRCLE: Final = f"{_PACKAGE}AllocateMessageQueueAveragelyByCircle"
CONFIG: Final = f"{_PACKAGE}AllocateMessageQueueByConfig"
HASH: Final = f"{_PACKAGE}AllocateMessageQueueConsistentHash"
ROOM: Final = f"{_PACKAGE}AllocateMessageQueueByMachineRoom"
NEARBY: Final = f"{_PACKAGE}AllocateMachineRoomNearby"
NAMES: Final = {AVG: "AVG", CIRCLE: "AVG_BY_CIRCLE", HASH: "CONSISTENT_HASH"}

A, B, C, D = (f"10.0.0.{n}@1#7" for n in (1, 2, 3, 4))


@dataclass
class Client:
    """One consumer process."""

    client_id: str
    strategy: str | None = AVG
    topics: Sequence[str] = (TOPIC,)
    held: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    answer: str = OK
    started: int = START
    orderly: bool = False
    unlocked: set[tuple[str, int]] = field(default_factory=set)
    more: dict[str, Any] = field(default_factory=dict)

    def seen(self) -> MemberSeen:
        """What it tells."""
        if self.answer != OK:
            return MemberSeen(self.client_id, self.answer)
        queues = tuple(
            HeldQueue(topic, broker, number, locked=(broker, number) not in self.unlocked)
            for topic, held in sorted(self.held.items())
            for broker, number in sorted(held)
        )
        told = MemberSeen(
            self.client_id,
            OK,
            strategy=self.strategy,
            consume_type=PUSH,
            message_model=CLUSTERING,
            orderly=self.orderly,
            started=self.started,
            subscriptions=tuple(SubscriptionSeen(topic) for topic in self.topics),
            queues=queues,
        )
        return msgspec.structs.replace(told, **self.more)


class World:
    """A cluster with one group; `round` observes it and advances the core."""

    def __init__(self, config: GroupConfig | None = None, interval: int = INTERVAL) -> None:
        self.config = config or GroupConfig("test")
        self.interval = interval
        self.routes: dict[str, dict[str, dict[str, int]]] = {"n1": {TOPIC: {"broker-a": 4, "broker-b": 4}}}
        self.lists: dict[str, list[str] | None] = {"broker-a": [], "broker-b": []}
        self.clients: dict[str, Client] = {}
        self.offsets: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
        self.addresses: dict[str, list[str]] = {}
        self.broker_more: dict[str, Any] = {}
        self.round_more: dict[str, Any] = {}
        self.replicas: list[BrokerSeen] = []
        self.configured: Configured | None = None
        self.number = 0
        self.elapsed = 0
        self.state: GroupState | None = None
        self.seen: list[RocketMQObservation] = []
        self.rows = Rows()

    # What the test sets

    def join(self, *clients: Client) -> None:
        """Put clients on the lists of all brokers."""
        for client in clients:
            self.clients[client.client_id] = client
            for listed in self.lists.values():
                if listed is not None:
                    listed.append(client.client_id)

    def leave(self, client: str) -> None:
        """Take a client off all lists."""
        del self.clients[client]
        for listed in self.lists.values():
            while listed is not None and client in listed:
                listed.remove(client)

    def rebalance(self, *clients: str, broker: str = "broker-a", server: str = "n1") -> None:
        """Let clients, or all, rebalance each subscribed topic by one broker's list and one name server's route."""
        for name in clients or tuple(self.clients):
            client = self.clients[name]
            for topic in client.topics:
                self.rebalance_topic(client, topic, self.lists[broker] or [], self.routes[server].get(topic, {}))

    def rebalance_topic(self, client: Client, topic: str, listed: Iterable[str], route: Mapping[str, int]) -> None:
        """What `RebalanceImpl.rebalanceByTopic` does with one view; an empty list or route changes nothing."""
        queues = [MessageQueue(topic, broker, n) for broker, count in route.items() for n in range(count)]
        members = list(listed)
        if not queues or not members:
            return
        strategy = AllocateStrategy(NAMES.get(client.strategy or AVG, "AVG"), Options())
        given = strategy.prepare(sorted_queues(queues), sorted_clients(members))(client.client_id)
        client.held[topic] = {(queue.broker, queue.queue) for queue in given or ()}

    def settle(self, rounds: int = 8) -> None:
        """Let everybody rebalance, and rounds pass until the verdict is in; forget their rows but the last health."""
        self.rebalance()
        self.round(rounds)
        self.rows = Rows(group_health=self.rows.group_health[-1:])

    def consume(self, topic: str, broker: str, queue: int, end: int, committed: int) -> None:
        """Set the end and the group's offset of a queue."""
        ends, commits = self.offsets.setdefault((topic, broker), ([], []))
        while len(ends) <= queue:
            ends.append(0)
            commits.append(-1)
        ends[queue], commits[queue] = end, committed

    # What a round sees

    def observation(self) -> RocketMQObservation:
        """The next round."""
        self.number += 10
        self.elapsed += self.interval
        brokers = tuple(self._broker(name, listed) for name, listed in sorted(self.lists.items()))
        brokers += tuple(self.replicas)
        listed = sorted({client for clients in self.lists.values() for client in clients or ()})
        seen = RocketMQObservation(
            round=self.number,
            time=START + self.elapsed,
            gone=None,
            brokers=brokers,
            members=tuple(
                self.clients[client].seen() if client in self.clients else MemberSeen(client, TIMEOUT)
                for client in listed
            ),
            topics=tuple(self._topic(topic) for topic in self._topics()),
            elapsed=self.elapsed,
            closed=START + self.elapsed + 500,
            configured=self.configured,
        )
        return msgspec.structs.replace(seen, **self.round_more)

    def _broker(self, name: str, listed: list[str] | None) -> BrokerSeen:
        address = f"{name}:10911"
        if listed is None:
            return BrokerSeen(name, 0, address, TIMEOUT, "no answer")
        seen = BrokerSeen(
            name,
            0,
            address,
            OK if listed else NONE,
            clients=tuple(sorted(listed)),
            channels=tuple(
                ChannelSeen(client, self._address(client, at), "JAVA") for at, client in enumerate(sorted(listed))
            ),
        )
        return msgspec.structs.replace(seen, **self.broker_more)

    def _address(self, client: str, at: int) -> str:
        known = self.addresses.get(client, [])
        return known[at % len(known)] if known else f"{client.partition('@')[0]}:40000"

    def _topics(self) -> list[str]:
        return sorted({topic for topics in self.routes.values() for topic in topics})

    def _topic(self, topic: str) -> TopicSeen:
        brokers = sorted({broker for topics in self.routes.values() for broker in topics.get(topic, {})})
        routes = tuple(
            RouteSeen(
                server,
                OK if topic in topics else MISSING,
                tuple(RouteBroker(broker, count, 6) for broker, count in sorted(topics.get(topic, {}).items())),
            )
            for server, topics in self.routes.items()
        )
        return TopicSeen(topic, routes, tuple(self._queues(topic, broker) for broker in brokers))

    def _queues(self, topic: str, broker: str) -> QueuesSeen:
        if self.lists.get(broker, []) is None:
            return QueuesSeen(broker, ERROR)
        count = max(topics.get(topic, {}).get(broker, 0) for topics in self.routes.values())
        ends, commits = self.offsets.get((topic, broker), ([], []))
        more = count - len(ends)
        return QueuesSeen(
            broker,
            OK,
            min=(0,) * (len(ends) + max(0, more)),
            max=(*ends, *(0,) * more),
            committed=(*commits, *(-1,) * more),
        )

    # Rounds

    def round(self, times: int = 1) -> Rows:
        """Observe the cluster and advance the core, once or several times; the rows of all these rounds."""
        new = Rows()
        for _ in range(times):
            seen = self.observation()
            self.seen.append(seen)
            self.state, rows = advance(self.state, GROUP, decode_inputs(encode_inputs([seen])), self.config)
            for table in rows.__struct_fields__:
                getattr(new, table).extend(getattr(rows, table))
                getattr(self.rows, table).extend(getattr(rows, table))
        return new

    @property
    def health(self) -> GroupHealthRow:
        """The newest row of `group_health`."""
        return self.rows.group_health[-1]

    @property
    def findings(self) -> dict[str, Finding]:
        """The findings that hold now, by name."""
        return {found.finding: found for found in self.health.findings}


def three(config: GroupConfig | None = None, **more: Any) -> World:
    """A settled group of three on two brokers with four queues each."""
    world = World(config)
    world.join(*(Client(name, **more) for name in (A, B, C)))
    world.round()
    world.settle()
    return world


def group(*clients: Client, allocation: Allocation | None = None) -> World:
    world = World(GroupConfig("test", allocation=lambda _: allocation or Allocation()))
    world.join(*(clients or (Client(A), Client(B), Client(C))))
    world.rebalance()
    return world


def verdicts(world: World, rounds: int = 2) -> dict[str | None, tuple[str, str | None]]:
    """Verdict and reason by topic, of the newest decision."""
    world.round(rounds)
    newest = max((row.decision for row in world.rows.drift), default=0)
    return {row.topic: (row.verdict, row.reason) for row in world.rows.drift if row.decision == newest}


def text(world: World, finding: str) -> str:
    return world.findings[finding].detail
