"""The event of a RocketMQ group: written and read again, and what no probe can have written."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.events import RejectedEvent, RocketMQGroupEvent, decode_event, encode_event
from streaming.records import (
    OK,
    BrokerSeen,
    ChannelSeen,
    HeldQueue,
    MemberSeen,
    QueuesSeen,
    RequestMode,
    RocketMQObservation,
    RouteBroker,
    RouteSeen,
    SubscriptionSeen,
    TopicSeen,
    decode_inputs,
    encode_inputs,
)

CLIENT = "10.0.0.1@1#77"
BROKER = BrokerSeen(
    "broker-a",
    0,
    "10.0.1.1:10911",
    OK,
    clients=(CLIENT,),
    channels=(ChannelSeen(CLIENT, "10.0.0.1:40112", "JAVA", "V5_5_0"),),
    consume_type="push",
    message_model="CLUSTERING",
    subscriptions=(SubscriptionSeen("orders", "TagA || TagB", "TAG", 1_767_225_000_000),),
    modes=(RequestMode("orders", "POP", 2),),
)
MEMBER = MemberSeen(
    CLIENT,
    OK,
    "10.0.1.1:10911",
    strategy="org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely",
    consume_type="push",
    message_model="CLUSTERING",
    orderly=False,
    started=1_767_225_000_000,
    subscriptions=(SubscriptionSeen("orders"),),
    queues=(HeldQueue("orders", "broker-a", 0, locked=True, pulled=1_767_225_600_000),),
)
TOPIC = TopicSeen(
    "orders",
    (RouteSeen("10.0.2.1:9876", OK, (RouteBroker("broker-a", 2, 2, 6),)),),
    (QueuesSeen("broker-a", OK, (0, 0), (5, 7), (5, -1), (1_767_225_500_000, -1), (1_767_225_400_000, -1)),),
)
EVENT = RocketMQGroupEvent(
    1, "prod", 6, 1_767_225_600_000, "billing", None, ("10.0.2.1:9876",), (BROKER,), (MEMBER,), (TOPIC,)
)


def changed(**changes: Any) -> bytes:
    return encode_event(msgspec.structs.replace(EVENT, **changes))


def test_an_event_is_read_as_it_was_written() -> None:
    assert decode_event(encode_event(EVENT)) == EVENT


def test_its_parts_travel_to_the_core_unchanged() -> None:
    observation = RocketMQObservation(6, EVENT.time, None, EVENT.brokers, EVENT.members, EVENT.topics)
    assert decode_inputs(encode_inputs([observation])) == [observation]


def test_fields_of_a_newer_probe_are_passed_over() -> None:
    record = json.loads(encode_event(EVENT))
    record["tomorrow"] = 1
    record["members"][0] += ["something", 7]
    record["topics"][0][1][0][2][0] += [True]
    assert decode_event(json.dumps(record).encode()) == EVENT


def test_the_last_event_of_a_group_tells_nothing_else() -> None:
    assert isinstance(decode_event(changed(gone="deleted", members=(), topics=(), brokers=())), RocketMQGroupEvent)
    assert decode_event(changed(gone="deleted")) == RejectedEvent("a group that is gone with members or topics")


def with_broker(**changes: Any) -> bytes:
    return changed(brokers=(msgspec.structs.replace(BROKER, **changes),))


def with_member(**changes: Any) -> bytes:
    return changed(members=(msgspec.structs.replace(MEMBER, **changes),))


def with_route(*brokers: RouteBroker, answer: str = OK) -> bytes:
    return changed(topics=(TopicSeen("orders", (RouteSeen("n", answer, brokers),)),))


HALF_A_MILLION = (65_536,) * 8
"""Queues in each of eight routes: together twice the most of one topic."""


def with_routes(*queues: int) -> bytes:
    """Topics of a name server, each on a broker with so many queues that nobody may read."""
    routes = (RouteSeen("n", OK, (RouteBroker("broker-a", count, 1, 2),)) for count in queues)
    return changed(topics=tuple(TopicSeen(f"topic-{number}", (route,)) for number, route in enumerate(routes)))


def with_queues(*offsets: Any) -> bytes:
    return changed(topics=(TopicSeen("orders", (), (QueuesSeen("broker-a", OK, *offsets),)),))


def test_the_queues_of_all_routes_of_an_event_may_be_half_a_million() -> None:
    assert isinstance(decode_event(with_routes(*HALF_A_MILLION)), RocketMQGroupEvent)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (changed(group=""), "a group name of 0 characters"),
        (changed(group="g" * 600), "a group name of 600 characters"),
        (changed(time=-1), "round 6 at -1"),
        (changed(cut=("clients",)), "a part was cut that does not exist"),
        (changed(brokers=(BROKER, BROKER)), "a broker appears a second time"),
        (changed(members=(MEMBER, MEMBER)), "a member appears a second time"),
        (changed(topics=(TOPIC, TOPIC)), "a topic appears a second time"),
        (changed(name_servers=("n" * 600,)), "a name server with a name of 600 characters"),
        (with_broker(answer="maybe"), "a broker with an impossible id or answer"),
        (with_broker(answer="timeout"), "clients of a broker that did not answer"),
        (with_broker(clients=("c",) * 20_001), "20,001 clients; no event has more than 20,000"),
        (with_broker(clients=("c" * 1_001,)), "a client with a name of 1001 characters"),
        (with_broker(modes=(RequestMode("orders", "POP", 2**40),)), "an impossible request mode"),
        (with_member(answer="timeout"), "queues of a member that did not answer"),
        (with_member(started=2**60), "a member with an impossible start or answer"),
        (with_member(queues=(HeldQueue("orders", "broker-a", 65_536),)), "a held queue 65536"),
        (with_member(queues=(HeldQueue("orders", "broker-a", -2),)), "a held queue -2"),
        (
            with_member(queues=(HeldQueue("orders", "broker-a", 0, pulled=2**60),)),
            "a held queue with an impossible time",
        ),
        (
            with_member(subscriptions=(SubscriptionSeen("orders"), SubscriptionSeen("orders"))),
            "a subscription appears a second time",
        ),
        (with_member(subscriptions=(SubscriptionSeen("o", "x" * 5_000),)), "a subscription of impossible length"),
        (with_route(RouteBroker("broker-a", 1, 1, 6), answer="missing"), "a route with an impossible answer"),
        (with_route(RouteBroker("broker-a", -1, 1, 6)), "a route of -1 and 1 queues with perm 6"),
        (with_route(RouteBroker("broker-a", 2**40, 1, 6)), f"a route of {2**40} and 1 queues with perm 6"),
        (
            with_route(*(RouteBroker(f"broker-{n}", 60_000, 1, 6) for n in range(5))),
            "a route of 300,000 queues",
        ),
        (with_routes(*HALF_A_MILLION, 1), "524,289 queues in routes; no event has more than 524,288"),
        (with_queues((0,), (5, 7)), "offsets of a topic of different or impossible lengths"),
        (with_queues((0,), (5,), (5, 6)), "offsets of a topic of different or impossible lengths"),
        (with_queues((0,) * 65_537, (5,) * 65_537), "offsets of a topic of different or impossible lengths"),
        (with_queues((0,), (2**63,)), "an offset below -1 or beyond int64"),
        (with_queues((0,), (5,), (-2,)), "an offset below -1 or beyond int64"),
        (with_queues((0,), (5,), (5,), (2**60,)), "an impossible time of a message"),
    ],
)
def test_an_event_that_no_probe_can_have_written_is_rejected_with_its_reason(record: bytes, reason: str) -> None:
    assert decode_event(record) == RejectedEvent(reason)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=8,
)


@given(field=st.sampled_from(["name_servers", "brokers", "members", "topics", "cut", "rested", "gone"]), value=JSON)
@settings(max_examples=200, deadline=None)
def test_whatever_an_event_holds_it_is_read_or_rejected(field: str, value: object) -> None:
    record = json.loads(encode_event(EVENT))
    record[field] = value
    assert isinstance(decode_event(json.dumps(record).encode()), RocketMQGroupEvent | RejectedEvent)
