"""Many of anything, and anything at all: rows stay small, true and in the shape of the tables."""

from __future__ import annotations

import json
from operator import attrgetter
from typing import Any, Final

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.jsonl import assign_line
from streaming.events import RocketMQGroupEvent, decode_event, encode
from streaming.groups import GroupConfig, Rows, advance, decode_state, encode_rows, encode_state, unpack_inputs
from streaming.groups.context import Allocation
from streaming.groups.state import GroupState
from streaming.records import (
    BROADCASTING,
    CLUSTERING,
    ERROR,
    MISSING,
    NONE,
    NOT_ASKED,
    OK,
    POP,
    PULL,
    PUSH,
    TIMEOUT,
    BrokerSeen,
    ChannelSeen,
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
from tests.examples import examples
from tests.groups.rocketmq.world import (
    AVG,
    CIRCLE,
    CONFIG,
    GROUP,
    HASH,
    NEARBY,
    ROOM,
    SECOND,
    START,
    TOPIC,
    A,
    B,
    C,
    Client,
    World,
    group,
    text,
    three,
)


def test_topics_that_members_subscribe_to_differently_are_counted_where_a_detail_has_no_room_for_them() -> None:
    world = three()
    world.clients[A].topics = (TOPIC, *(f"topic-{number:02}" for number in range(20)))
    world.round(2)
    assert text(world, "subscriptions_differ") == (
        "members of one group must subscribe alike: topic-00 (1 of 3), topic-01 (1 of 3), topic-02 (1 of 3) and 17 more"
    )


def test_thousands_of_queues_of_one_finding_do_not_hide_another_one() -> None:
    world = World()
    world.routes["n1"] = {TOPIC: {"broker-a": 1_200}}
    every = {("broker-a", number) for number in range(1_100)}
    world.join(*(Client(name, held={TOPIC: set(every)}, orderly=True, unlocked=every) for name in (A, B)))
    world.round(17)
    assert text(world, "doubly_held").endswith(f"orders@broker-a 2 by {A}, {B} and 997 more, at least")
    assert text(world, "held_by_nobody").endswith(" orders@broker-a 1102 (0 unread) and 97 more")
    assert text(world, "orderly_not_locked").endswith(f"orders@broker-a 2 ({A}) and 997 more, at least")


# Clients, topics and brokers share them, so that all of them meet; some have what places and rooms are written with.
NAMES: Final = ("a", "b", "a\0@\0b", f"%RETRY%{GROUP}", f"%DLQ%{GROUP}", "t", "\0@\0", "x@y", "é")
NAME = st.sampled_from(NAMES)
LAST: Final = 2**63 - 1
ALLOCATIONS = st.sampled_from(
    (
        Allocation(),
        Allocation(5, (), frozenset({"a"}), "@", "AVG"),
        Allocation(0, None, frozenset(), "\0", "CONSISTENT_HASH"),
    )
)


def several(of: st.SearchStrategy[Any], most: int, by: str | None = None) -> st.SearchStrategy[tuple[Any, ...]]:
    """Up to `most` of these, no two of which have the same field `by`."""
    return st.lists(of, max_size=most, unique_by=attrgetter(by) if by else None).map(tuple)


def offsets(count: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[st.sampled_from((-1, 0, 5, LAST))] * count)


# Each part is within the limits of an event, and no two of them agree.
SUBSCRIPTIONS = st.none() | several(st.builds(SubscriptionSeen, NAME, st.sampled_from(("*", "", "A"))), 4, "topic")
BROKER = st.builds(
    BrokerSeen,
    NAME,
    st.sampled_from((0, 0, 1)),
    st.sampled_from(("address-1", "address-2", "address-3")),
    st.just(OK),
    clients=several(NAME, 4).map(sorted).map(tuple),
    channels=st.none() | several(st.builds(ChannelSeen, NAME, st.sampled_from(("1:2", "3:4"))), 4),
    consume_type=st.sampled_from((None, PUSH, PUSH, PULL, POP)),
    message_model=st.sampled_from((*(None,) * 8, CLUSTERING, BROADCASTING)),
    subscriptions=SUBSCRIPTIONS,
) | st.builds(BrokerSeen, NAME, st.sampled_from((0, 1)), st.just("address-4"), st.sampled_from((NONE, TIMEOUT)))
QUEUE = st.builds(
    HeldQueue, NAME, NAME, st.sampled_from((-1, 0, 1, 2, 65_535)), dropped=st.booleans(), locked=st.booleans()
)
MEMBER = st.builds(
    MemberSeen,
    NAME,
    st.just(OK),
    version=st.sampled_from((None, "V4_5_0", "V5_5_0", "-")),
    strategy=st.sampled_from((AVG, AVG, CIRCLE, HASH, ROOM, NEARBY, CONFIG, None, "x")),
    consume_type=st.sampled_from((PUSH, PULL)),
    message_model=st.sampled_from((CLUSTERING, CLUSTERING, None)),
    orderly=st.sampled_from((None, True, False)),
    started=st.sampled_from((-1, 5, 6)),
    subscriptions=SUBSCRIPTIONS,
    queues=st.none() | several(QUEUE, 4),
) | st.builds(MemberSeen, NAME, st.sampled_from((TIMEOUT, NOT_ASKED)))
ROUTE = st.builds(
    RouteSeen,
    st.sampled_from(("n1", "n2")),
    st.just(OK),
    several(st.builds(RouteBroker, NAME, st.integers(0, 3), st.sampled_from((6, 2, 0))), 3, "name"),
    mapped=st.sampled_from((True, *[False] * 19)),
) | st.builds(RouteSeen, st.sampled_from(("n1", "n2")), st.sampled_from((MISSING, TIMEOUT)), st.just(()))
QUEUES = st.integers(0, 3).flatmap(
    lambda count: st.builds(
        QueuesSeen,
        NAME,
        st.sampled_from((OK, OK, ERROR)),
        offsets(count),
        offsets(count),
        st.none() | offsets(count),
    )
)
SEEN = st.builds(
    RocketMQObservation,
    st.just(0),
    st.sampled_from((START, START, 0, 253_402_300_799_999)),
    st.sampled_from((*[None] * 19, "deleted")),
    brokers=several(BROKER, 4, "address"),
    members=several(MEMBER, 5, "client_id"),
    topics=several(
        st.builds(TopicSeen, NAME, several(ROUTE, 2, "name_server"), several(QUEUES, 3, "broker")), 4, "topic"
    ),
)


@settings(deadline=None, max_examples=examples(100))
@given(st.lists(st.tuples(SEEN, st.sampled_from((0, 10, 70)), ALLOCATIONS), min_size=1, max_size=8))
def test_anything_that_an_event_may_hold_passes_and_fits_the_tables(
    rounds: list[tuple[RocketMQObservation, int, Allocation]],
) -> None:
    # Imported here: the tables load deltalake and pandas, which the tests of this folder do not load at start.
    from streaming.tables import table_named, to_arrow  # noqa: PLC0415

    state: GroupState | None = None
    elapsed = 0
    for number, (seen, seconds, allocation) in enumerate(rounds, 1):
        elapsed += seconds * SECOND
        event = RocketMQGroupEvent(1, "test", GROUP, msgspec.structs.replace(seen, round=10 * number))
        told = decode_event(encode(event))
        assert isinstance(told, RocketMQGroupEvent)
        config = GroupConfig("test", allocation=lambda _, allocation=allocation: allocation)
        inputs = decode_inputs(encode_inputs([msgspec.structs.replace(told.saw, elapsed=elapsed, closed=seen.time)]))
        state, rows = advance(state, GROUP, inputs, config)
        if state is not None:
            state = decode_state(*encode_state(state))
        # As in the job's writer: unpacked into plain lists.
        found: Any
        for table, found in zip(Rows.__struct_fields__, msgspec.msgpack.decode(encode_rows(rows)), strict=True):
            assert to_arrow(table_named(table), found).num_rows == len(found)


def test_the_inputs_of_a_verdict_give_its_owners_again() -> None:
    world = group(*(Client(name) for name in (A, B, C)))
    world.round(2)
    [drift] = world.rows.drift
    assert drift.verdict == "identical"
    assert drift.inputs is not None
    answer = assign_line(json.loads(unpack_inputs(drift.inputs)))
    given = {
        client: {(queue["broker"], queue["queue"]) for queue in queues}
        for client, queues in answer["assignment"].items()
    }
    assert given == {client: world.clients[client].held["orders"] for client in (A, B, C)}
