"""What one round says of a group: which of the answers count, and for what."""

from __future__ import annotations

from typing import Any

import msgspec

from streaming.groups.context import Allocation
from streaming.groups.rocketmq.views import Views
from streaming.records import (
    BROADCASTING,
    CLUSTERING,
    ERROR,
    MISSING,
    OK,
    REFUSED,
    TIMEOUT,
    BrokerSeen,
    HeldQueue,
    RouteBroker,
    RouteSeen,
    TopicSeen,
)
from tests.groups.rocketmq.world import TOPIC, A, B, Client, World


def views(*clients: Client, replicas: tuple[BrokerSeen, ...] = (), **changes: Any) -> Views:
    """A round of some clients; changes are fields of the observation."""
    world = World()
    world.join(*clients)
    world.replicas = list(replicas)
    return Views(msgspec.structs.replace(world.observation(), **changes), Allocation())


def routed(*routes: RouteSeen) -> Views:
    return views(topics=(TopicSeen(TOPIC, routes),))


def route(server: str, *brokers: RouteBroker, answer: str = OK) -> RouteSeen:
    return RouteSeen(server, answer, brokers)


def test_queues_are_those_that_can_be_read_and_the_most_that_any_name_server_tells() -> None:
    found = routed(
        # Permissions: 4 read, 2 write, 1 inherit.
        route("n1", *(RouteBroker(*of) for of in (("a", 2, 6), ("b", 3, 4), ("c", 3, 2), ("e", 3, 3)))),
        route("n2", RouteBroker("a", 4, 6), RouteBroker("b", 1, 6), RouteBroker("d", 0, 6)),
    )
    assert found.routes == {TOPIC: {"a": 4, "b": 3}}
    assert found.queues_by_server == {
        TOPIC: {
            "n1": (("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2)),
            "n2": (("a", 0), ("a", 1), ("a", 2), ("a", 3), ("b", 0)),
        }
    }
    # Each lacks some.
    assert found.poorer == {TOPIC: ("n1", "n2")}


def test_a_name_server_that_does_not_know_a_topic_is_poorer_and_one_that_does_not_answer_is_not() -> None:
    full = route("n1", RouteBroker("a", 2, 6))
    assert routed(full, route("n2", answer=MISSING)).poorer == {TOPIC: ("n2",)}
    assert routed(full, route("n2", answer=TIMEOUT)).poorer == {}
    assert routed(full, route("n2", RouteBroker("a", 2, 7))).poorer == {}
    assert routed(route("n1", answer=MISSING), route("n2", answer=MISSING)).poorer == {}
    assert routed(full, route("n2", answer=MISSING)).queues_by_server[TOPIC].keys() == {"n1"}


def test_a_client_holds_what_it_does_not_give_up_and_no_dead_letters() -> None:
    queues = (
        HeldQueue(TOPIC, "broker-b", 1),
        HeldQueue(TOPIC, "broker-b", 0),
        HeldQueue(TOPIC, "broker-b", 1, pop=True),
        HeldQueue(TOPIC, "broker-b", 2, dropped=True),
        HeldQueue("%DLQ%billing", "broker-b", 0),
        HeldQueue(TOPIC, "broker-a", 0),
    )
    found = views(Client(A, more={"queues": queues}), Client(B, held={TOPIC: {("broker-a", 0)}}))
    assert found.held[A] == {f"{TOPIC}\0@\0broker-a": (0,), f"{TOPIC}\0@\0broker-b": (0, 1)}
    assert found.holders[TOPIC] == {("broker-a", 0): (A, B), ("broker-b", 0): (A,), ("broker-b", 1): (A,)}


def test_the_list_that_counts_is_that_of_the_lowest_replica_that_answers() -> None:
    replicas = (
        BrokerSeen("c", 2, "c2", OK, clients=("z", "x")),
        BrokerSeen("c", 1, "c1", OK, clients=("y",)),
        BrokerSeen("c", 0, "c0", ERROR),
        BrokerSeen("d", 0, "d0", TIMEOUT),
        BrokerSeen("d", 1, "d1", REFUSED),
    )
    found = views(replicas=replicas, topics=(TopicSeen(TOPIC, (route("n1", RouteBroker("d", 1, 6)),)),))
    assert found.lists == {"broker-a": (), "broker-b": (), "c": ("y",)}
    assert found.clients == ("y",)
    # What the first of its addresses says, which is its master's.
    assert found.not_answering == {"d": TIMEOUT}


def test_a_client_that_only_a_slave_lists_is_no_member_whatever_it_tells() -> None:
    world = World()
    world.join(Client(A), Client(B))
    world.lists["broker-b"] = []
    world.lists["broker-a"] = [A]
    world.replicas = [BrokerSeen("broker-a", 1, "broker-a-1:10911", OK, clients=(A, B))]
    seen = world.observation()
    told = msgspec.structs.replace(seen, members=(*seen.members, world.clients[B].seen()))
    found = Views(told, Allocation())
    assert (found.clients, list(found.told), list(found.held), list(found.runs)) == ((A,), [A], [A], [A])


def test_a_broker_of_a_route_that_was_not_asked_at_all_is_missing() -> None:
    assert routed(route("n1", RouteBroker("e", 1, 6))).not_answering == {"e": MISSING}


def test_a_message_model_is_broadcasting_if_anyone_says_so() -> None:
    assert views(Client(A)).message_model == CLUSTERING
    assert views(Client(A), Client(B, more={"message_model": BROADCASTING})).message_model == BROADCASTING
    silent = Client(A, answer="timeout")
    assert views(silent).message_model is None
    told = BrokerSeen("c", 0, "c0", OK, clients=(A,), message_model=BROADCASTING)
    assert views(silent, replicas=(told,)).message_model == BROADCASTING
    # What a broker remembers of a group that has no client there any more counts for nothing.
    assert views(Client(A), replicas=(msgspec.structs.replace(told, clients=()),)).message_model == CLUSTERING
