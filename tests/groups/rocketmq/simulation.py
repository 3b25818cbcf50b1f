"""A RocketMQ group that lives by the clock: clients that rebalance every 20 s, and at once on request.

Every client has a route of its own, polled every 30 s from one name server, and asks a random broker of it for the list
of members. Messages between them take up to a second. Rounds look every 10 s and take half a second for it, so they see
clients at different moments. After `RebalanceService`, `MQClientInstance` and `ConsumerManager` (5.5.0).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.groups.rocketmq.world import SECOND, TOPIC, Client, World

CYCLE: Final = 20 * SECOND
POLL: Final = 30 * SECOND
LONGEST_MESSAGE: Final = SECOND
LOOK: Final = 500


@dataclass
class _Alive:
    """A client's own clock and view."""

    client: Client
    server: str
    route: dict[str, int] = field(default_factory=dict)
    follows: bool = True


class Simulation:
    """A world whose clients act by themselves."""

    def __init__(self, seed: int, interval: int = 10 * SECOND) -> None:
        self.random = Random(seed)
        self.world = World(interval=interval)
        queues = self.random.randint(1, 4)
        self.world.routes = {"n1": {TOPIC: {"broker-a": queues, "broker-b": queues}}}
        self.alive: dict[str, _Alive] = {}
        self.now = 0
        self.cut: set[tuple[str, str]] = set()
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._names = 0
        self._look(interval)

    def later(self, delay: int, action: Callable[[], None]) -> None:
        """Do something after a time, ms."""
        self._count += 1
        heapq.heappush(self._due, (self.now + delay, self._count, action))

    def run(self, until: int) -> None:
        """Let time pass up to a moment, ms."""
        while self._due and self._due[0][0] <= until:
            self.now, _, action = heapq.heappop(self._due)
            action()
        self.now = until

    def soon(self) -> int:
        """How long a message takes."""
        return self.random.randint(5, LONGEST_MESSAGE)

    # Clients

    def join(self, **more: object) -> str:
        """Start a client: it polls its route, tells the brokers, rebalances, and goes on."""
        self._names += 1
        name = f"10.0.{self.random.randint(0, 255)}.{self._names}@1"
        server = self.random.choice(sorted(self.world.routes))
        alive = _Alive(Client(name, started=self.now, **more), server)  # type: ignore[arg-type]
        self.alive[name] = alive
        self.world.clients[name] = alive.client
        self._poll(name)
        for broker in sorted(self.world.lists):
            self.later(self.soon(), lambda broker=broker: self._heartbeat(name, broker))  # type: ignore[misc]
        self.later(LONGEST_MESSAGE + 1, lambda: self._cycle(name))
        self.later(self.random.randint(0, 30 * SECOND), lambda: self._beat(name))
        return name

    def leave(self, name: str) -> None:
        """Stop a client, cleanly or not: its brokers know at once, by the closed connection."""
        del self.alive[name]
        self.world.clients.pop(name)
        for broker in sorted(self.world.lists):
            self._off(name, broker)

    def _heartbeat(self, name: str, broker: str) -> None:
        listed = self.world.lists[broker]
        if name in self.alive and listed is not None and name not in listed and (name, broker) not in self.cut:
            listed.append(name)
            self._tell(broker)

    def _off(self, name: str, broker: str) -> None:
        listed = self.world.lists[broker]
        if listed is not None and name in listed:
            listed.remove(name)
            self._tell(broker)

    def _beat(self, name: str) -> None:
        if name in self.alive:
            for broker in self.world.lists:
                self._heartbeat(name, broker)
            self.later(30 * SECOND, lambda: self._beat(name))

    def _tell(self, broker: str) -> None:
        """NOTIFY_CONSUMER_IDS_CHANGED to everybody on the broker's list."""
        for name in self.world.lists[broker] or ():
            self.later(self.soon(), lambda name=name: self.rebalance(name))  # type: ignore[misc]

    def _cycle(self, name: str) -> None:
        if name in self.alive:
            self.rebalance(name)
            self.later(CYCLE, lambda: self._cycle(name))

    def _poll(self, name: str) -> None:
        if (alive := self.alive.get(name)) is not None:
            route = self.world.routes[alive.server].get(TOPIC)
            if route:  # a topic that a name server does not know leaves the route as it was
                alive.route = dict(route)
            self.later(POLL, lambda: self._poll(name))

    def rebalance(self, name: str) -> None:
        """One rebalance of one client, by a random broker of its route."""
        alive = self.alive.get(name)
        if alive is None or not alive.follows or not alive.route:
            return
        broker = self.random.choice(sorted(alive.route))
        listed = self.world.lists.get(broker)
        if listed:
            for topic in alive.client.topics:
                self.world.rebalance_topic(alive.client, topic, listed, alive.route)

    # The cluster

    def grow(self) -> None:
        """Give the topic one more queue on each broker; clients know at their next poll."""
        for topics in self.world.routes.values():
            topics[TOPIC] = {broker: count + 1 for broker, count in topics[TOPIC].items()}

    def restart(self, broker: str, seconds: int) -> None:
        """Take a broker down; it comes back with an empty list, and clients tell it within 30 s that they are there."""
        route = self.world.routes["n1"][TOPIC]
        count = route.pop(broker)
        self.world.lists[broker] = None

        def back() -> None:
            self.world.lists[broker] = []
            self.world.routes["n1"][TOPIC][broker] = count

        self.later(seconds * SECOND, back)

    # Rounds

    def _look(self, interval: int) -> None:
        self.later(interval, lambda: self._first(interval))

    def _first(self, interval: int) -> None:
        """A round asks for lists and routes now, and for clients a moment later."""
        lists = {broker: None if listed is None else list(listed) for broker, listed in self.world.lists.items()}
        routes = {server: {t: dict(of) for t, of in topics.items()} for server, topics in self.world.routes.items()}
        self.later(self.random.randint(50, LOOK), lambda: self._second(lists, routes))
        self._look(interval)

    def _second(self, lists: dict[str, list[str] | None], routes: dict[str, dict[str, dict[str, int]]]) -> None:
        world = self.world
        now = world.lists, world.routes
        world.lists, world.routes = lists, routes
        world.round()
        world.lists, world.routes = now
