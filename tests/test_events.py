"""The probe's records: read as they were written, by readers of any release; what is none of ours is refused."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.events import (
    ClusterTopicEvent,
    Event,
    GroupEvent,
    RejectedEvent,
    RocketMQGroupEvent,
    UnknownType,
    decode_event,
    decode_round,
    encode,
)
from streaming.records import (
    OK,
    Broker,
    Brokers,
    BrokerSeen,
    ClosedRound,
    ClusterTopicObservation,
    CoordinatorMove,
    GroupObservation,
    HeldPartition,
    HeldQueue,
    Member,
    MemberSeen,
    RocketMQObservation,
    RoundClosed,
    RoundOpened,
    Seen,
    SeenClassic,
    SeenCommits,
    TopicObservation,
    TopicRetention,
    UnreadTimestamp,
    decode_closed_rounds,
    decode_cluster_topics,
    decode_inputs,
    encode_inputs,
    pack_offsets,
)

TOPIC = TopicObservation(
    "orders", "id", 2, pack_offsets([5, -1]), pack_offsets([5, -1]), pack_offsets([0, 0]), (("a",), ("b", "c")),
    TopicRetention(5, -1, deletes=True, append_time=False), {1: UnreadTimestamp(3, 1_000, -1, own=True)},
)  # fmt: skip
MEMBER = Member("m", None, "c", "/10.0.0.1", -1, -1, 1, ("orders",), (), None, None, b"\x00\xff", (("orders", (0,)),))
SEEN = Seen(
    "admin", True, classic=SeenClassic("consumer", "range", (MEMBER,)), commits=SeenCommits(True, {"orders": ((0, 4),)})
)
GROUP = GroupEvent(
    1,
    "prod",
    "billing",
    GroupObservation(6, 1_000, -1, -1, "Stable", "consumer", None, None, None, (TOPIC,), seen=SEEN),
)
CLUSTER_TOPIC = ClusterTopicEvent(1, "prod", "orders", ClusterTopicObservation(6, 1_000, end=(5,), readers=("g",)))
ROCKETMQ = RocketMQGroupEvent(
    1,
    "prod",
    "billing",
    RocketMQObservation(
        6,
        1_000,
        None,
        (BrokerSeen("broker-a", 0, "10.0.1.1:10911", OK, clients=("c",)),),
        (MemberSeen("c", OK, queues=(HeldQueue("orders", "broker-a", 0, locked=True),)),),
    ),
)
CLOSED = RoundClosed(
    1, "prod", "p", 10_000, 6, 1_000, (5, 7), (5, 9), {"0": (3, 8)}, 2, 5,
    holds=(HeldPartition(1, 900, 7, 9, 2),),
    brokers=Brokers((Broker(1, "kafka-1", "a"),), (), ((1, 8), (1, 2)), (CoordinatorMove(2, 1, 7, 8, partition=0),)),
)  # fmt: skip
OPENED = RoundOpened(1, "prod", "p", 10_000, 7, "unit@host", ends=True)


@pytest.mark.parametrize("event", [GROUP, CLUSTER_TOPIC, ROCKETMQ], ids=lambda event: type(event).__name__)
def test_an_event_is_read_as_it_was_written_and_travels_to_the_core_unchanged(event: Event) -> None:
    assert decode_event(encode(event)) == event
    decode = decode_cluster_topics if event is CLUSTER_TOPIC else decode_inputs
    assert decode(encode_inputs([event.saw])) == [event.saw]


def test_a_round_is_read_as_it_was_written_and_travels_to_the_core_unchanged() -> None:
    assert decode_round(encode(OPENED)) == OPENED
    assert decode_round(encode(CLOSED)) == CLOSED
    taken = [ClosedRound(CLOSED, 106, 7, 1_200, 50, 4)]
    assert decode_closed_rounds(encode_inputs(taken)) == taken


def test_fields_of_a_newer_probe_are_passed_over() -> None:
    group, closed = json.loads(encode(GROUP)), json.loads(encode(CLOSED))
    group |= {"v": 900, "quota": [1, {"a": None}]}
    group["saw"] += ["x"] * 3
    closed |= {"v": 900, "quota": {}}
    closed["brokers"]["up"][0] += [7]
    read, round_ = decode_event(json.dumps(group).encode()), decode_round(json.dumps(closed).encode())
    assert isinstance(read, GroupEvent)
    assert isinstance(round_, RoundClosed)
    assert (read.v, read.saw) == (900, GROUP.saw)
    assert (round_.v, round_.brokers) == (900, CLOSED.brokers)


@pytest.mark.parametrize("decode", [decode_event, decode_round])
def test_a_type_that_is_not_known_is_no_damage(decode: Callable[[bytes], object]) -> None:
    found = decode(json.dumps({"v": 3, "type": "quota\n\x1b[2J", "group": 7}).encode())
    assert found == UnknownType("quota\\n\\x1b[2J")
    assert isinstance(found, UnknownType)
    assert found.reason == "type quota\\n\\x1b[2J is not known to this release; a newer probe may have written it"


@pytest.mark.parametrize(
    "value",
    [None, b"", b"\xff\x00", b'{"type":"group","v":1,"\x1b[2J\n":', b'{"v":"1","type":"quota"}', encode(CLOSED)],
)
def test_what_is_no_event_of_ours_is_refused_with_a_printable_reason(value: bytes | None) -> None:
    found = decode_event(value)
    assert isinstance(found, RejectedEvent)
    assert found.reason.isprintable()
    assert isinstance(decode_round(encode(GROUP)), RejectedEvent)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(place=st.integers(0, 9), value=JSON)
@settings(max_examples=200, deadline=None)
def test_whatever_an_event_holds_it_is_read_or_refused(place: int, value: object) -> None:
    record = json.loads(encode(ROCKETMQ))
    record["saw"][place] = value
    assert isinstance(decode_event(json.dumps(record).encode()), RocketMQGroupEvent | RejectedEvent | UnknownType)
