"""The events of a round's groups, given its observations, without Kafka."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from streaming.config import Filters
from streaming.events import GroupEvent, GroupGone, TopicEvent, UnreadTimestamp
from streaming.probe.idle import IDLE_ROUNDS
from streaming.probe.kafka.look import Description, GroupsSeen, Topic
from streaming.probe.kafka.memory import Memory, memory_after
from tests.probe.kafka.build import MakeHead, classic, events_of, look_at


def test_a_group_comes_before_its_topics_and_says_how_many_follow(make_head: MakeHead) -> None:
    topics = {"a": Topic(1, "id-a", (5,), (4,), (0,)), "b": Topic(None)}
    events = events_of(make_head(), look_at(topics, g=("a", "b")), Memory())
    assert events == [
        (
            "g",
            GroupEvent(
                v=1,
                cluster="prod",
                round=7,
                time=1_000,
                group="g",
                log_partition=1,  # "g".hashCode() is 103, and 103 % 3 is 1
                log_position=20,
                topics=2,
                state="Stable",
                protocol_type="consumer",
                group_type="classic",
                held_since=None,
                cluster_id="kafka-id",
            ),
        ),
        ("g", TopicEvent(1, "prod", 7, "g", "a", 1, "id-a", (5,), (4,), (0,), None)),
        ("g", TopicEvent(1, "prod", 7, "g", "b", None, None, (), (), (), None)),
    ]


def test_a_topic_that_may_not_be_seen_is_not_said_to_be_missing(make_head: MakeHead) -> None:
    [(_, event)] = events_of(make_head(), look_at({}, g=("secret",)), Memory())
    assert isinstance(event, GroupEvent)
    assert event.topics == 0


def test_the_state_told_with_the_members_wins_over_the_listed_one(make_head: MakeHead) -> None:
    look = GroupsSeen(
        {"g": classic("g", "Stable")},
        {"g": ()},
        {"g": Description("PreparingRebalance", "", frozenset(), complete=False)},
        {},
    )
    [(_, event)] = events_of(make_head(), look, Memory())
    assert isinstance(event, GroupEvent)
    assert (event.state, event.protocol_type) == ("PreparingRebalance", "consumer")


def test_a_group_of_the_round_before_that_is_not_seen_is_gone(make_head: MakeHead) -> None:
    events = events_of(make_head(), look_at({}), Memory({"g": frozenset({"orders"})}))
    assert events == [("g", GroupGone(1, "prod", 7, 1_000, "g", 1, 20, "deleted"))]


def test_a_group_that_the_filters_exclude_now_is_gone_for_that_reason(make_head: MakeHead) -> None:
    [(_, event)] = events_of(make_head(), look_at({}), Memory({"g": frozenset()}), Filters(ignore_groups=("g",)))
    assert isinstance(event, GroupGone)
    assert event.reason == "filtered"


def test_a_group_is_gone_once(make_head: MakeHead) -> None:
    memory = memory_after(make_head(), look_at({}), Memory())
    assert events_of(make_head(8), look_at({}), memory) == []


def test_timestamps_of_unread_records_are_told_when_they_are_news_and_once_in_a_period(make_head: MakeHead) -> None:
    topics = {"a": Topic(1, "id-a", (5,), (5,), (0,))}
    first = {"g": {"a": (UnreadTimestamp(0, 2, 1_000, -1, own=True),)}}
    later = {"g": {"a": (UnreadTimestamp(0, 3, 1_001, -1, own=True),)}}
    memory, told = Memory(), []
    for number in range(180):
        unread = {} if number == 0 else first if number < 100 else later
        head, look = make_head(number, 10_000 * number), replace(look_at(topics, g=("a",)), unread=unread)
        [(_, event)] = [(group, e) for group, e in events_of(head, look, memory) if isinstance(e, TopicEvent)]
        memory = memory_after(head, look, memory)
        if event.unread:
            assert event.unread == unread["g"]["a"]
            told.append(number)
    # Its moment comes every 60 rounds.
    assert told[0] == 1
    assert 100 in told
    others = [number for number in told if number not in {1, 100}]
    assert [later - earlier for earlier, later in pairwise(others)] == [60] * (len(others) - 1)
    assert len(others) in {2, 3}


def test_an_idle_group_is_reported_anew_when_its_timestamps_are_found(make_head: MakeHead) -> None:
    topics = {"a": Topic(1, "id-a", (5,), (5,), (0,))}
    memory, reported = Memory(), []
    for number in range(60):
        unread = {"g": {"a": (UnreadTimestamp(0, 2, 1_000, -1, own=True),)}} if number >= 30 else {}
        groups = {"g": classic("g", "Empty")}
        look = replace(look_at(topics, g=("a",)), groups=groups, unread=unread)
        head = make_head(number, 1_000 + number)
        reported += [number for _, e in events_of(head, look, memory) if isinstance(e, TopicEvent) and e.unread]
        memory = memory_after(head, look, memory)
    # When it is found, and when the group is idle again.
    assert reported == [30, 30 + IDLE_ROUNDS]
