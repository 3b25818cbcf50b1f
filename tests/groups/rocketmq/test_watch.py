"""For how long rounds have shown something, and how much is watched at once."""

from __future__ import annotations

from streaming.groups.rocketmq.owners import Watch, found_after
from streaming.groups.rocketmq.state import RocketMQState


def rounds(mine: RocketMQState, *elapsed: int, seen: bool = True) -> list[int]:
    """What each of some rounds says of the same thing."""
    said = []
    for at in elapsed:
        watch = Watch(mine, at)
        if seen:
            said.append(watch.see("this"))
        mine.watched = watch.now
    return said


def test_what_rounds_show_lasts_from_the_first_of_them() -> None:
    assert rounds(RocketMQState(), 1_000, 1_500, 9_000) == [-1, 500, 8_000]


def test_a_round_that_does_not_show_it_forgets_it() -> None:
    mine = RocketMQState()
    rounds(mine, 1_000, 2_000)
    rounds(mine, 3_000, seen=False)
    assert rounds(mine, 4_000, 5_000) == [-1, 1_000]


def test_two_rounds_at_the_same_time_have_shown_it_for_no_time_and_a_clock_that_goes_back_begins_again() -> None:
    assert rounds(RocketMQState(), 1_000, 1_000, 999, 1_999) == [-1, 0, -1, 1_000]


def test_a_round_counts_once_however_often_it_shows_the_same() -> None:
    mine = RocketMQState()
    rounds(mine, 1_000)
    assert mine.watched["this"].rounds == 1
    watch = Watch(mine, 2_000)
    assert [watch.see("this"), watch.see("this")] == [1_000, 1_000]
    assert watch.now["this"].rounds == 2


def test_the_longest_of_some_kinds_is_that_of_what_this_round_shows() -> None:
    mine = RocketMQState()
    first = Watch(mine, 1_000)
    first.see("held twice 1")
    first.see("gone 1")
    first.see("other 1")
    mine.watched = first.now
    second = Watch(mine, 3_000)
    assert second.longest(("held twice", "gone")) == -1
    second.see("held twice 2")
    assert second.longest(("held twice", "gone")) == 0
    second.see("gone 1")
    second.see("other 1")
    assert (second.longest(("held twice", "gone")), second.longest(("held twice",))) == (2_000, 0)
    assert (second.is_known("held twice 1"), second.is_known("held twice 2")) == (True, False)


def test_a_thousand_things_are_watched_at_once_for_each_finding() -> None:
    watch = Watch(RocketMQState(), 1_000)
    for number in range(999):
        watch.see(f"doubly_held {number}")
    watch.see("doubly_held 998")
    assert watch.has_room("doubly_held")
    watch.see("doubly_held 999")
    assert not watch.has_room("doubly_held")
    assert watch.has_room("held_by_nobody")


def test_a_finding_is_shown_from_its_time_on() -> None:
    young, old = found_after("this", 4_999, 5_000, "why", 100_000), found_after("this", 5_000, 5_000, "why", 100_000)
    assert (young.shown, young.since, old.shown, old.since) == (False, 95_001, True, 95_000)
    assert found_after("this", -1, 5_000, "why", 100_000).since == 100_000
