"""Arbitrary events of a RocketMQ group that can be read: nothing stops the core, and every row fits its table."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final, TypeVar

import msgspec
import pytest

from streaming.events import RocketMQGroupEvent, decode_event, encode
from streaming.groups import GroupConfig, Rows, advance, decode_state, encode_rows, encode_state
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
    RequestMode,
    RocketMQObservation,
    RouteBroker,
    RouteSeen,
    SubscriptionSeen,
    TopicSeen,
    decode_inputs,
    encode_inputs,
)
from tests.examples import examples
from tests.groups.rocketmq.world import AVG, CIRCLE, CONFIG, GROUP, HASH, NEARBY, ROOM, SECOND, START

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
            return RocketMQObservation(number, time, "deleted", name_servers=("n1",))
        return RocketMQObservation(
            *(number, time, None),
            name_servers=("n1",),
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
            modes=(RequestMode(self._name(), draw.choice(("POP", "PULL")), 1),) if rarely > 0.9 else None,
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
            RouteBroker(name, draw.randint(0, 3), 1, draw.choice((6, 2, 0)))
            for name in (self._names(3) if answer == OK else ())
        )
        return RouteSeen(server, answer, brokers, mapped=draw.random() < 0.05)

    def _queues(self, broker: str) -> QueuesSeen:
        count = self.draw.randint(0, 3)

        def offsets() -> tuple[int, ...]:
            return tuple(self.draw.choices((-1, 0, 5, LAST), k=count))

        answer = self.draw.choice((OK, OK, ERROR))
        return QueuesSeen(broker, answer, offsets(), offsets(), self._maybe(offsets))


@pytest.mark.parametrize("seed", range(examples(500)))
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
