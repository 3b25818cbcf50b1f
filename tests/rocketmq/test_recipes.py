"""The recipes for groups that go wrong, on a real cluster, as the probe sees them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streaming.probe.rocketmq.observe import GroupParts
from streaming.records import BROADCASTING, MISSING, OK
from tests.rocketmq import recipes
from tests.rocketmq.java_members import JavaMembers
from tests.rocketmq.look import agree, holders, look_until
from tests.rocketmq.servers import EmbeddedRocketMQ

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("rocketmq"), pytest.mark.turn(6)]

_C1, _C2, _C3, _C4 = "10.0.0.1@1", "10.0.0.2@2", "10.0.0.3@3", "10.0.0.4@4"


@pytest.fixture
def topic(rocketmq: EmbeddedRocketMQ, unique: str) -> str:
    """A topic of its own, with four queues on each broker."""
    with rocketmq.commands() as commands:
        commands.create_topic(unique, 4)
    return unique


def lists(seen: GroupParts) -> dict[str, Sequence[str]]:
    return {broker.name: broker.clients for broker in seen.brokers}


@pytest.mark.nightly
def test_java_members_and_ours_share_a_group_as_their_strategy_says(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    first = rocketmq.addresses[:1]
    dealt = {
        "a0": [_C1],
        "a1": [_C1],
        "a2": [_C1],
        "a3": [_C2],
        "b0": [_C2],
        "b1": [_C2],
        "b2": [_C3],
        "b3": [_C3],
    }
    java = [("AVG", "10.0.0.2", "2"), ("AVG", "10.0.0.3", "3")]
    with JavaMembers(first, topic, [topic], java), recipes.steady(first, topic, topic, count=1):
        with rocketmq.commands() as commands:
            commands.send(topic, "broker-a", 1, [b"x"] * 3)

        def is_dealt(seen: GroupParts) -> bool:
            [of_topic] = [one for one in seen.topics if one.topic == topic]
            committed = of_topic.queues[0].committed if of_topic.queues else None
            return committed is not None and committed[1:2] == (3,) and holders(seen, topic) == dealt

        seen = look_until(first, topic, is_dealt)
    of_java = seen.members[1]
    assert (of_java.version, of_java.language, of_java.orderly, of_java.client_rebalance) == (
        "V5_5_0",
        "JAVA",
        False,
        True,
    )
    assert of_java.strategy == "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely"
    assert [one.topic for one in of_java.subscriptions or ()] == [f"%RETRY%{topic}", topic]
    [of_topic] = [one for one in seen.topics if one.topic == topic]
    assert (of_topic.queues[0].max, of_topic.queues[0].min) == ((0, 3, 0, 0), (0, 0, 0, 0))


def test_a_with_strategies_that_differ_queues_are_held_twice_and_by_nobody(
    rocketmq: EmbeddedRocketMQ, topic: str
) -> None:
    first = rocketmq.addresses[:1]
    expected = {
        "a0": [_C1],
        "a1": [_C1],
        "a2": [_C1, _C3],
        "a3": [_C2],
        "b0": [_C2],
        "b1": [_C2, _C3],
    }
    everybody = {"broker-a": (_C1, _C2, _C3), "broker-b": (_C1, _C2, _C3)}
    # (While they join, other owners come and go, and heartbeats reach one broker after the other.)
    with recipes.strategies_that_differ(first, topic, topic):
        look_until(first, topic, lambda seen: holders(seen, topic) == expected and lists(seen) == everybody)


def test_b_a_name_server_that_knows_less_has_another_route(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    with recipes.a_name_server_that_knows_less(rocketmq.addresses, topic, topic):
        seen = look_until(
            rocketmq.addresses,
            topic,
            lambda seen: lists(seen) == {"broker-a": (_C1, _C2, _C3, _C4), "broker-b": (_C1, _C2, _C3)},
        )
    [of_topic] = [one for one in seen.topics if one.topic == topic]
    routes = [[(broker.name, broker.read) for broker in route.brokers] for route in of_topic.routes]
    assert routes == [[("broker-a", 4), ("broker-b", 4)], [("broker-a", 4)]]
    assert [route.answer for route in of_topic.routes] == [OK, OK]


def test_c_a_member_is_missing_from_the_list_of_a_broker_that_it_sends_no_heartbeat(
    rocketmq: EmbeddedRocketMQ, topic: str
) -> None:
    first = rocketmq.addresses[:1]
    with recipes.a_heartbeat_to_one_broker_only(first, topic, topic, "broker-b"):
        look_until(
            first,
            topic,
            lambda seen: (
                lists(seen) == {"broker-a": (_C1, _C2, _C3), "broker-b": (_C1, _C2)}
                # It is asked by the broker that knows it.
                and [member.answer for member in seen.members] == [OK, OK, OK]
            ),
        )


def test_d_a_way_that_is_lost_shows_in_the_lists_and_heals(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    first = rocketmq.addresses[:1]
    whole = {"broker-a": (_C1, _C2, _C3), "broker-b": (_C1, _C2, _C3)}
    with recipes.a_way_that_is_lost(first, topic, topic, "broker-b") as members:
        look_until(first, topic, lambda seen: lists(seen) == {**whole, "broker-b": (_C1, _C2)})
        members[-1].come_back("broker-b")
        look_until(first, topic, lambda seen: lists(seen) == whole)


def test_e_a_client_id_used_twice_shows_as_two_connections_and_orphans_its_second_share(
    rocketmq: EmbeddedRocketMQ, topic: str
) -> None:
    first = rocketmq.addresses[:1]
    with recipes.one_client_id_twice(first, topic, topic):
        seen = look_until(
            first,
            topic,
            lambda seen: (
                set(holders(seen, topic)) == {"a0", "a1", "a2", "b2", "b3"}
                and lists(seen) == {"broker-a": (_C1, _C1, _C2), "broker-b": (_C1, _C1, _C2)}
            ),
        )
    channels = seen.brokers[0].channels or ()
    assert len({channel.address for channel in channels if channel.client_id == _C1}) == 2
    assert [member.client_id for member in seen.members] == [_C1, _C2]


def test_a_group_that_broadcasts_keeps_its_own_offsets(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    first = rocketmq.addresses[:1]
    with recipes.a_group_that_broadcasts(first, topic, topic):
        seen = look_until(
            first, topic, lambda seen: agree(seen) and [len(of) for of in holders(seen, topic).values()] == [2] * 8
        )
    assert {broker.message_model for broker in seen.brokers} == {BROADCASTING}
    [of_topic] = [one for one in seen.topics if one.topic == topic]
    assert [queues.committed for queues in of_topic.queues] == [None, None]


def test_a_frozen_member_is_told_as_silent_and_then_left_alone(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    first = rocketmq.addresses[:1]
    with recipes.steady(first, topic, topic, count=2) as members:
        look_until(first, topic, lambda seen: len(holders(seen, topic)) == 8)
        members[0].freeze()
        seen = look_until(first, topic, lambda seen: [member.answer for member in seen.members] == ["timeout", OK])
        members[0].thaw()
    assert (seen.members[0].client_id, seen.members[0].queues, seen.members[0].language) == (_C1, None, "JAVA")


@pytest.mark.nightly
def test_a_broker_that_is_gone_is_not_listed_and_comes_back(rocketmq: EmbeddedRocketMQ, topic: str) -> None:
    first = rocketmq.addresses[:1]
    with recipes.steady(first, topic, topic, count=2):
        look_until(first, topic, lambda seen: len(holders(seen, topic)) == 8)
        rocketmq.brokers["broker-b"].kill()
        seen = look_until(first, topic, lambda seen: list(lists(seen)) == ["broker-a"])
        assert seen.brokers[0].answer == OK
        rocketmq.restart("broker-b")
        look_until(first, topic, lambda seen: lists(seen) == {"broker-a": (_C1, _C2), "broker-b": (_C1, _C2)})


def test_a_topic_that_no_name_server_knows_is_missing(rocketmq: EmbeddedRocketMQ, unique: str) -> None:
    first = rocketmq.addresses[:1]
    with recipes.steady(first, unique, "not-there", count=1):
        with rocketmq.commands() as commands:
            commands.create_topic(f"{unique}-own", 1)
        seen = look_until(first, unique, lambda _: True)
    routes = {one.topic: [route.answer for route in one.routes] for one in seen.topics}
    assert routes.get("not-there", [MISSING]) == [MISSING]
