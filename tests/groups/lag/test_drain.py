"""When a group will have caught up, at its pace of the last minutes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streaming.groups.lag.totals import drained, shifted
from tests.groups.build import (
    SECOND,
    START,
    Life,
    make_commit,
    make_member,
    make_observation,
    make_record,
    make_topic,
    packed,
)


def told(end: Callable[[int], int], committed: Callable[[int], int], until: int, every: int = 10) -> list[float | None]:
    """`drain_seconds` after each round of ten seconds, of a group that commits every so many seconds."""
    life = Life()
    first = make_observation(2, make_topic("x", 1, end=end(0)), time=START + SECOND)
    life.take(make_commit(1, committed(0), topic="x"), first)
    found = []
    for second in range(10, until, 10):
        if second % every == 0:
            life.take(make_commit(second, committed(second), topic="x"))
        life.take(make_observation(second + 1, make_topic("x", 1, end=end(second))))
        found.append(life.rows.group_health[-1].drain_seconds)
    return found


def test_a_group_that_reads_twice_as_fast_as_is_produced_drains_its_backlog_at_the_difference() -> None:
    found = told(lambda s: 10_000 + 10 * s, lambda s: 20 * s, 400)
    assert found[:2] == [None, None]
    # 10,000 - 10 s behind at second s, and 10 a second less with each.
    assert [round(value or 0) for value in found[5:8]] == [940, 930, 920]
    assert found[-1] == pytest.approx(1_000 - 390, abs=3)


@pytest.mark.parametrize("reads", [0, 5, 10])
def test_a_group_that_reads_no_faster_than_is_produced_does_not_drain(reads: int) -> None:
    assert set(told(lambda s: 1_000 + 10 * s, lambda s: reads * s, 900)) == {None}


def test_a_group_that_commits_every_two_minutes_is_looked_at_over_ten() -> None:
    found = told(lambda s: 100_000 + 10 * s, lambda s: 20 * s, 2_000, every=120)
    assert all(value is not None for value in found[60:])
    assert all(value == pytest.approx(10_000 - 10 * at, rel=0.25) for at, value in enumerate(found) if at >= 60)


def test_a_group_that_stops_has_no_pace_after_ten_minutes_and_no_rows_from_then_on() -> None:
    found = told(lambda _: 10_000, lambda s: min(20 * s, 2_000), 1_200)
    assert found[9] is not None
    assert found[-1] is None
    life = Life.after(make_commit(1, 0, topic="x"))
    for second in range(10, 1_200, 10):
        if second <= 100:
            life.take(make_commit(second, 20 * second, topic="x"))
        life.take(make_observation(second + 1, make_topic("x", 1, end=10_000)))
    assert [(row.round_time - START) // SECOND for row in life.rows.group_health][-1] < 900


def test_a_group_that_keeps_up_has_nothing_to_drain_and_no_samples() -> None:
    life = Life()
    for second in range(10, 200, 10):
        life.take(make_commit(second - 1, 10 * second - 5, topic="x"))
        life.take(make_observation(second, make_topic("x", 1, end=10 * second)))
    assert {row.drain_seconds for row in life.rows.group_health} == {None}
    assert life.state.lag_sums == []


def test_sums_of_other_partitions_are_not_compared() -> None:
    assert drained([1, 0, 1_000, 60_000, 900], 2, 70_000, 500) == ([2, 70_000, 500], None)


def test_topics_that_the_group_no_longer_subscribes_to_do_not_count() -> None:
    life = Life.after(make_record(1, [make_member("a", ("y",))]), make_commit(2, 0, topic="x"))
    for second in range(10, 100, 10):
        life.take(make_commit(second, 20 * second, topic="x"))
        life.take(make_observation(second + 1, make_topic("x", 1, end=10_000), make_topic("y", 1, end=0)))
    assert {row.drain_seconds for row in life.rows.group_health} == {None}


def test_samples_are_few() -> None:
    samples: list[int] = []
    for now in range(0, 86_400_000, 10_000):
        samples, _ = drained(samples, 1, now, 10**9 - now)
        assert len(samples) <= 1 + 2 * 12


def test_records_that_were_deleted_unread_are_not_in_the_pace_of_a_group_that_goes_on_behind_them() -> None:
    life, found = Life(), []
    for second in range(10, 200, 10):
        # At 70 the first 100,000 are deleted, and from 80 on it is behind them, where it stands still.
        life.take(make_commit(second, 100_000 if second >= 80 else 0, topic="x"))
        start = packed([100_000 if second >= 70 else 0])
        life.take(make_observation(second + 1, make_topic("x", 1, end=200_000, log_start_offsets=start)))
        found.append(life.rows.group_health[-1].drain_seconds)
    assert set(found) == {None}


def test_sums_of_as_many_other_partitions_are_not_compared() -> None:
    life = Life.after(make_commit(1, 0, topic="x"), make_commit(2, 94_000, topic="y"))

    def subscribed(at: int, topic: str, number: int) -> None:
        record = make_record(at, (make_member("a", (topic,), {topic: (0,)}),), generation=number)
        topics = make_topic("x", 1, end=1_000_000), make_topic("y", 1, end=100_000)
        life.take(record, *(make_observation(at + 10 * n, *topics) for n in range(1, 8)))

    subscribed(10, "x", 1)
    subscribed(100, "y", 2)
    assert life.rows.group_health[-1].drain_seconds is None


def read_through_an_outage(*seconds: int) -> list[float | None]:
    """`drain_seconds` after each of these rounds of a group that reads 20 records a second of 100,000; none arrive.

    Elapsed time goes on by three intervals at the most, as in the source.
    """
    life, found = Life(), []
    before = elapsed = 0
    for second in seconds:
        elapsed, before = elapsed + min(second - before, 30), second
        topic = make_topic("x", 1, end=100_000)
        life.take(make_commit(second, 20 * second, topic="x"))
        life.take(make_observation(second + 1, topic, time=START + second * SECOND, elapsed=elapsed * SECOND))
        found.append(life.rows.group_health[-1].drain_seconds)
    return found


@pytest.mark.parametrize(
    ("seconds", "drains"),
    [
        # After 80 s without a round, at 20 records a second: 100,000 less 20 for each second, over 20.
        pytest.param((10, 20, 100, 110), [None, None, 4_900.0, 4_890.0], id="not read in three intervals"),
        # The first round after them cannot tell an outage from a wrong clock.
        pytest.param((10, 20, 320, 330, 340), [None, None, None, 4_670.0, 4_660.0], id="minutes without a round"),
        pytest.param(
            (10, 20, 30, 40, 50, *range(1_000, 1_060, 10)),
            [None, None, None, 4_960.0, 4_950.0, None, None, None, None, 3_960.0, 3_950.0],
            id="more than ten of them",
        ),
    ],
)
def test_what_was_read_while_no_round_came_was_read_in_all_that_time(
    seconds: tuple[int, ...], drains: list[float | None]
) -> None:
    assert read_through_an_outage(*seconds) == drains


def test_a_pace_is_looked_at_over_less_than_ten_minutes_without_a_round() -> None:
    assert drained([1, 0, 100], 1, 599_999, 50) == ([1, 0, 100, 599_999, 50], 600.0)
    assert drained([1, 0, 100], 1, 600_000, 50) == ([1, 600_000, 50], None)


def test_samples_keep_their_distance_when_all_times_were_wrong() -> None:
    assert shifted([7, 1_000, 50, 61_000, 40], 86_400_000) == [7, 86_401_000, 50, 86_461_000, 40]


def test_a_partition_whose_lag_is_not_known_does_not_end_the_pace_of_the_others() -> None:
    life, found = Life(), []
    for second in range(10, 200, 10):
        life.take(make_commit(second, 20 * second, topic="x"))
        if second == 150:
            life.take(make_commit(second + 1, 0, topic="y"))
        topics = make_topic("x", 1, end=10_000), make_topic("y", 1, end=[-1])
        life.take(make_observation(second + 2, *topics))
        found.append((second, life.rows.group_health[-1].drain_seconds))
    # At 20 records a second of 10,000.
    assert all(seconds == pytest.approx(500 - second, abs=3) for second, seconds in found if second >= 140)
