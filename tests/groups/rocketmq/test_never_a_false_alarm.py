"""Healthy groups that change all the time are never blamed; lasting faults always are, by the right name."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

import msgspec
import pytest

from tests.examples import examples
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


class Simulation:
    """A world whose clients act by themselves."""

    def __init__(self, seed: int, interval: int = 10 * SECOND) -> None:
        self.random = Random(seed)
        self.world = World(interval=interval)
        queues = self.random.randint(1, 4)
        self.world.routes = {"n1": {TOPIC: {"broker-a": queues, "broker-b": queues}}}
        self.alive: dict[str, _Alive] = {}
        self.now = 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._names = 0
        self._schedule_round(interval)

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
        if name in self.alive and listed is not None and name not in listed:
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
        if alive is None or not alive.route:
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

    def _schedule_round(self, interval: int) -> None:
        self.later(interval, lambda: self._first(interval))

    def _first(self, interval: int) -> None:
        """A round asks for lists and routes now, and for clients a moment later."""
        lists = {broker: None if listed is None else list(listed) for broker, listed in self.world.lists.items()}
        routes = {server: {t: dict(of) for t, of in topics.items()} for server, topics in self.world.routes.items()}
        self.later(self.random.randint(50, LOOK), lambda: self._second(lists, routes))
        self._schedule_round(interval)

    def _second(self, lists: dict[str, list[str] | None], routes: dict[str, dict[str, dict[str, int]]]) -> None:
        world = self.world
        now = world.lists, world.routes
        world.lists, world.routes = lists, routes
        world.round()
        world.lists, world.routes = now


MINUTES = 10 * 60 * SECOND

TRUE_FOR_A_WHILE = {"member_lists_differ", "broker_not_answering"}
"""While a broker restarts it answers nothing, then it does not know all members for up to 30 s: true, and over soon."""


def churn(seed: int) -> Simulation:
    """A group that somebody joins or leaves every 5 to 40 s for ten minutes, with topics that grow and restarts."""
    life = Simulation(seed)
    chance = life.random
    for _ in range(chance.randint(1, 4)):
        life.join()
    at = 0
    while at < MINUTES:
        at += chance.randint(5, 40) * SECOND
        life.run(at)
        step = chance.random()
        if step < 0.45 or not life.alive:
            life.join()
        elif step < 0.85:
            life.leave(chance.choice(sorted(life.alive)))
        elif step < 0.95:
            life.grow()
        elif None not in life.world.lists.values() and len(life.world.routes["n1"][TOPIC]) > 1:
            life.restart(chance.choice(sorted(life.world.lists)), chance.randint(1, 60))
    return life


def said(life: Simulation) -> list[tuple[int, str, str]]:
    return [
        (row.round, one.finding, one.detail)
        for row in life.world.rows.group_health
        for one in row.findings
        if one.finding not in TRUE_FOR_A_WHILE | {"idle_members", "rebalance_storm"}
    ]


def check_quiet(seed: int) -> None:
    life = churn(seed)
    assert said(life) == []
    drifted = [
        (row.round, row.reason, row.drifted_partitions) for row in life.world.rows.drift if row.verdict == "drifted"
    ]
    assert drifted == []
    # Left alone, it comes to rest, and is as it should be.
    life.run(life.now + 180 * SECOND)
    health = life.world.health
    assert {one.finding for one in health.findings} <= {"idle_members", "rebalance_storm"}
    assert health.verdict == ("identical" if life.alive else "not_applicable")


@pytest.mark.parametrize("seed", range(examples(100)))
def test_churning_groups_are_not_blamed_in_ten_minutes(seed: int) -> None:
    check_quiet(seed)


@pytest.mark.soak
@pytest.mark.turn(2)
@pytest.mark.parametrize("hundred", range(20))
def test_thousands_of_churning_groups_are_not_blamed(hundred: int) -> None:
    for seed in range(1_000 + 100 * hundred, 1_100 + 100 * hundred):
        check_quiet(seed)


def test_the_rows_do_not_depend_on_how_rounds_were_cut_into_batches() -> None:
    from streaming.groups import GroupConfig, advance, decode_state, encode_state  # noqa: PLC0415
    from streaming.groups.rows import Rows  # noqa: PLC0415
    from tests.groups.rocketmq.world import GROUP  # noqa: PLC0415

    for seed in range(3):
        life = churn(seed)
        seen, whole = life.world.seen, life.world.rows
        for _ in range(4):
            stored: tuple[int, bytes] | None = None
            rows, at = Rows(), 0
            while at < len(seen):
                step = life.random.randint(1, 15)
                state = decode_state(*stored) if stored is not None else None
                state, new = advance(state, GROUP, list(seen[at : at + step]), GroupConfig("test"))
                stored = encode_state(state) if state is not None else None
                at += step
                for table in new.__struct_fields__:
                    getattr(rows, table).extend(getattr(new, table))
            assert msgspec.msgpack.encode(rows) == msgspec.msgpack.encode(whole)
