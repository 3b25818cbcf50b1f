from __future__ import annotations

from streaming.probe.kafka.cluster_topics import (
    ABSENT_ROUNDS,
    TOPICS_A_ROUND,
    AskedTopics,
    TopicTurns,
    gone,
    in_turn,
    lists,
    turns_after,
)
from streaming.records import ClusterTopicObservation

INTERVAL = 10_000
HEARTBEAT = 600_000
START = 1_767_225_600_000


def everything(_: str) -> bool:
    return True


def asked(names: list[str], listing: frozenset[str] | None) -> AskedTopics:
    return AskedTopics(
        {name: ClusterTopicObservation(-1, -1, end=(1,), start=(0,), leaders=(1,)) for name in names}, listing
    )


def test_each_topic_is_asked_once_in_a_heartbeat_and_few_in_a_round() -> None:
    names = frozenset(f"topic-{number}" for number in range(10_000))
    turns, times, most = TopicTurns(), dict.fromkeys(names, 0), 0
    for number in range(120):
        time = START + number * INTERVAL
        listing = names if lists(turns, time, HEARTBEAT) else None
        due = in_turn(turns, listing, time, HEARTBEAT)
        if number >= 60:
            most = max(most, len(due))
            for name in due:
                times[name] += 1
        turns = turns_after(turns, asked(due, listing), (), time)
    assert set(times.values()) == {1}
    # 167 is an even share; a start asks for a thousand at once.
    assert most < 300
    assert len(in_turn(TopicTurns(), names, START, HEARTBEAT)) == TOPICS_A_ROUND


def test_a_topic_is_gone_when_it_was_absent_in_some_rounds_in_a_row() -> None:
    turns = TopicTurns(START, {"orders": START})
    absent = AskedTopics({"orders": ClusterTopicObservation(-1, -1, gone="deleted")})
    for number in range(1, ABSENT_ROUNDS):
        assert gone(turns, absent, everything) == {}
        turns = turns_after(turns, absent, (), START + number * INTERVAL)
        assert in_turn(turns, None, START + number * INTERVAL, HEARTBEAT) == ["orders"]
    assert gone(turns, absent, everything) == {"orders": "deleted"}
    assert turns_after(turns, absent, {"orders"}, START).told == {}


def test_a_topic_that_comes_back_was_never_gone() -> None:
    turns = TopicTurns(START, {"orders": START}, {"orders": ABSENT_ROUNDS - 1})
    back = asked(["orders"], None)
    assert gone(turns, back, everything) == {}
    assert turns_after(turns, back, (), START + INTERVAL).absent == {}


def test_a_topic_that_no_event_tells_of_needs_no_end() -> None:
    turns = TopicTurns(START, {"orders": -1}, {"orders": ABSENT_ROUNDS})
    assert gone(turns, AskedTopics({"orders": ClusterTopicObservation(-1, -1, gone="not_visible")}), everything) == {}


def test_topics_that_the_filters_leave_out_now_end_with_the_first_round_of_a_new_probe() -> None:
    recalled = TopicTurns(told={"orders": START, "audit": START})
    assert gone(recalled, AskedTopics(), lambda topic: topic != "audit") == {"audit": "filtered"}
    assert gone(TopicTurns(START, recalled.told), AskedTopics(), lambda topic: topic != "audit") == {}


def test_a_clock_that_was_ahead_does_not_stop_the_looks() -> None:
    turns = TopicTurns(START + 10 * HEARTBEAT, {"orders": START + 10 * HEARTBEAT})
    assert lists(turns, START, HEARTBEAT)
    assert in_turn(turns, None, START, HEARTBEAT) == ["orders"]
