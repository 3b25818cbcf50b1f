"""What the records of other probes say about whose turn it is; times in seconds, an interval of 10 s."""

from __future__ import annotations

import pytest

from streaming.config import Thresholds
from streaming.probe import Probe
from streaming.probe.rocketmq import RocketMQProbe
from streaming.probe.standby import Others, RoundsRecord, patience_s, record_of
from streaming.probe.standby.others import RecordKind
from streaming.probe.writer import RoundInterval
from streaming.records import RoundClosed, RoundOpened

PATIENCE = 25.0


def make_others() -> Others:
    return Others("me", RoundInterval(10_000), Probe.LEAST_ROUND_S)


def opened(offset: int, probe: str = "other", number: int | None = None) -> RoundsRecord:
    return RoundsRecord(offset, 0, RecordKind.OPENED, probe, offset if number is None else number)


def closed(offset: int, number: int, probe: str = "other") -> RoundsRecord:
    return RoundsRecord(offset, 0, RecordKind.CLOSED, probe, number)


def ended(offset: int, probe: str = "other") -> RoundsRecord:
    return RoundsRecord(offset, 0, RecordKind.ENDED, probe, offset)


def holder(others: Others, now: float) -> str | None:
    run = others.holder(now)
    return None if run is None else run.probe


def test_where_nobody_makes_rounds_we_may() -> None:
    assert holder(make_others(), 0.0) is None


def test_our_own_records_say_nothing_about_others() -> None:
    others = make_others()
    others.saw(opened(0, "me"), 0.0)
    others.saw(closed(1, 0, "me"), 0.5)
    assert holder(others, 1.0) is None


def test_a_probe_that_makes_rounds_is_stood_by_for() -> None:
    others = make_others()
    others.saw(opened(0), 0.0)
    others.saw(closed(1, 0), 1.0)
    assert holder(others, 9.0) == "other"


def test_after_the_mark_of_its_end_the_next_round_is_due_when_its_own_would_have_been() -> None:
    others = make_others()
    others.saw(opened(0), 100.0)
    others.saw(closed(1, 0), 101.0)
    others.saw(ended(2), 104.0)
    assert (holder(others, 104.0), others.due_at) == (None, 110.0)


def test_a_round_that_was_given_up_at_the_end_is_due_at_once() -> None:
    others = make_others()
    others.saw(opened(0), 100.0)
    others.saw(closed(1, 0), 101.0)
    others.saw(opened(2, number=0), 110.0)
    others.saw(ended(3), 110.4)
    assert (holder(others, 110.4), others.due_at) == (None, 110.0)


@pytest.mark.parametrize(("now", "expected"), [(25.9, "other"), (26.1, None)])
def test_a_probe_that_closes_no_round_is_dead_after_the_patience(now: float, expected: str | None) -> None:
    others = make_others()
    others.saw(opened(0), 0.0)
    others.saw(closed(1, 0), 1.0)
    assert holder(others, now) == expected


def test_a_probe_that_died_in_the_middle_of_a_round_is_dead_as_soon() -> None:
    others = make_others()
    others.saw(opened(0), 0.0)
    others.saw(closed(1, 0), 1.0)
    others.saw(opened(2, number=0), 10.0)
    assert (holder(others, 25.9), holder(others, 26.1)) == ("other", None)


def test_a_late_round_that_was_just_opened_is_waited_for_but_not_for_ever() -> None:
    others = make_others()
    others.saw(opened(0), 0.0)
    others.saw(closed(1, 0), 1.0)
    for number, at in ((2, 24.0), (3, 36.0), (4, 48.0)):
        others.saw(opened(number, number=number), at)
    # (It opens rounds and closes none.)
    assert (holder(others, 26.1), holder(others, 50.9), holder(others, 51.1)) == ("other", "other", None)


def test_an_outage_of_the_topic_is_no_silence_of_the_probe() -> None:
    others = make_others()
    others.saw(opened(0), 0.0)
    others.saw(closed(1, 0), 1.0)
    others.blind(60.0)
    assert (holder(others, 84.9), holder(others, 85.1)) == ("other", None)


def test_of_two_runs_the_older_one_goes_on() -> None:
    others = make_others()
    others.saw(opened(40, number=7), 0.0)
    elder = others.elder(number=30, since=35)
    assert elder is not None
    assert elder.probe == "other"
    assert others.elder(number=6, since=35) is None


def test_an_older_run_without_a_new_round_stops_nobody() -> None:
    others = make_others()
    others.saw(opened(40, number=7), 0.0)
    assert others.elder(number=45, since=45) is None


def test_an_older_run_that_has_ended_since_stops_nobody() -> None:
    others = make_others()
    others.saw(opened(40, number=7), 0.0)
    others.saw(ended(41), 0.1)
    assert others.elder(number=30, since=35) is None


def record(since: int | None = None, *, ends: bool = False) -> RoundOpened:
    return RoundOpened(1, "prod", "p", 10_000, since=since, ends=ends)


@pytest.mark.parametrize(("since", "number"), [(None, 40), (41, 40), (7, 7)])
def test_a_run_begins_where_its_record_says_but_never_behind_it(since: int | None, number: int) -> None:
    assert record_of(40, 5, record(since=since)).number == number


def test_a_closing_record_and_a_mark_are_told_apart_from_openings() -> None:
    closing = RoundClosed(1, "prod", "p", 10_000, 38, 4, (1,), (1,), {}, 0, 0)
    assert record_of(39, 5, closing).kind == RecordKind.CLOSED
    assert record_of(40, 5, record(ends=True)).kind == RecordKind.ENDED


@pytest.mark.parametrize("interval_s", [0.2, 1.0, 2.0, 5.0, 6.7, 7.0, 10.0, 30.0, 60.0, 600.0])
def test_who_takes_over_from_a_dead_probe_closes_a_round_before_there_is_silence(interval_s: float) -> None:
    patience = patience_s(interval_s, Probe.LEAST_ROUND_S)
    # From the dead probe's last closed round: the patience, a look of a second, and two seconds for the first round.
    assert patience + 3 <= Thresholds.load().silent_after_s(int(interval_s * 1000)), interval_s
    # A living one closes a round within this time, as long as it takes no longer than the interval.
    assert patience > max(2 * interval_s, Probe.LEAST_ROUND_S)


@pytest.mark.parametrize("interval_s", [10.0, 30.0, 60.0])
def test_the_same_holds_for_rocketmq_from_the_default_interval_on(interval_s: float) -> None:
    patience = patience_s(interval_s, RocketMQProbe.LEAST_ROUND_S)
    assert patience + 3 <= Thresholds.load().silent_after_s(int(interval_s * 1000))
