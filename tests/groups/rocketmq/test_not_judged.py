"""Topics on which there is no verdict: what is cut, too much, static, or has no owners that could be wrong."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streaming.records import BROADCASTING, POP, PULL, HeldQueue
from tests.groups.rocketmq.world import RETRY, TOPIC, A, B, C, Client, World, group, verdicts


def test_an_event_that_was_cut_gives_no_verdict() -> None:
    world = group()
    world.round_more["cut"] = ("members", "queues")
    assert verdicts(world, 9) == {
        TOPIC: ("unverified", "the probe left out parts of the group: members, queues"),
    }


def test_sixty_four_views_are_computed_and_one_more_is_not() -> None:
    for servers, verdict in ((64, "identical"), (65, "unverified")):
        world = World()
        world.routes = {f"n{number:02}": {TOPIC: {"broker-a": 4, "broker-b": 1 + number}} for number in range(servers)}
        world.join(Client(A))
        world.rebalance(server="n00")
        [(found, reason)] = verdicts(world, 9).values()
        # A member holds what the poorest name server says; nobody has the other queues.
        assert found == ("drifted" if verdict == "identical" else verdict)
        assert (str(reason).startswith("more than 64 views")) == (verdict == "unverified")


NOT_APPLICABLE: dict[str, tuple[dict[str, Any], str]] = {
    "broadcasting": ({"message_model": BROADCASTING}, "BROADCASTING: each member reads all queues"),
    "pop": ({"consume_type": POP}, "POP: brokers hand out messages, and members share queues"),
    "broker's": ({"client_rebalance": False}, "POP: brokers hand out messages, and members share queues"),
    "by hand": (
        {"consume_type": PULL, "queues": None},
        "its members take queues by themselves (DefaultMQPullConsumer)",
    ),
}


@pytest.mark.parametrize("case", NOT_APPLICABLE)
def test_where_owners_cannot_be_wrong_nothing_is_judged(case: str) -> None:
    more, reason = NOT_APPLICABLE[case]
    world = group()
    for client in world.clients.values():
        client.more.update(more)
    world.clients[A].held[TOPIC] = world.clients[B].held[TOPIC]
    assert verdicts(world) == {TOPIC: ("not_applicable", reason)}
    assert world.rows.what_if == []
    world.round(9)
    assert {one for one in world.findings if "held" in one} == set()


BY_POP = ("not_applicable", "POP: brokers hand out messages, and members share queues")
RIGHT = ("identical", None)
POP_QUEUES = (HeldQueue(TOPIC, "broker-a", -1, pop=True), HeldQueue("other", "broker-a", 0))

# Topics with the queues that each has on broker-a, what brokers say of the group, and the verdicts.
TOPICS: dict[str, tuple[list[Client], dict[str, int], dict[str, Any], dict[str | None, tuple[str, str | None]]]] = {
    "one member holds a queue by POP": (
        [Client(A), Client(B), Client(C, more={"queues": POP_QUEUES})],
        {TOPIC: 4},
        {},
        {TOPIC: BY_POP},
    ),
    "retries of a group of POP are judged": (
        [Client(name, topics=(TOPIC, RETRY)) for name in (A, B)],
        {TOPIC: 4, RETRY: 1},
        {"consume_type": POP},
        {TOPIC: BY_POP, RETRY: RIGHT},
    ),
    "a topic that nobody subscribes to": (
        [Client(A)],
        {TOPIC: 4, "payments": 1},
        {},
        {TOPIC: RIGHT, "payments": ("not_applicable", "no member subscribes to it")},
    ),
    "a group without a topic": (
        [Client(A, topics=())],
        {},
        {},
        {None: ("not_applicable", "the filters exclude all its topics")},
    ),
    "dead letters have no owner": ([Client(A)], {TOPIC: 4, "%DLQ%billing": 1}, {}, {TOPIC: RIGHT}),
}


@pytest.mark.parametrize("case", TOPICS)
def test_a_topic_is_judged_where_its_members_choose_its_owners(case: str) -> None:
    clients, topics, says, expected = TOPICS[case]
    world = group(*clients)
    world.routes = {"n1": {topic: {"broker-a": count} for topic, count in topics.items()}}
    world.rebalance()
    world.broker_more |= says
    assert verdicts(world) == expected


def test_the_verdict_on_a_topic_that_the_group_has_left_ends_with_the_next_decision() -> None:
    world = group(*(Client(name, topics=(TOPIC, "payments")) for name in (A, B, C)))
    world.routes["n1"]["payments"] = {"broker-a": 2, "broker-b": 2}
    world.rebalance()
    world.clients[B].held["payments"] = set()
    assert verdicts(world, 9)["payments"][0] == "drifted"

    del world.routes["n1"]["payments"]
    for client in world.clients.values():
        client.topics = (TOPIC,)
        client.held.pop("payments", None)
    world.rebalance()

    assert verdicts(world, 9) == {
        TOPIC: ("identical", None),
        "payments": ("not_applicable", "the group has left it"),
    }
    assert world.health.verdict == "identical"
    # It is said once.
    world.leave(C)
    world.rebalance()
    assert set(verdicts(world, 9)) == {TOPIC}


def test_a_static_topic_is_not_recomputed() -> None:
    world = group()
    seen = world.observation

    def mapped() -> Any:
        found = seen()
        topics = tuple(
            msgspec.structs.replace(
                topic, routes=tuple(msgspec.structs.replace(route, mapped=True) for route in topic.routes)
            )
            for topic in found.topics
        )
        return msgspec.structs.replace(found, topics=topics)

    world.observation = mapped  # type: ignore[method-assign]
    world.clients[A].held[TOPIC] = set()
    assert verdicts(world, 9) == {
        TOPIC: ("unverified", "a static topic: its logical queues are not asked for"),
    }
    world.round(9)
    assert {one for one in world.findings if "held" in one} == set()
