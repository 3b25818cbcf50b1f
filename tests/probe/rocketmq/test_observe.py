"""From what a round saw to its events: who is gone, who rests, what the next round must know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streaming.config import Filters
from streaming.events import decode_event, encode
from streaming.probe.idle import SETTLED_ROUNDS, SPREAD_ROUNDS
from streaming.probe.rocketmq.observe import (
    UNTOLD,
    RocketMQLook,
    RocketMQMemory,
    RoundOfGroups,
    recall,
    round_of_groups,
)
from streaming.records import (
    OK,
    BrokerSeen,
    MemberSeen,
    QueuesSeen,
    RocketMQObservation,
    RoundClosed,
    RouteBroker,
    RouteSeen,
    TopicSeen,
)

_START = 1_795_582_476_000
_INTERVAL = 10_000
_HEARTBEAT = 600_000
_DAY = 24 * 3_600_000


Group = tuple[RocketMQObservation, bool]


def group(*, members: int = 0, end: int = 5, there: bool = True) -> Group:
    """What a round sees of a group, and whether it is there."""
    clients = tuple(f"10.0.0.{number}@1" for number in range(members))
    route = RouteSeen("ns:9876", OK, (RouteBroker("broker-a", 1, 6),))
    topic = TopicSeen("orders", (route,), (QueuesSeen("broker-a", OK, (0,), (end,), (3,)),))
    broker = BrokerSeen("broker-a", 0, "10.0.0.9:10911", OK, clients=clients)
    members_seen = tuple(MemberSeen(client, OK) for client in clients)
    return RocketMQObservation(*UNTOLD, (broker,), members_seen, (topic,)), there


def look(
    groups: dict[str, tuple[RocketMQObservation, bool]],
    *,
    whole: bool = True,
    brokers: str = "broker-a",
    waiting: str = "",
) -> RocketMQLook:
    there = frozenset(name for name, (_, is_there) in groups.items() if is_there)
    seen = {name: saw for name, (saw, _) in groups.items()}
    return RocketMQLook(seen, there, frozenset(waiting.split()), frozenset(brokers.split()), whole)


def a_round(
    number: int, seen: RocketMQLook, memory: RocketMQMemory, filters: Filters | None = None, ahead_ms: int = 0
) -> RoundOfGroups:
    """A round by a clock that may be ahead."""
    time = _START + number * _INTERVAL + ahead_ms
    settings = (filters or Filters(), _HEARTBEAT, _INTERVAL)
    return round_of_groups("prod", number, time, seen, memory, *settings)


def read_back(rounds: list[RoundOfGroups]) -> RocketMQMemory:
    """What a new probe knows of the newest round and the resting events of a heartbeat before it."""
    newest = rounds[-1].memory
    closed = RoundClosed(
        v=1,
        cluster="prod",
        probe="p",
        interval_ms=_INTERVAL,
        round=len(rounds) - 1,
        time=newest.rest.time,
        log=(),
        log_end=(),
        events={},
        groups=2,
        written=2,
        source="rocketmq",
        known_brokers=dict(newest.brokers),
    )
    before = rounds[-1 - _HEARTBEAT // _INTERVAL : -1]
    resting = [event for told in before for event in told.events if event.saw.idle or event.saw.gone]
    return recall(closed, rounds[-1].events, resting)


def events(told: RoundOfGroups) -> dict[str, tuple[str | None, bool]]:
    """Why it is gone, and whether it is idle, of each group with an event."""
    assert all(decode_event(encode(event)) == event for event in told.events)
    return {event.key: (event.saw.gone, event.saw.idle) for event in told.events}


def test_a_group_that_everybody_has_forgotten_is_deleted_once() -> None:
    first = a_round(0, look({"a": group(members=1), "b": group()}), RocketMQMemory())
    second = a_round(1, look({"a": group(members=1), "b": group(there=False)}), first.memory)
    assert events(second) == {"a": (None, False), "b": ("deleted", False)}
    third = a_round(2, look({"a": group(members=1), "b": group(there=False)}), second.memory)
    assert events(third) == {"a": (None, False)}


def test_nothing_is_deleted_while_somebody_does_not_answer_or_a_broker_is_missing() -> None:
    first = a_round(0, look({"a": group()}, brokers="broker-a broker-b"), RocketMQMemory())
    gone = {"a": group(there=False)}
    silent = look(gone, whole=False, brokers="broker-a broker-b")
    assert events(a_round(1, silent, first.memory)) == {"a": (None, True)}
    assert events(a_round(1, look(gone), first.memory)) == {"a": (None, True)}
    # A broker that has been away for a day was taken away.
    for missing, told in ((_DAY - _INTERVAL - 1, None), (_DAY - _INTERVAL, "deleted")):
        later = replace(first.memory, brokers={"broker-a": 0, "broker-b": missing})
        assert events(a_round(1, look(gone), later)) == {"a": (told, told is None)}


_BOTH = look({"a": group(members=1), "b": group()}, brokers="broker-a broker-b")
_WITHOUT_B = look({"a": group(members=1), "b": group(there=False)})
"""Broker-b is down, and the group b is nowhere else."""


def test_a_new_probe_knows_a_broker_that_was_missing_for_longer_than_a_heartbeat() -> None:
    rounds = [a_round(0, _BOTH, RocketMQMemory())]
    for number in range(1, 181):
        rounds.append(a_round(number, _WITHOUT_B, rounds[-1].memory))
    memory = read_back(rounds)
    assert (memory.groups, memory.brokers) == ({"a", "b"}, {"broker-a": 0, "broker-b": 180 * _INTERVAL})
    assert events(a_round(181, _WITHOUT_B, memory)) == {"a": (None, False), "b": (None, False)}


@pytest.mark.parametrize("ahead_ms", [(0, 0, _DAY, 0), (0, 0, -_DAY, 0), (60_000, 0, 0, 0), (_DAY, 0, 0, 0)], ids=str)
def test_no_clock_that_jumps_takes_a_missing_broker_away(ahead_ms: tuple[int, ...]) -> None:
    memory = a_round(0, _BOTH, RocketMQMemory(), ahead_ms=ahead_ms[0]).memory
    for number, ahead in enumerate(ahead_ms[1:], start=1):
        told = a_round(number, _WITHOUT_B, memory, ahead_ms=ahead)
        assert events(told).get("b", (None, True)) == (None, True)
        memory = told.memory


def test_a_group_that_was_deleted_while_no_probe_ran_ends_with_the_first_round() -> None:
    memory = read_back([a_round(0, _BOTH, RocketMQMemory())])
    deleted = replace(_WITHOUT_B, brokers=_BOTH.brokers)
    assert events(a_round(10_000, deleted, memory))["b"] == ("deleted", False)


def test_a_group_of_a_broker_that_was_taken_away_ends_after_a_day_however_often_the_probe_starts_again() -> None:
    rounds = [a_round(0, _BOTH, RocketMQMemory())]
    last = _DAY // _INTERVAL
    for number in range(1, last):
        rounds.append(a_round(number, _WITHOUT_B, read_back(rounds) if number % 100 == 0 else rounds[-1].memory))
    assert [told for told in map(events, rounds) if told.get("b", (None, False))[0] is not None] == []
    told = a_round(last, _WITHOUT_B, read_back(rounds))
    assert (events(told)["b"], told.memory.brokers) == (("deleted", False), {"broker-a": 0})


def test_a_pause_of_the_probe_counts_as_three_intervals() -> None:
    memory = read_back([a_round(0, _BOTH, RocketMQMemory())])
    assert a_round(10_000, _WITHOUT_B, memory).memory.brokers == {"broker-a": 0, "broker-b": 3 * _INTERVAL}


def test_a_group_that_the_filters_exclude_now_is_filtered() -> None:
    first = a_round(0, look({"a": group(members=1)}), RocketMQMemory())
    second = a_round(1, look({"a": group(members=1)}), first.memory, Filters(ignore_groups=("a",)))
    assert (events(second), second.memory.groups) == ({"a": ("filtered", False)}, frozenset())


def test_a_group_without_members_rests_at_once_and_is_told_when_it_is_settled_and_at_heartbeats() -> None:
    memory, told = RocketMQMemory(), []
    for number in range(75):
        this = a_round(number, look({"a": group(), "b": group(members=1)}), memory)
        memory = this.memory
        told.append(events(this).get("a"))
        assert this.untold == (told[-1] is None)
        assert "b" in events(this)
    assert told[:2] == [(None, False), (None, True)]
    assert told[SETTLED_ROUNDS : SETTLED_ROUNDS + SPREAD_ROUNDS].count((None, True)) >= 1
    assert told.count((None, True)) in {3, 4}
    assert memory.quiet == {"a"}
    changed = a_round(75, look({"a": group(end=6)}), memory)
    [event] = changed.events
    assert (event.saw.idle, event.saw.rested_since, event.saw.rested_until) == (False, _START, _START + 74 * _INTERVAL)


def test_a_quiet_group_that_was_not_looked_at_stays_known() -> None:
    memory = RocketMQMemory()
    for number in range(SETTLED_ROUNDS + SPREAD_ROUNDS + 1):
        memory = a_round(number, look({"a": group()}), memory).memory
    this = a_round(30, look({}, waiting="a"), memory)
    assert (events(this), this.untold, this.memory.groups) == ({}, 1, {"a"})
    assert this.memory.rest.rounds == memory.rest.rounds
