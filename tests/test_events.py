"""The probe's records: read as they were written, by readers of any release; what is none of ours is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.events import (
    GROUPS_PER_RECORD,
    ClusterTopicEvent,
    EventRecord,
    GroupEvent,
    GroupsAlike,
    GroupsEvent,
    RejectedEvent,
    RocketMQGroupEvent,
    UnknownType,
    decode_event,
    decode_round,
    encode,
    pack,
)
from streaming.records import (
    OK,
    Broker,
    Brokers,
    BrokerSeen,
    ClosedRound,
    ClusterTopicObservation,
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
from tests.examples import examples

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
OTHER = replace(GROUP, key="audit", saw=msgspec.structs.replace(GROUP.saw, state="Empty", seen=None))
GROUPS = GroupsEvent(
    1,
    "prod",
    (TOPIC,),
    (
        GroupsAlike(("audit",), (0,), msgspec.structs.replace(OTHER.saw, topics=())),
        GroupsAlike(("billing",), (0,), msgspec.structs.replace(GROUP.saw, topics=())),
    ),
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
    brokers=Brokers((Broker(1, "kafka-1", "a"),), (), ((1, 8), (1, 2))),
)  # fmt: skip
OPENED = RoundOpened(1, "prod", "p", 10_000, 7, "unit@host", ends=True)


@pytest.mark.parametrize("event", [GROUPS, CLUSTER_TOPIC, ROCKETMQ], ids=lambda event: type(event).__name__)
def test_an_event_is_read_as_it_was_written_and_travels_to_the_core_unchanged(event: EventRecord) -> None:
    assert decode_event(encode(event)) == event
    decode = decode_cluster_topics if event is CLUSTER_TOPIC else decode_inputs
    saw = GROUP.saw if isinstance(event, GroupsEvent) else event.saw
    assert decode(encode_inputs([saw])) == [saw]


def test_groups_of_a_round_are_told_together_and_come_out_as_they_went_in() -> None:
    assert list(pack([GROUP, OTHER])) == [GROUPS]
    topics = [msgspec.structs.replace(TOPIC, topic=f"t{number}") for number in range(40)]
    states = ("Stable", "Empty")
    events = [
        replace(OTHER, key=f"g{n}", saw=msgspec.structs.replace(
            OTHER.saw, state=states[n % 2], topics=tuple(topics[n % 40 : n % 40 + n % 3])
        ))
        for n in range(2_500)
    ]  # fmt: skip
    records = list(pack(events))
    # Each record has at most a thousand groups, and each of its topics once.
    assert len(records) == 3
    assert all(sum(len(alike.keys) for alike in record.groups) <= GROUPS_PER_RECORD for record in records)
    assert all(len({topic.topic for topic in record.topics}) == len(record.topics) for record in records)
    told = [event for record in records for event in decoded(record).events()]
    assert sorted(told, key=lambda event: event.key) == sorted(events, key=lambda event: event.key)


def decoded(record: EventRecord) -> GroupsEvent:
    found = decode_event(encode(record))
    assert isinstance(found, GroupsEvent)
    return found


def test_a_record_that_would_be_large_is_divided_between_groups() -> None:
    wide = [
        msgspec.structs.replace(TOPIC, topic=f"t{number}", high_watermarks=bytes(8 * 30_000)) for number in range(4)
    ]
    read_by = {"a": wide[:1], "b": wide[1:], "c": wide[1:], "d": []}
    events = [
        replace(OTHER, key=key, saw=msgspec.structs.replace(OTHER.saw, topics=tuple(of))) for key, of in read_by.items()
    ]
    records = [[key for alike in record.groups for key in alike.keys] for record in pack(events)]
    assert records == [["d", "a"], ["b", "c"]]


def test_a_group_whose_topics_are_not_in_the_record_is_refused() -> None:
    record = json.loads(encode(GROUPS))
    record["topics"] = []
    assert decode_event(json.dumps(record).encode()) == RejectedEvent(
        "not one of our records: a group has a topic that the record does not have"
    )


def test_a_round_is_read_as_it_was_written_and_travels_to_the_core_unchanged() -> None:
    assert decode_round(encode(OPENED)) == OPENED
    assert decode_round(encode(CLOSED)) == CLOSED
    taken = [ClosedRound(CLOSED, 106, 7, 1_200, 50, 4)]
    assert decode_closed_rounds(encode_inputs(taken)) == taken


def test_fields_of_a_newer_probe_are_passed_over() -> None:
    groups, closed = json.loads(encode(GROUPS)), json.loads(encode(CLOSED))
    groups |= {"v": 900, "quota": [1, {"a": None}]}
    groups["groups"][1][2] += ["x"] * 3
    closed |= {"v": 900, "quota": {}}
    closed["brokers"]["up"][0] += [7]
    read, round_ = decode_event(json.dumps(groups).encode()), decode_round(json.dumps(closed).encode())
    assert list(read.events()) == [replace(OTHER, v=900), replace(GROUP, v=900)]
    assert (round_.v, round_.brokers) == (900, CLOSED.brokers)


@pytest.mark.parametrize("decode", [decode_event, decode_round])
def test_a_type_that_is_not_known_is_no_damage(decode: Callable[[bytes], object]) -> None:
    found = decode(json.dumps({"v": 3, "type": "quota\n\x1b[2J", "group": 7}).encode())
    assert found == UnknownType("quota\\n\\x1b[2J")
    assert found.reason == "type quota\\n\\x1b[2J is not known to this release; a newer probe may have written it"


@pytest.mark.parametrize(
    "value",
    [None, b"", b"\xff\x00", b'{"type":"groups","v":1,"\x1b[2J\n":', b'{"v":"1","type":"quota"}', encode(CLOSED)],
)
def test_what_is_no_event_of_ours_is_refused_with_a_printable_reason(value: bytes | None) -> None:
    found = decode_event(value)
    assert found.reason.isprintable()
    assert isinstance(decode_round(encode(GROUPS)), RejectedEvent)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(place=st.integers(0, 9), value=JSON)
@settings(max_examples=examples(200), deadline=None)
def test_whatever_an_event_holds_it_is_read_or_refused(place: int, value: object) -> None:
    record = json.loads(encode(ROCKETMQ))
    record["saw"][place] = value
    assert isinstance(decode_event(json.dumps(record).encode()), RocketMQGroupEvent | RejectedEvent | UnknownType)
