"""What a round reports of groups whose log is not read: news, everything once in a while, and never too much."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from streaming.events import ClassicMemberSeen, ClassicSeen, CommitsSeen
from streaming.probe.kafka import seen as told_by
from streaming.probe.kafka.seen import LastReport, SeenGroup, SeenRound, tell

OFFSETS = {("x", 0): 5, ("x", 1): 7}


def members(*names: str, subscription: bytes = b"s") -> ClassicSeen:
    of = tuple(ClassicMemberSeen(name, subscription, b"a") for name in names)
    return ClassicSeen(1, "", 0, "g", "consumer", "range", of)


def look(group: SeenGroup, told: Mapping[str, LastReport] | None = None, whole: bool = False) -> SeenRound:
    return tell("c", 8, {"g": group}, told or {}, ["g"] if whole else [], [])


def test_the_first_look_tells_everything() -> None:
    found = look(SeenGroup(True, members("a"), OFFSETS))
    assert found.telling["g"].looked
    first, commits = found.telling["g"].events
    assert isinstance(first, ClassicSeen)
    assert (first.cluster, first.round, [m.id for m in first.members]) == ("c", 8, ["a"])
    assert commits == CommitsSeen(1, "c", 8, "g", True, {"x": ((0, 5), (1, 7))})


def test_then_only_news_are_told_and_everything_when_it_is_due() -> None:
    before = look(SeenGroup(True, members("a"), OFFSETS)).told
    assert look(SeenGroup(True, members("a"), OFFSETS), before).telling["g"].events == ()
    moved = look(SeenGroup(True, members("a"), {("x", 0): 6}), before)
    assert moved.telling["g"].events == (CommitsSeen(1, "c", 8, "g", False, {"x": ((0, 6), (1, -1))}),)
    again = look(SeenGroup(True, members("a"), OFFSETS), before, whole=True)
    assert [type(event) for event in again.telling["g"].events] == [ClassicSeen, CommitsSeen]


def test_members_after_a_rebalance_are_told_even_if_they_are_the_same() -> None:
    before = look(SeenGroup(True, members("a"), OFFSETS)).told
    rebalancing = look(SeenGroup(True, None, OFFSETS), before)
    assert rebalancing.telling["g"].looked
    assert len(look(SeenGroup(True, members("a"), OFFSETS), rebalancing.told).telling["g"].events) == 1


def test_offsets_that_could_not_be_seen_are_not_gone() -> None:
    before = look(SeenGroup(True, members("a"), OFFSETS)).told
    hidden = look(SeenGroup(False, None, None), before)
    assert (hidden.telling["g"].events, hidden.telling["g"].looked) == ((), False)
    assert look(SeenGroup(True, members("a"), OFFSETS), hidden.told).telling["g"].events == ()


def test_a_membership_beyond_the_limit_is_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told_by, "MOST_TOLD", 1_000)
    [event] = look(SeenGroup(True, members("a", "b", subscription=b"x" * 1_000))).telling["g"].events
    assert isinstance(event, ClassicSeen)
    assert (event.members, event.more) == ((), 2)


def test_groups_beyond_the_limit_of_a_round_were_not_looked_at_and_come_with_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(told_by, "MOST_A_ROUND", 500)
    seen = {f"g{n}": SeenGroup(True, members("a", subscription=b"x" * 100)) for n in range(5)}
    told: Mapping[str, LastReport] = {}
    heard: set[str] = set()
    for number in range(0, 20, 2):
        found = tell("c", number, seen, told, [], [])
        now = {name for name, telling in found.telling.items() if telling.events}
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
        [event] = found.telling["g"].events
        assert isinstance(event, CommitsSeen)
        assert not event.whole
        got |= dict(event.offsets["x"])
        told = found.told
    assert got == {n: n for n in range(7)}
    assert look(SeenGroup(True, None, offsets), told).telling["g"].events == ()
