"""Idle groups come once per heartbeat, no group that moves waits for it, and a new probe reads back the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

import pytest

from streaming.config import Filters, JobSettings, ProbeSettings, Settings
from streaming.events import Event, GroupEvent, encode
from streaming.groups.lag.partitions import WINDOW
from streaming.probe import Probe, RoundAbandonedError
from streaming.probe import bus as readback
from streaming.probe.deadline import Deadline
from streaming.probe.idle import SETTLED_ROUNDS, SPREAD_ROUNDS, STEADY_ROUNDS, Rest, rest_after, rested
from streaming.probe.kafka.look import Description, GroupsSeen, ListedGroup, RoundHead
from streaming.probe.kafka.memory import Memory, memory_after, recall
from streaming.probe.kafka.observe import round_events
from streaming.probe.rocketmq.observe import RocketMQMemory
from streaming.records import GroupObservation, Round, RoundClosed, RoundOpened
from tests.job.source.fake_reader import FakeReader
from tests.job.source.made_rounds import record
from tests.probe.kafka.build import topic
from tests.probe.witness import Cluster, read_round

INTERVAL = 10_000
PERIOD = 600_000
AT_REST = GroupsSeen(
    {"g": ListedGroup("g", 1, "Empty", "consumer", "classic")},
    {"g": ("orders",)},
    {},
    {"orders": topic("orders", [9])},
    {"g": 1},
)
MEMBERS = Description("Stable", "consumer", frozenset({"orders"}), complete=True)

MOVES = {
    "a commit": replace(AT_REST, committed={"g": 2}),
    "a record of its topic": replace(AT_REST, topics={"orders": topic("orders", [10])}),
    "partitions": replace(AT_REST, topics={"orders": topic("orders", [9, 0])}),
    "another topic": replace(AT_REST, topics_of_groups={"g": ("audit", "orders")}),
    "members": replace(AT_REST, descriptions={"g": MEMBERS}),
    "members that came and went": replace(AT_REST, changed={"g"}),
    "its type": replace(AT_REST, groups={"g": ListedGroup("g", 1, "Empty", "consumer", "consumer")}),
}


class Rounds:
    """A probe's rounds, one interval after the other."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.number = 0
        self.told: dict[int, list[GroupEvent]] = {}

    def see(self, look: GroupsSeen, times: int = 1, ahead: int = 0) -> list[GroupEvent]:
        """The group's events in the last of `times` rounds, in which the brokers' clock was so many ms ahead."""
        for _ in range(times):
            time = 1_700_000_000_000 + INTERVAL * self.number + ahead
            head = RoundHead("prod", None, self.number, time, (5,), (None,))
            after = memory_after(head, look, self.memory)
            events = round_events(head, look, self.memory, after, Filters(), PERIOD)
            self.told[self.number] = events
            self.memory = after
            self.number += 1
        return self.told[self.number - 1]


STEADY = replace(AT_REST, descriptions={"g": MEMBERS}, calm={"g"})

CHANGES = {
    "it is behind, or its members change": replace(STEADY, calm=()),
    "subscriptions": replace(STEADY, descriptions={"g": replace(MEMBERS, subscribed=frozenset({"orders", "audit"}))}),
    "partitions": replace(STEADY, topics={"orders": topic("orders", [9, 0])}),
    "another protocol": replace(STEADY, groups={"g": ListedGroup("g", 1, "Stable", "consumer", "consumer")}),
}


def test_a_group_with_members_is_told_in_full_until_it_has_been_the_same_for_long_and_then_rests() -> None:
    rounds = Rounds()
    rounds.see(STEADY, 200)
    told = {number: events[0].saw.idle for number, events in rounds.told.items() if events}
    assert [number for number, is_idle in told.items() if not is_idle] == list(range(STEADY_ROUNDS + 1))
    assert sum(told.values()) in {4, 5}  # at once, when its lag is settled, and two or three heartbeats
    (woken, *_) = rounds.see(replace(STEADY, committed={"g": 2}))
    assert not woken.saw.idle
    assert rest_of(woken) == (1_700_000_000_000 + STEADY_ROUNDS * INTERVAL, 1_700_000_000_000 + 199 * INTERVAL)
    (resting, *_) = rounds.see(replace(STEADY, committed={"g": 2}))
    assert resting.saw.idle


@pytest.mark.parametrize("change", CHANGES)
def test_a_group_with_members_that_has_changed_is_told_in_full_for_as_long_again(change: str) -> None:
    rounds = Rounds()
    rounds.see(STEADY, STEADY_ROUNDS + 10)
    for _ in range(STEADY_ROUNDS):
        (event, *_) = rounds.see(CHANGES[change])
        assert not event.saw.idle


def test_a_group_with_members_that_rests_and_is_left_by_all_of_them_is_told_in_the_round_that_sees_it() -> None:
    rounds = Rounds()
    rounds.see(STEADY, STEADY_ROUNDS + SETTLED_ROUNDS + SPREAD_ROUNDS + 1)
    # The log's records of it may lie behind this round's positions: the next round has them.
    for look, is_idle in (
        (AT_REST, False),
        (replace(AT_REST, changed={"g"}), False),
        (AT_REST, False),
        (AT_REST, True),
    ):
        (event, *_) = rounds.see(look)
        assert event.saw.idle == is_idle


def rest_of(event: GroupEvent) -> tuple[int, int]:
    return event.saw.rested_since, event.saw.rested_until


@pytest.fixture
def idle() -> Rounds:
    """Rounds after which the group is idle, the last of them without events of it."""
    rounds = Rounds()
    rounds.see(AT_REST, 40)
    return rounds


def test_an_idle_group_is_told_as_such_at_once_when_its_lag_is_settled_and_then_once_in_a_heartbeat(
    idle: Rounds,
) -> None:
    assert SETTLED_ROUNDS > WINDOW
    idle.see(AT_REST, 360)
    told = [number for number, events in idle.told.items() if events]
    assert told[:2] == [0, 1]
    assert any(SETTLED_ROUNDS <= number < SETTLED_ROUNDS + SPREAD_ROUNDS for number in told)
    heartbeats = [number for number in told if number >= SETTLED_ROUNDS + SPREAD_ROUNDS]
    assert [later - earlier for earlier, later in pairwise(heartbeats)] == [60] * (len(heartbeats) - 1)
    assert [idle.told[number][0].saw.idle for number in told] == [False] + [True] * (len(told) - 1)


@pytest.mark.parametrize("what", MOVES)
def test_what_moves_is_told_in_the_round_that_sees_it(idle: Rounds, what: str) -> None:
    (first, *_) = idle.see(MOVES[what])
    assert not first.saw.idle
    (second, *_) = idle.see(MOVES[what])
    assert second.saw.idle == ("members" not in what)


@pytest.mark.parametrize("what", MOVES)
def test_what_moves_after_a_rest_is_told_with_the_rounds_between_which_nothing_did(idle: Rounds, what: str) -> None:
    told = [events[0] for events in idle.told.values() if events]
    (first, *_) = idle.see(MOVES[what])
    assert rest_of(first) == (1_700_000_000_000, 1_700_000_000_000 + 39 * INTERVAL)
    # Whatever was told in this time shows the same offsets.
    assert all(rest_of(event) == (-1, -1) for event in told)
    (second, *_) = idle.see(MOVES[what])
    assert rest_of(second) == (-1, -1)


@pytest.mark.parametrize(("ahead", "told"), [(380_000, (1_700_000_380_000, 1_700_000_390_000)), (400_000, (-1, -1))])
def test_a_rest_that_began_while_the_clock_was_ahead_is_told_only_if_it_ends_after_that(
    ahead: int, told: tuple[int, int]
) -> None:
    rounds = Rounds()
    rounds.see(AT_REST, ahead=ahead)
    rounds.see(AT_REST, 39)
    (first, *_) = rounds.see(MOVES["a commit"])
    assert rest_of(first) == told


def test_a_rocketmq_group_whose_rest_began_while_the_clock_was_ahead_is_quiet_and_tells_no_rest() -> None:
    rest = rest_after(Rest(), {"g": 1}, 1_000_000)
    for number in range(SETTLED_ROUNDS + SPREAD_ROUNDS + 1):
        rest = rest_after(rest, {"g": 1}, 1_000 * number)
    assert rested("g", rest) is None
    # Otherwise the probe would ask for all its members and queues in each round.
    assert RocketMQMemory(frozenset({"g"}), rest).quiet == {"g"}


def test_idle_groups_come_spread_over_the_rounds() -> None:
    names = [f"batch-{number}" for number in range(600)]
    look = GroupsSeen(
        {name: ListedGroup(name, 1, "Empty", "", "classic") for name in names}, dict.fromkeys(names, ()), {}, {}
    )
    rounds = Rounds()
    settled = SETTLED_ROUNDS + SPREAD_ROUNDS
    rounds.see(look, settled + 60)
    told = [len(events) for events in rounds.told.values()]
    assert told[:2] == [len(names), len(names)]
    assert sum(told[settled:]) == len(names)
    assert max(told[2:settled]) < 180  # a hundred in each of six rounds with an even distribution, and heartbeats
    assert max(told[settled:]) < 40  # ten in each of 60 rounds


@pytest.mark.parametrize("more", [0, 1, 59, 60, 61, 100])
def test_a_new_probe_knows_the_groups_that_the_last_round_left_untold(more: int) -> None:
    rounds = Rounds()
    rounds.see(AT_REST, 2 + more)
    newest = 1_700_000_000_000 + INTERVAL * (rounds.number - 1)
    resting = [
        event
        for number, events in rounds.told.items()
        if 1_700_000_000_000 + INTERVAL * number >= newest - PERIOD and number < rounds.number - 1
        for event in events
        if events[0].saw.idle
    ]
    closed = RoundClosed(1, "prod", "p", INTERVAL, rounds.number - 1, newest, (5,), (5,), {}, 0, 0, untold=1)
    recalled = recall(closed, rounds.told[rounds.number - 1], resting)
    assert recalled.topics == {"g": ("orders",)}


def test_a_group_that_went_after_it_was_told_as_idle_is_not_recalled(idle: Rounds) -> None:
    resting = [*idle.told[1], *idle.see(GroupsSeen({}, {}, {}, {}))]
    closed = RoundClosed(1, "prod", "p", INTERVAL, 99, 99, (5,), (5,), {}, 0, 0, untold=1)
    assert recall(closed, [], resting).topics == {}


@pytest.mark.kafka
def test_on_a_broker_an_idle_group_rests_wakes_and_is_missed_by_a_new_probe(
    cluster: Cluster, settings: Settings
) -> None:
    orders = cluster.topic("orders", 1)
    group = cluster.commit("g", orders, [0])
    with Probe(settings) as probe:
        full, first, untold = probe.round(), probe.round(), probe.round()
        assert (full.groups, full.untold, full.resting) == (1, 0, {})
        assert (first.groups, first.untold, first.resting) == (1, 0, first.events)
        assert read_round(settings, first).groups[group].idle
        assert (untold.groups, untold.untold, untold.events) == (0, 1, {})

        cluster.produce(orders, [1])
        woken = read_round(settings, probe.round())
        assert (woken.groups[group].idle, list(woken.topics(group)[orders].ends)) == (False, [1])
        assert (woken.groups[group].rested_since, woken.groups[group].rested_until) == (full.time, untold.time)

        last = [probe.round() for _ in range(3)][-1]
        assert (last.groups, last.untold) == (0, 1)
    cluster.admin.delete_groups([group])
    with Probe(settings) as after:
        closed = after.round()
    assert read_round(settings, closed).gone == {group: "deleted"}


ROUNDS, EVENTS = "evenkeel.rounds", "evenkeel.events"


class Topics(FakeReader):
    """A reader of two topics that never lost a record."""

    def __init__(self, rounds: Iterable[Round], events: Iterable[Event]) -> None:
        super().__init__()
        for round_ in rounds:
            self.append(ROUNDS, 0, encode(round_))
        for event in events:
            self.append(EVENTS, 0, record(event))

    def close(self) -> None:
        pass


def group(round_: int, name: str, *, idle: bool) -> GroupEvent:
    of = (topic(f"topic-of-{name}", [9]),)
    saw = GroupObservation(round_, round_, 0, 5, "Empty", "", "classic", None, None, of, idle=idle)
    return GroupEvent(1, "prod", name, saw)


def heartbeat_of(rounds: int, busy: int) -> Topics:
    """Rounds with one idle group each, a different one in each, and the same busy groups in all."""
    told: list[Round] = []
    events: list[Event] = []
    for number in range(rounds):
        first = len(events)
        events.append(group(2 * number, f"idle-{number}", idle=True))
        rested = len(events)
        events += [group(2 * number, f"busy-{other}", idle=False) for other in range(busy)]
        told.append(RoundOpened(1, "prod", "p", 1_000))
        told.append(
            RoundClosed(
                v=1,
                cluster="prod",
                probe="p",
                interval_ms=1_000,
                round=2 * number,
                time=2 * number,
                log=(5,),
                log_end=(5,),
                events={"0": (first, len(events))},
                groups=1 + busy,
                written=1 + busy,
                resting={"0": (first, rested)},
                untold=rounds - 1,
            )
        )
    return Topics(told, events)


def read_back(monkeypatch: pytest.MonkeyPatch, topics: Topics) -> Mapping[str, Collection[str]]:
    monkeypatch.setattr(readback, "open_bus_reader", lambda _: topics)
    settings = Settings(cluster="prod", probe=ProbeSettings(interval_ms=1_000), job=JobSettings())
    memory = readback.read_back(settings, Deadline.after(60), recall)
    assert memory is not None
    return memory.topics


def test_all_rounds_of_a_heartbeat_are_read_back_with_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = heartbeat_of(rounds=600, busy=1)
    names = {f"idle-{number}" for number in range(600)} | {"busy-0"}
    assert read_back(monkeypatch, topics) == {name: (f"topic-of-{name}",) for name in names}
    # The end of the rounds twice, steps back through them, and the events of the newest round and of all others.
    assert (topics.calls["ends"], topics.calls["read"]) == (2, 6)


def test_what_busy_groups_were_told_in_between_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    decode = readback.decode_event
    monkeypatch.setattr(readback, "decode_event", lambda value: decoded.append(value) or decode(value))
    names = {f"idle-{number}" for number in range(20)} | {f"busy-{number}" for number in range(300)}
    assert read_back(monkeypatch, heartbeat_of(rounds=20, busy=300)) == {name: (f"topic-of-{name}",) for name in names}
    assert len(decoded) == 19 + 301


def test_topics_that_cannot_be_read_abandon_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = heartbeat_of(rounds=3, busy=1)
    topics.down = True
    with pytest.raises(RoundAbandonedError, match="could not be read back"):
        read_back(monkeypatch, topics)
