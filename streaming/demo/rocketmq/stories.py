"""The stories of the RocketMQ demo: five ways to a split brain, and two groups in which nothing is wrong.

Three brokers and two name servers; `broker-c` registers with the first name server alone. Only the topic of story 2 has
queues on it, so no other group sees name servers that differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final

from streaming.demo.rocketmq import recipes
from streaming.demo.rocketmq.member import RocketMQMember

__all__ = ["BROKERS", "FIRST_PASS_S", "QUEUES", "REGISTERS", "STORIES", "Players", "RocketMQStory"]

BROKERS: Final = ("broker-a", "broker-b", "broker-c")
NAME_SERVERS: Final = 2
REGISTERS: Final = {"broker-c": (0,)}
"""The second name server does not know it."""

QUEUES: Final = 4
"""Per topic, on each of its brokers."""

FIRST_PASS_S: Final = 200.0
"""A client id used twice is a finding after 150 s; then come some rounds and a batch, on a busy machine."""

_AT_BOTH: Final = ("broker-a", "broker-b")

Players = Callable[[Sequence[str], str, str], AbstractContextManager[list[RocketMQMember]]]
"""The members of a group while they play: from name servers, group and topic."""


@dataclass(frozen=True, slots=True)
class RocketMQStory:
    """One group and what must be said of it.

    Attributes:
        number: Its number; 0 for groups in which nothing is wrong.
        group: The group.
        topic: Its topic.
        brokers: Brokers with queues of the topic.
        players: Its members.
        found: Findings that it must have.
        possible: Findings that it may have beside them; any other is an error.
        alerts: Rules that must fire for it; any other is an error, but for those of `possible_alerts`.
        possible_alerts: Rules that may.
        lost_at: When its last member loses its way to `broker-b`, and finds it again, s; None where it never does.
    """

    number: int
    group: str
    topic: str
    brokers: tuple[str, ...]
    players: Players
    found: frozenset[str] = frozenset()
    possible: frozenset[str] = frozenset()
    alerts: frozenset[str] = frozenset()
    possible_alerts: frozenset[str] = frozenset()
    lost_at: tuple[float, float] | None = None


def _sound(name_servers: Sequence[str], group: str, topic: str) -> AbstractContextManager[list[RocketMQMember]]:
    return recipes.steady(name_servers[:1], group, [topic])


def _strategies(name_servers: Sequence[str], group: str, topic: str) -> AbstractContextManager[list[RocketMQMember]]:
    return recipes.strategies_that_differ(name_servers[:1], group, topic)


def _one_broker(name_servers: Sequence[str], group: str, topic: str) -> AbstractContextManager[list[RocketMQMember]]:
    return recipes.a_heartbeat_to_one_broker_only(name_servers[:1], group, topic, "broker-b")


@contextmanager
def _unhurried(name_servers: Sequence[str], group: str, topic: str) -> Iterator[list[RocketMQMember]]:
    """Three members that rebalance as seldom as Java's, each 20 s."""
    members = [RocketMQMember(name_servers[:1], group, f"10.0.0.{number}@{number}", [topic]) for number in (1, 2, 3)]
    with members[0], members[1], members[2]:
        yield members


def _same_id(name_servers: Sequence[str], group: str, topic: str) -> AbstractContextManager[list[RocketMQMember]]:
    return recipes.one_client_id_twice(name_servers[:1], group, topic)


def _broadcasting(name_servers: Sequence[str], group: str, topic: str) -> AbstractContextManager[list[RocketMQMember]]:
    return recipes.a_group_that_broadcasts(name_servers[:1], group, topic)


_LOST_AT = (60.0, 75.0)
"""Long enough for two rounds and the 5 s of `member_lists_differ`; shorter than the ten rounds (20 s) after which the
lag of the queues that the member cannot reach counts as stopped: from 20 s on, that alert would be right."""

_OWNERS = frozenset({"doubly_held", "held_by_nobody"})

_ONE = frozenset({"queue_owners"})
"""One incident, one alert, with its reasons as evidence."""

_WHILE_FLIPPING = frozenset({"views_differ", "lag", "imbalance"})
"""Owners that flip are right for moments, in which the rest counts."""

STORIES: Final[tuple[RocketMQStory, ...]] = (
    RocketMQStory(0, "billing", "orders", _AT_BOTH, _sound),
    RocketMQStory(0, "price-board", "prices", _AT_BOTH, _broadcasting),
    RocketMQStory(
        1,
        "invoices-two-strategies",
        "invoices",
        _AT_BOTH,
        _strategies,
        found=frozenset({"mixed_strategies", "split_brain", *_OWNERS}),
        alerts=_ONE,
    ),
    RocketMQStory(
        2,
        "stock-two-routes",
        "stock",
        ("broker-a", "broker-c"),
        recipes.a_name_server_that_knows_less,
        found=frozenset({"route_differs", "member_lists_differ", "split_brain"}),
        possible=frozenset({"idle_members", "rebalance_storm", *_OWNERS}),
        alerts=_ONE,
        possible_alerts=_WHILE_FLIPPING,
    ),
    RocketMQStory(
        3,
        "clicks-one-broker",
        "clicks",
        _AT_BOTH,
        _one_broker,
        found=frozenset({"member_lists_differ", "split_brain"}),
        possible=frozenset({"idle_members", "rebalance_storm", *_OWNERS}),
        alerts=_ONE,
        possible_alerts=_WHILE_FLIPPING,
    ),
    RocketMQStory(
        4,
        "emails-lost-way",
        "emails",
        _AT_BOTH,
        _unhurried,
        found=frozenset({"member_lists_differ"}),
        lost_at=_LOST_AT,
    ),
    RocketMQStory(
        5,
        "tills-same-id",
        "tills",
        _AT_BOTH,
        _same_id,
        found=frozenset({"held_by_nobody", "duplicate_client_id", "split_brain"}),
        alerts=_ONE,
    ),
)
"""All of them, the sound groups first."""
