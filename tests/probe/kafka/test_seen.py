"""What a round reports of groups whose log is not read, and whose turn it is."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from streaming.probe.kafka import look as told_by
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
from streaming.probe.kafka.look import GroupMembers, LastReport, SeenGroup, SeenRound, report
from streaming.records import ClusterTopicObservation, Member, Seen, SeenClassic, SeenCommits

OFFSETS = {("x", 0): 5, ("x", 1): 7}


def members(*names: str, data: bytes = b"s") -> GroupMembers:
    of = tuple(Member(name, None, "", "", -1, -1, 1, (), (), None, None, data, ()) for name in names)
    return GroupMembers(hash(of), lambda: SeenClassic("consumer", "range", of))


def look(group: SeenGroup, told: Mapping[str, LastReport] | None = None, whole: bool = False) -> SeenRound:
    return report(8, {"g": group}, told or {}, ["g"] if whole else [], [])


def news(found: SeenRound, group: str = "g") -> tuple[bool, SeenCommits | None]:
    """Whether members were told, and the offsets."""
    return found.telling[group].classic is not None, found.telling[group].commits


def test_the_first_look_tells_everything() -> None:
    found = look(SeenGroup(True, members("a"), OFFSETS)).telling["g"]
    assert found == Seen(
        "admin",
        True,
        -1,
        members("a").read(),
        None,
        SeenCommits(True, {"x": ((0, 5), (1, 7))}),  # type: ignore[arg-type]
    )


def test_then_only_news_are_told_and_everything_when_it_is_due() -> None:
    before = look(SeenGroup(True, members("a"), OFFSETS)).told
    assert news(look(SeenGroup(True, members("a"), OFFSETS), before)) == (False, None)
    moved = look(SeenGroup(True, members("a"), {("x", 0): 6}), before)
    assert news(moved) == (False, SeenCommits(False, {"x": ((0, 6), (1, -1))}))
    again = look(SeenGroup(True, members("a"), OFFSETS), before, whole=True)
    assert news(again) == (True, SeenCommits(True, {"x": ((0, 5), (1, 7))}))


def test_members_after_a_rebalance_are_told_even_if_they_are_the_same() -> None:
    before = look(SeenGroup(True, members("a"), OFFSETS)).told
    rebalancing = look(SeenGroup(True, None, OFFSETS), before)
    assert rebalancing.telling["g"].looked
    assert news(look(SeenGroup(True, members("a"), OFFSETS), rebalancing.told)) == (True, None)


def test_offsets_that_could_not_be_seen_are_not_gone() -> None:
    before = look(SeenGroup(True, members("a"), OFFSETS)).told
    hidden = look(SeenGroup(False, None, None), before)
    assert hidden.telling["g"] == Seen("admin")
    assert news(look(SeenGroup(True, members("a"), OFFSETS), hidden.told)) == (False, None)


def test_a_membership_beyond_the_limit_is_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told_by, "MOST_TOLD", 1_000)
    found = look(SeenGroup(True, members("a", "b", data=b"x" * 1_000))).telling["g"]
    assert found.classic == SeenClassic("consumer", "range", (), more=2)


def test_groups_beyond_the_limit_of_a_round_were_not_looked_at_and_come_with_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(told_by, "MOST_A_ROUND", 500)
    seen = {f"g{n}": SeenGroup(True, members("a", data=b"x" * 100)) for n in range(5)}
    told: Mapping[str, LastReport] = {}
    heard: set[str] = set()
    for number in range(0, 20, 2):
        found = report(number, seen, told, [], [])
        now = {name for name, telling in found.telling.items() if telling.classic}
        assert len(now) < 5
        assert all(found.telling[name].looked == (name in now | heard) for name in seen)
        heard |= now
        told = found.told
    assert heard == set(seen)


def test_a_flood_of_offsets_comes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told_by, "MOST_OFFSETS", 3)
    offsets = {("x", n): n for n in range(7)}
    told: Mapping[str, LastReport] = {}
    got: dict[int, int] = {}
    for _ in range(3):
        found = look(SeenGroup(True, None, offsets), told)
        commits = found.telling["g"].commits
        assert not commits.whole
        got |= dict(commits.offsets["x"])
        told = found.told
    assert got == {n: n for n in range(7)}
    assert news(look(SeenGroup(True, None, offsets), told)) == (False, None)


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
