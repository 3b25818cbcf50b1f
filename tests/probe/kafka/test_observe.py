"""The events of a round's groups, given its observations, and what holds back the log, without Kafka."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from streaming.config import Filters
from streaming.events import GroupEvent
from streaming.probe.idle import SETTLED_ROUNDS, SPREAD_ROUNDS
from streaming.probe.kafka.cluster_topics import AskedTopics
from streaming.probe.kafka.holds import (
    HELD_ROUNDS,
    BlockedPartition,
    advance_holds,
    reported_holds,
    with_producers,
)
from streaming.probe.kafka.look import Description, GroupsSeen
from streaming.probe.kafka.memory import Memory, memory_after, recall, topics_of_groups
from streaming.probe.kafka.observe import cluster_topic_events
from streaming.records import (
    MOST_READERS,
    ClusterTopicObservation,
    GroupObservation,
    HeldPartition,
    RoundClosed,
    UnreadTimestamp,
)
from tests.probe.kafka.build import ALL, LOG, MakeHead, classic, events_of, look_at, topic


def test_a_group_has_the_topics_it_subscribes_to_and_those_it_committed_for() -> None:
    described = {"g": Description("Stable", "consumer", frozenset({"orders"}), complete=True)}
    found = topics_of_groups(["g"], described, {"g": frozenset({"old"})}, Memory({"g": frozenset({"older"})}), ALL)
    assert found == {"g": ("old", "orders")}


def test_a_rebalance_does_not_make_topics_vanish() -> None:
    described = {"g": Description("PreparingRebalance", "consumer", frozenset(), complete=False)}
    found = topics_of_groups(["g"], described, {}, Memory({"g": frozenset({"orders"})}), ALL)
    assert found == {"g": ("orders",)}


def test_ignored_topics_are_not_reported() -> None:
    found = topics_of_groups(
        ["g"], {}, {"g": frozenset({"a", "b", "audit-1"})}, Memory(), Filters(ignore_topics=("/^audit/", "b"))
    )
    assert found == {"g": ("a",)}


def test_a_restarted_probe_knows_what_the_stopped_one_knew(make_head: MakeHead) -> None:
    head = make_head(holds=(None, BlockedPartition(20, 300, HELD_ROUNDS + 1), None))
    look = look_at({"a": topic("a", [5], [4])}, g=("a",), h=())
    events = events_of(head, look, Memory())
    closed = RoundClosed(
        1, "prod", "p", 100, 7, 1_000, LOG, (10, 25, 30), {}, 2, 3, holds=(HeldPartition(1, 300, 20, 25, 1),)
    )
    recalled = recall(closed, events)
    assert recalled.topics == memory_after(head, look, Memory()).topics == {"g": ("a",), "h": ()}
    assert recalled.time == head.time == memory_after(head, look, Memory()).time
    assert recalled.holds == (None, BlockedPartition(20, 300, HELD_ROUNDS + 1), None)


def told_of(
    make_head: MakeHead, look: GroupsSeen, memory: Memory | None = None, hidden: str | None = None
) -> ClusterTopicObservation:
    asked = AskedTopics({"a": ClusterTopicObservation(-1, -1, end=(1,), start=(0,), leaders=(1,))}, hidden=hidden)
    (event,) = cluster_topic_events(make_head(0, 0), asked, {}, look, memory or Memory())
    assert event.key == "a"
    return event.saw


def test_a_topic_of_the_cluster_names_the_first_of_its_readers(make_head: MakeHead) -> None:
    look = look_at({}, **{f"g{number:02}": ("a",) for number in range(MOST_READERS + 5)}, other=("b",))
    event = told_of(make_head, look)
    assert (event.groups, event.readers) == (MOST_READERS + 5, tuple(f"g{number:02}" for number in range(MOST_READERS)))


def test_readers_may_be_hidden_where_the_topics_of_a_group_are_not_known(make_head: MakeHead) -> None:
    look = replace(look_at({}, g=("b",)), groups={"g": classic("g", "Empty")})
    known = replace(look, committed={"g": 1})
    assert told_of(make_head, known).hidden is None
    assert told_of(make_head, known, hidden="filtered").hidden == "filtered"
    assert told_of(make_head, look).hidden == "undescribed"
    share = replace(classic("g"), group_type="share")
    assert told_of(make_head, replace(known, groups={"g": share})).hidden is None
    assert told_of(make_head, replace(look, groups={"g": share})).hidden == "share_groups"


@pytest.mark.parametrize(
    ("state", "complete", "remembered", "hidden"),
    [
        ("Stable", True, False, None),
        ("Stable", False, True, "undescribed"),
        ("PreparingRebalance", False, True, None),
        ("PreparingRebalance", False, False, "undescribed"),
    ],
)
def test_a_rebalance_hides_readers_only_of_a_group_that_was_not_there_before(
    make_head: MakeHead, state: str, complete: bool, remembered: bool, hidden: str | None
) -> None:
    description = Description(state, "consumer", frozenset({"b"}), complete)
    look = replace(
        look_at({}, g=("b",)), groups={"g": classic("g", state)}, descriptions={"g": description}, committed={"g": 1}
    )
    memory = Memory({"g": frozenset({"b"})} if remembered else {})
    assert told_of(make_head, look, memory).hidden == hidden


def test_a_group_is_told_with_its_topics(make_head: MakeHead) -> None:
    topics = {"a": topic("a", [5], [4], topic_id="id-a"), "b": topic("b")}
    assert events_of(make_head(), look_at(topics, g=("a", "b")), Memory()) == [
        GroupEvent(
            1,
            "prod",
            "g",
            GroupObservation(
                round=7,
                time=1_000,
                log_partition=-1,
                log_position=-1,
                state="Stable",
                protocol_type="consumer",
                group_type="classic",
                gone=None,
                held_since=None,
                topics=(topics["a"], topics["b"]),
                cluster_id="kafka-id",
            ),
        )
    ]


def test_a_topic_that_may_not_be_seen_is_not_said_to_be_missing(make_head: MakeHead) -> None:
    [event] = events_of(make_head(), look_at({}, g=("secret",)), Memory())
    assert event.saw.topics == ()


def test_the_state_told_with_the_members_wins_over_the_listed_one(make_head: MakeHead) -> None:
    look = GroupsSeen(
        {"g": classic("g", "Stable")},
        {"g": ()},
        {"g": Description("PreparingRebalance", "", frozenset(), complete=False)},
        {},
    )
    [event] = events_of(make_head(), look, Memory())
    assert (event.saw.state, event.saw.protocol_type) == ("PreparingRebalance", "consumer")


@pytest.mark.parametrize(("filters", "reason"), [(Filters(), "deleted"), (Filters(ignore_groups=("g",)), "filtered")])
def test_a_group_of_the_round_before_that_is_not_seen_is_gone(
    make_head: MakeHead, filters: Filters, reason: str
) -> None:
    [event] = events_of(make_head(), look_at({}), Memory({"g": frozenset({"orders"})}), filters)
    assert (event.key, event.saw.gone) == ("g", reason)


def test_a_group_is_gone_once(make_head: MakeHead) -> None:
    memory = memory_after(make_head(), look_at({}), Memory())
    assert events_of(make_head(8), look_at({}), memory) == []


def test_timestamps_of_unread_records_are_told_when_they_are_news_and_once_in_a_period(make_head: MakeHead) -> None:
    topics = {"a": topic("a", [5])}
    first = {"g": {"a": {0: UnreadTimestamp(2, 1_000, -1, own=True)}}}
    later = {"g": {"a": {0: UnreadTimestamp(3, 1_001, -1, own=True)}}}
    memory, told = Memory(), []
    for number in range(180):
        unread = {} if number == 0 else first if number < 100 else later
        head, look = make_head(number, 10_000 * number), replace(look_at(topics, g=("a",)), unread=unread)
        [event] = events_of(head, look, memory)
        memory = memory_after(head, look, memory)
        if event.saw.topics[0].unread:
            assert event.saw.topics[0].unread == unread["g"]["a"]
            told.append(number)
    # Its moment comes every 60 rounds.
    assert told[0] == 1
    assert 100 in told
    others = [number for number in told if number not in {1, 100}]
    assert [later - earlier for earlier, later in pairwise(others)] == [60] * (len(others) - 1)
    assert len(others) in {2, 3}


def test_an_idle_group_is_reported_anew_when_its_timestamps_are_found(make_head: MakeHead) -> None:
    topics = {"a": topic("a", [5])}
    memory, reported = Memory(), []
    for number in range(60):
        unread = {"g": {"a": {0: UnreadTimestamp(2, 1_000, -1, own=True)}}} if number >= 30 else {}
        groups = {"g": classic("g", "Empty")}
        look = replace(look_at(topics, g=("a",)), groups=groups, unread=unread)
        head = make_head(number, 1_000 + number)
        reported += [number for event in events_of(head, look, memory) if event.saw.topics[0].unread]
        memory = memory_after(head, look, memory)
    # When it is found, and with the reports of the group as idle.
    assert reported[:2] == [30, 31]
    assert SETTLED_ROUNDS <= reported[2] - 30 < SETTLED_ROUNDS + SPREAD_ROUNDS


def test_an_offset_that_stands_still_below_the_end_is_held_after_more_than_three_rounds(make_head: MakeHead) -> None:
    holds: tuple[BlockedPartition | None, ...] = ()
    said = []
    for number in range(1, HELD_ROUNDS + 3):
        holds = advance_holds(holds, (10, 15, 30), (10, 20, 30), number * 100)
        [event] = events_of(make_head(holds=holds), look_at({}, g=()), Memory())
        said.append(event.saw.held_since)
    assert said == [None, None, None, 100, 100]


def test_transactions_back_to_back_are_no_hold() -> None:
    holds: tuple[BlockedPartition | None, ...] = ()
    for number in range(10):
        holds = advance_holds(holds, (number,), (number + 5,), number)
    assert holds == (BlockedPartition(9, 9, 1),)


@pytest.mark.parametrize(
    ("before", "stable", "end", "after"),
    [
        pytest.param((BlockedPartition(10, 100, 9),), (20,), (20,), (None,), id="it ends where all is readable"),
        pytest.param((), (25,), (20,), (None,), id="commits between the two questions are none"),
        pytest.param(
            *((BlockedPartition(1, 5, 1),), (1, 7), (2, 7), (BlockedPartition(1, 5, 2), None)),
            id="a log that got more partitions is followed",
        ),
    ],
)
def test_a_hold_is_what_two_rounds_show_of_a_partition(
    before: tuple[BlockedPartition, ...],
    stable: tuple[int, ...],
    end: tuple[int, ...],
    after: tuple[BlockedPartition | None, ...],
) -> None:
    assert advance_holds(before, stable, end, 500) == after


def test_who_holds_the_log_is_told_with_each_group_and_with_the_round(make_head: MakeHead) -> None:
    young, old = BlockedPartition(10, 900, 1), BlockedPartition(20, 300, HELD_ROUNDS + 1)
    holds = with_producers((young, old, None), {1: 4001}, {4001: "payments-3"})
    [event] = events_of(make_head(holds=holds), look_at({}, g=()), Memory())
    assert (event.saw.held_since, event.saw.held_by_producer, event.saw.held_by) == (300, 4001, "payments-3")
    told = reported_holds(holds, (11, 25, 30), [1, 1, 2])
    assert told == (HeldPartition(1, 300, 20, 25, 2, 4001, "payments-3"),)
    # It is known from then on, also to a restarted probe.
    assert advance_holds(holds, LOG, (11, 21, 30), 1_100)[1] == BlockedPartition(20, 300, 5, 4001, "payments-3")
    closed = RoundClosed(1, "prod", "p", 100, 7, 1_000, LOG, (11, 25, 30), {}, 0, 0, holds=told)
    assert recall(closed, []).holds == (
        BlockedPartition(10, 1_000, 1),
        BlockedPartition(20, 300, 4, 4001, "payments-3"),
        None,
    )


def test_a_restarted_probe_counts_a_young_hold_from_the_last_round() -> None:
    closed = RoundClosed(1, "prod", "p", 100, 7, 1_000, (10,), (12,), {}, 0, 0)
    assert recall(closed, []).holds == (BlockedPartition(10, 1_000, 1),)
