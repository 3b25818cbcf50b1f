"""Many of anything, and anything at all: rows stay small, true and in the shape of the tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, Final, TypeVar

import msgspec
import pytest

from assignors.jsonl import assign_line
from streaming.events import RocketMQGroupEvent, decode_event, encode
from streaming.groups import GroupConfig, Rows, advance, decode_state, encode_rows, encode_state, unpack_inputs
from streaming.groups.context import Allocation, Context
from streaming.groups.rocketmq.findings import rocketmq_findings
from streaming.groups.rocketmq.round import read
from streaming.groups.rocketmq.state import RocketMQState
from streaming.groups.rocketmq.views import Views
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


def test_subscriptions_are_compared_once_each_however_many_there_are() -> None:
    compared = 0

    class Counted(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    def told(client: str, *more: str) -> MemberSeen:
        topics = (*(f"topic-{number:03}" for number in range(200)), *more)
        return MemberSeen(client, OK, subscriptions=tuple(SubscriptionSeen(Counted(topic)) for topic in topics))

    plain = three().observation()
    seen = msgspec.structs.replace(plain, members=(told(A), told(B), told(C, "topic-x")))
    round_seen = read(GroupState(), plain, Context(GROUP, GroupConfig("test"), Rows()))
    round_seen = msgspec.structs.replace(round_seen, views=Views(seen, Allocation()))
    [found] = rocketmq_findings(RocketMQState(), round_seen)
    assert (found.name, found.detail.count("topic-x (1 of 3")) == ("subscriptions_differ", 1)
    # 601 subscriptions, which go through some sets; each topic against all of a member would be 60,000.
    assert compared < 10_000


def test_thousands_of_queues_of_one_finding_do_not_hide_another_one() -> None:
    world = World()
    world.routes["n1"] = {TOPIC: {"broker-a": 1_200}}
    every = {("broker-a", number) for number in range(1_100)}
    world.join(*(Client(name, held={TOPIC: set(every)}, orderly=True, unlocked=every) for name in (A, B)))
    world.round(17)
    assert text(world, "doubly_held").endswith(f"orders@broker-a 2 by {A}, {B} and 997 more, at least")
    assert text(world, "held_by_nobody").endswith(" orders@broker-a 1102 (0 unread) and 97 more")
    assert text(world, "orderly_not_locked").endswith(f"orders@broker-a 2 ({A}) and 997 more, at least")


T = TypeVar("T")

# Clients, topics and brokers share them, so that all of them meet; some have what places and rooms are written with.
NAMES: Final = ("a", "b", "a\0@\0b", f"%RETRY%{GROUP}", f"%DLQ%{GROUP}", "t", "\0@\0", "x@y", "é")
LAST: Final = 2**63 - 1
ALLOCATIONS: Final = (
    Allocation(),
    Allocation(5, (), frozenset({"a"}), "@", "AVG"),
    Allocation(0, None, frozenset(), "\0", "CONSISTENT_HASH"),
)


class Anything:
    """Draws events: each part within the limits of an event, no two of them in agreement."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)

    def event(self, number: int, time: int) -> RocketMQObservation:
        """An event of a round."""
        if self.draw.random() < 0.05:
            return RocketMQObservation(number, time, "deleted")
        return RocketMQObservation(
            *(number, time, None),
            brokers=tuple(self._broker(f"address-{n}") for n in range(self.draw.randint(0, 4))),
            members=tuple(self._member(name) for name in self._names(5)),
            topics=tuple(self._topic(name) for name in self._names(4)),
        )

    def _names(self, most: int) -> list[str]:
        return self.draw.sample(NAMES, self.draw.randint(0, most))

    def _name(self) -> str:
        return self.draw.choice(NAMES)

    def _maybe(self, make: Callable[[], T]) -> T | None:
        return make() if self.draw.random() < 0.7 else None

    def _subscriptions(self) -> tuple[SubscriptionSeen, ...]:
        return tuple(SubscriptionSeen(name, self.draw.choice(("*", "", "A"))) for name in self._names(4))

    def _broker(self, address: str) -> BrokerSeen:
        draw = self.draw
        answer = draw.choice((OK, OK, OK, NONE, TIMEOUT))
        listed = tuple(sorted(self._name() for _ in range(draw.randint(0, 4)))) if answer == OK else ()
        rarely = draw.random()
        return BrokerSeen(
            *(self._name(), draw.choice((0, 0, 1)), address, answer),
            clients=listed,
            channels=self._maybe(lambda: tuple(ChannelSeen(name, draw.choice(("1:2", "3:4"))) for name in listed)),
            consume_type=draw.choice((None, PUSH, PUSH, PULL, POP)),
            message_model=draw.choice((None, CLUSTERING, CLUSTERING, BROADCASTING)) if rarely < 0.3 else None,
            subscriptions=self._maybe(self._subscriptions),
        )

    def _member(self, name: str) -> MemberSeen:
        draw = self.draw
        answer = draw.choice((OK, OK, OK, OK, TIMEOUT, NOT_ASKED))
        if answer != OK:
            return MemberSeen(name, answer)
        return MemberSeen(
            *(name, OK),
            version=draw.choice((None, "V4_5_0", "V5_5_0", "-")),
            strategy=draw.choice((AVG, AVG, CIRCLE, HASH, ROOM, NEARBY, CONFIG, None, "x")),
            consume_type=draw.choice((PUSH, PULL)),
            message_model=draw.choice((CLUSTERING, CLUSTERING, None)),
            orderly=draw.choice((None, True, False)),
            started=draw.choice((-1, 5, 6)),
            subscriptions=self._maybe(self._subscriptions),
            queues=self._maybe(lambda: tuple(self._queue() for _ in range(draw.randint(0, 4)))),
        )

    def _queue(self) -> HeldQueue:
        number = self.draw.choice((-1, 0, 1, 2, 65_535))
        dropped, locked = self.draw.random() < 0.1, self.draw.random() < 0.5
        return HeldQueue(self._name(), self._name(), number, dropped=dropped, locked=locked)

    def _topic(self, name: str) -> TopicSeen:
        servers = self.draw.sample(("n1", "n2"), self.draw.randint(0, 2))
        return TopicSeen(name, tuple(map(self._route, servers)), tuple(map(self._queues, self._names(3))))

    def _route(self, server: str) -> RouteSeen:
        draw = self.draw
        answer = draw.choice((OK, OK, MISSING, TIMEOUT))
        brokers = tuple(
            RouteBroker(name, draw.randint(0, 3), draw.choice((6, 2, 0)))
            for name in (self._names(3) if answer == OK else ())
        )
        return RouteSeen(server, answer, brokers, mapped=draw.random() < 0.05)

    def _queues(self, broker: str) -> QueuesSeen:
        count = self.draw.randint(0, 3)

        def offsets() -> tuple[int, ...]:
            return tuple(self.draw.choices((-1, 0, 5, LAST), k=count))

        answer = self.draw.choice((OK, OK, ERROR))
        return QueuesSeen(broker, answer, offsets(), offsets(), self._maybe(offsets))


@pytest.mark.parametrize("seed", range(examples(200)))
def test_anything_that_an_event_may_hold_passes_and_fits_the_tables(seed: int) -> None:
    # Imported here: the tables load deltalake and pandas, which the tests of this folder do not load at start.
    from streaming.tables import table_named, to_arrow  # noqa: PLC0415

    anything, elapsed = Anything(seed), 0
    config = GroupConfig("test", allocation=lambda _: anything.draw.choice(ALLOCATIONS))
    state: GroupState | None = None
    for number in range(10, 90, 10):
        elapsed += anything.draw.choice((0, 10 * SECOND, 70 * SECOND))
        time = anything.draw.choice((START + elapsed, START + elapsed, 0, 253_402_300_799_999))
        told = decode_event(encode(RocketMQGroupEvent(1, "test", GROUP, anything.event(number, time))))
        assert isinstance(told, RocketMQGroupEvent)
        state, rows = advance(
            state,
            GROUP,
            decode_inputs(encode_inputs([msgspec.structs.replace(told.saw, elapsed=elapsed, closed=time)])),
            config,
        )
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
