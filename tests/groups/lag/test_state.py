"""Which of the recent pauses is the rhythm, which are remembered, and what rounds leave in a partition's trend."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.groups.lag.state import PartitionState, Rhythm, Trend, add_round, count_pause, longest_wait, skip_round

HOUR = 3_600_000
DAY = 24 * HOUR


def lived(*hours: int) -> Rhythm:
    """A rhythm after pauses of these lengths."""
    rhythm = Rhythm()
    for length in hours:
        count_pause(rhythm, length * HOUR)
    return rhythm


def lengths(rhythm: Rhythm) -> list[int]:
    return [length // HOUR for length in rhythm.pauses[::2]]


@pytest.mark.parametrize(
    ("hours", "rhythm_h"),
    [
        ((5, 5, 20), 20),  # of three pauses none can be an accident
        ((5, 5, 10, 20), 10),  # of four one
        ((5, 5, 5, 5, 5, 10, 20), 10),  # and of seven
        ((5, 5, 5, 5, 5, 5, 10, 20), 5),  # of eight two
    ],
)
def test_the_more_pauses_the_more_of_them_may_be_accidents(hours: tuple[int, ...], rhythm_h: int) -> None:
    assert longest_wait(lived(*hours)) == rhythm_h * HOUR * 24 // 10


def test_two_pauses_are_no_rhythm() -> None:
    assert longest_wait(lived(5, 5)) is None


def test_without_a_rhythm_a_group_that_commits_regularly_is_taken_for_a_nightly_job() -> None:
    rhythm = lived(5, 5)
    rhythm.rounds = 4
    assert longest_wait(rhythm) is None
    rhythm.rounds = 5
    assert longest_wait(rhythm) == DAY * 24 // 10


def test_a_group_commits_regularly_once_five_rounds_have_shown_a_commit() -> None:
    partition = Partition()
    for offset in (0, 100, 200, 300):  # a backlog, so no pause is counted
        partition.commits(offset, 1_000)
        assert longest_wait(partition.rhythm) is None
    partition.commits(400, 1_000)
    assert longest_wait(partition.rhythm) == DAY * 24 // 10


def test_pauses_alike_keep_three_entries() -> None:
    assert lengths(lived(10, 9, 10, 8, 10, 9, 8)) == [10, 9, 8]


def test_a_pause_is_replaced_by_three_later_ones_of_at_least_four_fifths_of_its_length() -> None:
    assert lengths(lived(10, 8, 8, 8)) == [8, 8, 8]
    assert lengths(lived(10, 8, 8, 7)) == [10, 8, 8, 7]


def test_a_pause_is_forgotten_after_ten_times_its_length() -> None:
    # 100 h after the end of the long one it is still there, 101 h after it is not.
    assert lengths(lived(10, *[1] * 3, 97)) == [10, 1, 1, 97]
    assert 10 not in lengths(lived(10, *[1] * 3, 98))


def test_a_short_pause_is_remembered_for_a_day() -> None:
    assert lengths(lived(2, 1, 1, 22)) == [2, 1, 1, 22]
    assert lengths(lived(2, 1, 1, 23)) == [1, 1, 23]


def test_a_long_pause_is_remembered_when_a_later_short_one_is_forgotten() -> None:
    assert lengths(lived(10, 2, 1, 1, 23)) == [10, 1, 1, 23]


ROUND = 10_000


class Partition:
    """A partition that is looked at every 10 s; each call is a round."""

    def __init__(self) -> None:
        self.trend, self.rhythm = Trend(), Rhythm()

    def commits(self, offset: int, end: int, *, rounds: int = 1) -> None:
        add_round(self.trend, self.rhythm, offset, end - offset, end, rounds * ROUND, rounds, commits=True)

    def waits(self, offset: int, end: int, *, rounds: int = 1) -> None:
        add_round(self.trend, self.rhythm, offset, end - offset, end, rounds * ROUND, rounds, commits=False)

    @property
    def pauses(self) -> list[int]:
        return self.rhythm.pauses[::2]


def test_a_run_begins_again_where_the_lag_shrinks() -> None:
    partition = Partition()
    for end in (110, 111, 112):
        partition.commits(100, end)
    partition.commits(101, 112)
    trend = partition.trend
    assert (trend.run, trend.grew, trend.run_lag, trend.run_end) == (1, 0, 11, 112)


def test_waiting_is_counted_while_there_is_lag_and_up_to_ten_rounds() -> None:
    partition = Partition()
    partition.commits(100, 100)
    partition.waits(100, 100)
    assert (partition.trend.waited, partition.trend.rounds) == (0, 0)
    partition.waits(100, 150)  # from now on there is something to read
    for number in range(1, 13):
        partition.waits(100, 150)
        assert (partition.trend.waited, partition.trend.rounds) == (number * ROUND, min(number, 10))
    partition.commits(150, 150)
    assert (partition.trend.waited, partition.trend.rounds) == (0, 0)
    assert partition.pauses == [13 * ROUND]  # the last until this commit


def test_a_partition_that_is_met_with_lag_and_without_a_commit_has_waited_since_then() -> None:
    partition = Partition()
    for number in range(3):
        partition.waits(100, 150)
        assert (partition.trend.waited, partition.trend.rounds) == (number * ROUND, number)


def test_a_pause_in_which_a_round_did_not_know_the_lag_is_none() -> None:
    partition = Partition()
    partition.commits(100, 150)
    skip_round(partition.trend)
    partition.waits(100, 150)
    partition.commits(150, 150)
    assert partition.pauses == []


def test_one_offset_that_the_last_commit_left_may_be_a_marker_and_is_nothing_to_wait_for() -> None:
    partition = Partition()
    partition.commits(99, 100)
    for _ in range(3):
        partition.waits(99, 100)
    assert partition.trend.waited == 0
    later = Partition()
    later.commits(100, 100)
    for _ in range(3):
        later.waits(100, 101)  # came after the commit: a record
    assert later.trend.waited == 2 * ROUND


def test_ten_rounds_with_commits_below_where_it_was_end_a_step_back() -> None:
    partition = Partition()
    partition.commits(100, 200)
    partition.commits(50, 200)
    assert (partition.trend.high, partition.trend.below) == (100, 0)
    for number in range(1, 10):
        partition.commits(50 + number, 200)
        assert (partition.trend.high, partition.trend.below) == (100, number)
    partition.commits(60, 200)
    assert partition.trend.high == -1


def test_a_step_back_ends_where_the_offset_is_again_where_it_was() -> None:
    partition = Partition()
    partition.commits(100, 200)
    partition.commits(50, 200)
    partition.commits(99, 200)
    assert partition.trend.high == 100
    partition.commits(100, 200)
    assert partition.trend.high == -1


def test_a_second_step_back_is_measured_from_the_first() -> None:
    partition = Partition()
    for offset in (100, 50, 70, 40):
        partition.commits(offset, 200)
    assert (partition.trend.high, partition.trend.below) == (100, 0)


def test_in_an_idle_group_a_commit_of_the_same_offset_ends_no_pause() -> None:
    partition = Partition()
    partition.commits(100, 150)
    partition.commits(100, 150, rounds=60)
    assert partition.pauses == []
    partition.commits(100, 150)
    assert partition.pauses == [ROUND]


def test_while_a_backlog_is_worked_off_pauses_do_not_count() -> None:
    partition = Partition()
    partition.commits(0, 1_000)
    partition.commits(100, 1_010)
    assert partition.pauses == []
    partition.commits(110, 1_930)  # more has come than was left: no backlog
    assert partition.pauses == [ROUND]


@pytest.mark.parametrize("change", [{"committed": 0}, {"commits": 1}, {"offset_deleted": True}, {"row": (-1,)}])
def test_a_partition_is_forgotten_only_when_no_row_needs_it(change: dict[str, Any]) -> None:
    assert PartitionState(committed=-1).is_void()
    assert not PartitionState(**({"committed": -1} | change)).is_void()
