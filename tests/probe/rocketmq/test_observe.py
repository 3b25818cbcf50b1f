"""Rounds of RocketMQ: through which brokers clients are asked, who is gone, who rests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest

from streaming.config import Filters
from streaming.demo.ports import free_port
from streaming.events import RocketMQGroupEvent, decode_event, encode
from streaming.probe.deadline import Deadline, RoundAbandonedError
from streaming.probe.idle import SETTLED_ROUNDS, SPREAD_ROUNDS
from streaming.probe.rocketmq.cluster import RocketMQCluster
from streaming.probe.rocketmq.members import MemberQuestions, SilentClients
from streaming.probe.rocketmq.observe import (
    UNTOLD,
    RocketMQLook,
    RocketMQMemory,
    recall,
    round_of_groups,
)
from streaming.records import (
    NOT_ASKED,
    OK,
    TIMEOUT,
    BrokerSeen,
    MemberSeen,
    QueuesSeen,
    RocketMQObservation,
    RoundClosed,
    RouteBroker,
    RouteSeen,
    TopicSeen,
)
from streaming.rocketmq import Answer, Client, Frame, Question, Unanswered

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


class RoundOfGroups(NamedTuple):
    events: list[RocketMQGroupEvent]
    memory: RocketMQMemory


def a_round(
    number: int, seen: RocketMQLook, memory: RocketMQMemory, filters: Filters | None = None, ahead_ms: int = 0
) -> RoundOfGroups:
    """A round by a clock that may be ahead."""
    time = _START + number * _INTERVAL + ahead_ms
    settings = (filters or Filters(), _HEARTBEAT, _INTERVAL)
    return RoundOfGroups(*round_of_groups("prod", number, time, seen, memory, *settings))


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
        assert memory.groups == {"a", "b"}
        assert memory.untold(this.events) == (told[-1] is None)
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
    assert (events(this), this.memory.untold(this.events), this.memory.groups) == ({}, 1, {"a"})
    assert this.memory.rest.rounds == memory.rest.rounds


def test_each_silence_doubles_the_pause_up_to_five_minutes() -> None:
    silent, time, pauses = SilentClients(), 1_000_000, []
    for _ in range(7):
        silent.heard("g", "c", time, answered=False)
        began = time
        while silent.is_left_alone("g", "c", time):
            time += 10_000
        pauses.append((time - began) // 1000)
    assert pauses == [20, 40, 80, 160, 300, 300, 300]


def test_an_answer_ends_it_and_another_client_is_not_concerned() -> None:
    silent = SilentClients()
    silent.heard("g", "c", 0, answered=False)
    assert [silent.is_left_alone("g", one, 10_000) for one in ("c", "d")] == [True, False]
    silent.heard("g", "c", 20_000, answered=True)
    assert not silent.is_left_alone("g", "c", 20_000)


def test_who_is_on_no_list_any_more_is_forgotten() -> None:
    silent = SilentClients()
    silent.heard("g", "c", 0, answered=False)
    silent.forget(set())
    assert not silent.is_left_alone("g", "c", 10_000)


_A, _B, _C = "10.0.0.1:10911", "10.0.0.2:10911", "10.0.0.3:10911"


class Brokers:
    """Brokers, some of which say nothing; notes who was asked for whom."""

    def __init__(self, *silent: str) -> None:
        self.silent = silent
        self.asked: list[tuple[str, str]] = []

    def ask(self, questions: Sequence[Question], deadline: Deadline) -> list[Answer]:
        del deadline
        self.asked += [(one.address, one.fields["clientId"]) for one in questions]
        late = Unanswered("no answer within 2.0 s", late=True)
        return [late if one.address in self.silent else Frame(0, 1, 1, body=b'{"mqTable":{}}') for one in questions]


def answers(asking: MemberQuestions, addresses: Sequence[str], clients: Sequence[str], time: int = 0) -> dict[str, str]:
    brokers = [BrokerSeen(address, 0, address, OK, clients=tuple(clients)) for address in addresses]
    found = asking.ask({"g": brokers}, {"g": set()}, time, Deadline.after(60))
    return {one.client_id: one.answer for one in found["g"]}


def test_a_client_that_is_silent_through_one_broker_is_asked_through_another() -> None:
    brokers = Brokers(_A)
    assert answers(MemberQuestions(brokers.ask), [_A, _B, _C], ["c1"]) == {"c1": OK}
    assert brokers.asked == [(_A, "c1"), (_B, "c1")]


def test_a_client_that_is_silent_through_two_brokers_is_left_alone_for_two_rounds() -> None:
    brokers = Brokers(_A, _B, _C)
    asking = MemberQuestions(brokers.ask)
    assert answers(asking, [_A, _B, _C], ["c1"]) == {"c1": TIMEOUT}
    assert brokers.asked == [(_A, "c1"), (_B, "c1")]
    assert answers(asking, [_A, _B, _C], ["c1"], 10_000) == {"c1": NOT_ASKED}
    brokers.silent = ()
    assert answers(asking, [_A, _B, _C], ["c1"], 20_000) == {"c1": OK}


def test_brokers_that_say_nothing_are_not_asked_for_more_than_a_batch_of_clients_each() -> None:
    brokers = Brokers(_A, _B)
    found = answers(MemberQuestions(brokers.ask), [_A, _B], [f"c{number:02}" for number in range(40)])
    assert len(brokers.asked) <= 4 * 8
    assert set(found.values()) == {TIMEOUT, NOT_ASKED}


HOUR = 3_600_000


def test_a_server_that_cannot_be_asked_is_named_once_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    address = f"127.0.0.1:{free_port()}"
    said = []
    with Client() as client:
        cluster = RocketMQCluster(client, [address], Filters())
        for time in (0, 10_000, HOUR - 1, HOUR, HOUR + 10_000, 5_000):  # The last clock goes back.
            caplog.clear()
            with pytest.raises(RoundAbandonedError):
                cluster.observe_groups([], frozenset(), time, Deadline.after(30))
            said.append([record.getMessage() for record in caplog.records])
    named = [f"{address} cannot be asked: connection refused."]
    assert said == [named, [], [], named, [], named]
