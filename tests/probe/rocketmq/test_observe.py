"""From what a round saw to its events: who is gone, who rests, what the next round must know."""

from __future__ import annotations

from dataclasses import replace

from streaming.config import Filters
from streaming.events import RocketMQGroupEvent, RoundSeen, decode_event, encode_event
from streaming.probe.idle import IDLE_ROUNDS
from streaming.probe.rocketmq.look import GroupParts, RocketMQLook
from streaming.probe.rocketmq.observe import RocketMQMemory, RoundOfGroups, recall, round_of_groups
from streaming.records import OK, BrokerSeen, MemberSeen, QueuesSeen, RouteBroker, RouteSeen, TopicSeen

_START = 1_795_582_476_000
_INTERVAL = 10_000
_HEARTBEAT = 600_000
_DAY = 24 * 3_600_000


def group(*, members: int = 0, end: int = 5, there: bool = True) -> GroupParts:
    clients = tuple(f"10.0.0.{number}@1" for number in range(members))
    route = RouteSeen("ns:9876", OK, (RouteBroker("broker-a", 1, 1, 6),))
    topic = TopicSeen("orders", (route,), (QueuesSeen("broker-a", OK, (0,), (end,), (3,), (7,), None),))
    broker = BrokerSeen("broker-a", 0, "10.0.0.9:10911", OK, clients=clients)
    return GroupParts((broker,), tuple(MemberSeen(client, OK) for client in clients), (topic,), is_there=there)


def look(
    groups: dict[str, GroupParts], *, whole: bool = True, brokers: str = "broker-a", waiting: str = ""
) -> RocketMQLook:
    return RocketMQLook(groups, frozenset(waiting.split()), frozenset(brokers.split()), whole)


def a_round(number: int, seen: RocketMQLook, memory: RocketMQMemory, filters: Filters | None = None) -> RoundOfGroups:
    time = _START + number * _INTERVAL
    return round_of_groups("prod", ("ns:9876",), number, time, seen, memory, filters or Filters(), _HEARTBEAT)


def events(told: RoundOfGroups) -> dict[str, tuple[str | None, bool]]:
    """Why it is gone, and whether it is idle, of each group with an event."""
    found = {}
    for key, event in told.events:
        assert isinstance(event, RocketMQGroupEvent)
        assert decode_event(encode_event(event)) == event
        assert key == event.group
        found[key] = (event.gone, event.idle)
    return found


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
    assert events(a_round(1, silent, first.memory)) == {"a": (None, False)}
    assert events(a_round(1, look(gone), first.memory)) == {"a": (None, False)}
    # A broker that has been away for a day was taken away.
    later = replace(first.memory, brokers={"broker-a": _START, "broker-b": _START - _DAY})
    assert events(a_round(1, look(gone), later)) == {"a": ("deleted", False)}


def test_a_group_that_the_filters_exclude_now_is_filtered() -> None:
    first = a_round(0, look({"a": group(members=1)}), RocketMQMemory())
    second = a_round(1, look({"a": group(members=1)}), first.memory, Filters(ignore_groups=("a",)))
    assert (events(second), second.memory.groups) == ({"a": ("filtered", False)}, frozenset())


def test_a_group_without_members_rests_after_twelve_rounds_and_is_told_once_in_a_heartbeat() -> None:
    memory, told = RocketMQMemory(), []
    for number in range(75):
        this = a_round(number, look({"a": group(), "b": group(members=1)}), memory)
        memory = this.memory
        told.append(events(this).get("a"))
        assert this.untold == (told[-1] is None)
        assert "b" in events(this)
    assert told[: IDLE_ROUNDS + 1] == [(None, False)] * IDLE_ROUNDS + [(None, True)]
    assert told[IDLE_ROUNDS + 1 :].count((None, True)) == 1
    assert told.count(None) == 75 - IDLE_ROUNDS - 2
    assert memory.quiet == {"a"}
    changed = a_round(75, look({"a": group(end=6)}), memory)
    [(_, event)] = changed.events
    assert isinstance(event, RocketMQGroupEvent)
    assert (event.idle, event.rested) == (False, (_START, _START + 74 * _INTERVAL))


def test_a_quiet_group_that_was_not_looked_at_stays_known() -> None:
    memory = RocketMQMemory()
    for number in range(IDLE_ROUNDS + 2):
        memory = a_round(number, look({"a": group()}), memory).memory
    this = a_round(20, look({}, waiting="a"), memory)
    assert (events(this), this.untold, this.memory.groups) == ({}, 1, {"a"})
    assert this.memory.rest.rounds == memory.rest.rounds


def test_a_new_probe_recalls_groups_and_brokers() -> None:
    first = a_round(0, look({"a": group(members=1), "b": group()}), RocketMQMemory())
    second = a_round(1, look({"a": group(members=1), "b": group(there=False)}), first.memory)
    closed = RoundSeen(
        v=1,
        cluster="prod",
        probe="p",
        interval_ms=_INTERVAL,
        round=1,
        time=_START + _INTERVAL,
        log=(),
        log_end=(),
        events={},
        groups=2,
        written=2,
        seen_by="rocketmq",
    )
    memory = recall(closed, [event for _, event in second.events], [event for _, event in first.events])
    assert memory.groups == second.memory.groups == {"a"}
    assert memory.brokers == {"broker-a": _START + _INTERVAL}


def test_an_event_that_no_record_could_hold_is_cut_and_says_so() -> None:
    member = MemberSeen("m@1", OK)
    queues = QueuesSeen("broker-a", OK, *[tuple(range(10**15, 10**15 + 60_000))] * 3)
    topics = tuple(TopicSeen(f"t{number}", (), (queues,)) for number in range(6))
    large = replace(group(members=1), members=(member,), topics=topics)
    [(_, event)] = a_round(0, look({"a": large}), RocketMQMemory()).events
    assert isinstance(event, RocketMQGroupEvent)
    assert (event.cut, len(event.topics), event.topics[0].queues) == (("queues",), 6, ())
