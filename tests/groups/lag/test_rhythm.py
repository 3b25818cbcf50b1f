"""Which of the recent pauses is the rhythm, and which pauses are remembered."""

from __future__ import annotations

import pytest

from streaming.groups.lag.rhythm import Rhythm, count_pause, longest_wait

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
