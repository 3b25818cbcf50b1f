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


@pytest.mark.parametrize(
    ("pauses", "kept"),
    [
        # Pauses alike keep three entries.
        ([10, 9, 10, 8, 10, 9, 8], [10, 9, 8]),
        # Three later pauses of at least four fifths of its length replace one.
        ([10, 8, 8, 8], [8, 8, 8]),
        ([10, 8, 8, 7], [10, 8, 8, 7]),
        # It is forgotten after ten times its length: 100 h after its end it is still there, 101 h after it is not.
        ([10, 1, 1, 1, 97], [10, 1, 1, 97]),
        ([10, 1, 1, 1, 98], [1, 1, 98]),
        # A short one is remembered for a day.
        ([2, 1, 1, 22], [2, 1, 1, 22]),
        ([2, 1, 1, 23], [1, 1, 23]),
        # A long one is remembered when a later short one is forgotten.
        ([10, 2, 1, 1, 23], [10, 1, 1, 23]),
    ],
)
def test_a_pause_is_remembered_for_ten_times_its_length_or_until_three_later_ones_replace_it(
    pauses: list[int], kept: list[int]
) -> None:
    assert lengths(lived(*pauses)) == kept


ROUND = 10_000


class Partition:
    """A partition that is looked at every 10 s; each call is a round."""

    def __init__(self) -> None:
        self.trend, self.rhythm = Trend(), Rhythm()

    def commits(self, offset: int, end: int, rounds: int = 1) -> None:
        add_round(self.trend, self.rhythm, offset, end - offset, end, rounds * ROUND, rounds, commits=True)

    def waits(self, offset: int, end: int, rounds: int = 1) -> None:
        add_round(self.trend, self.rhythm, offset, end - offset, end, rounds * ROUND, rounds, commits=False)

    @property
    def pauses(self) -> list[int]:
        return self.rhythm.pauses[::2]


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


COMMITS, WAITS, UNKNOWN = Partition.commits, Partition.waits, None

# Rounds: what each shows, the committed offset, the end, and how many rounds it stands for; then the partition's trend
# and pauses.
AFTER: dict[str, tuple[list[tuple[Any, ...]], dict[str, int], list[int] | None]] = {
    "a run begins again where the lag shrinks": (
        [*((COMMITS, 100, end) for end in (110, 111, 112)), (COMMITS, 101, 112)],
        {"run": 1, "grew": 0, "run_lag": 11, "run_end": 112},
        None,
    ),
    "a pause in which a round did not know the lag is none": (
        [(COMMITS, 100, 150), (UNKNOWN,), (WAITS, 100, 150), (COMMITS, 150, 150)],
        {},
        [],
    ),
    "one offset that the last commit left may be a marker, and is nothing to wait for": (
        [(COMMITS, 99, 100), *[(WAITS, 99, 100)] * 3],
        {"waited": 0},
        None,
    ),
    "one that came after the commit is a record": (
        [(COMMITS, 100, 100), *[(WAITS, 100, 101)] * 3],
        {"waited": 2 * ROUND},
        None,
    ),
    "a step back": ([(COMMITS, 100, 200), (COMMITS, 50, 200)], {"high": 100, "below": 0}, None),
    "nine rounds with commits below where it was": (
        [(COMMITS, 100, 200), *((COMMITS, 50 + number, 200) for number in range(10))],
        {"high": 100, "below": 9},
        None,
    ),
    "ten of them end it": (
        [(COMMITS, 100, 200), *((COMMITS, 50 + number, 200) for number in range(11))],
        {"high": -1},
        None,
    ),
    "it ends where the offset is again where it was": (
        [(COMMITS, 100, 200), (COMMITS, 50, 200), (COMMITS, 99, 200)],
        {"high": 100},
        None,
    ),
    "and not before": (
        [(COMMITS, 100, 200), (COMMITS, 50, 200), (COMMITS, 99, 200), (COMMITS, 100, 200)],
        {"high": -1},
        None,
    ),
    "a second step back is measured from the first": (
        [(COMMITS, offset, 200) for offset in (100, 50, 70, 40)],
        {"high": 100, "below": 0},
        None,
    ),
    "in an idle group a commit of the same offset ends no pause": (
        [(COMMITS, 100, 150), (COMMITS, 100, 150, 60)],
        {},
        [],
    ),
    "in any other it does": ([*[(COMMITS, 100, 150)] * 2], {}, [ROUND]),
    "while a backlog is worked off pauses do not count": ([(COMMITS, 0, 1_000), (COMMITS, 100, 1_010)], {}, []),
    "where more has come than was left there is no backlog": (
        [(COMMITS, 0, 1_000), (COMMITS, 100, 1_010), (COMMITS, 110, 1_930)],
        {},
        [ROUND],
    ),
}


@pytest.mark.parametrize("case", AFTER)
def test_what_rounds_leave_in_the_trend_and_the_rhythm_of_a_partition(case: str) -> None:
    rounds, trend, pauses = AFTER[case]
    partition = Partition()
    for step, *of in rounds:
        if step is UNKNOWN:
            skip_round(partition.trend)
        else:
            step(partition, *of)
    assert {name: getattr(partition.trend, name) for name in trend} == trend
    assert pauses is None or partition.pauses == pauses


@pytest.mark.parametrize("change", [{"committed": 0}, {"commits": 1}, {"offset_deleted": True}, {"row": (-1,)}])
def test_a_partition_is_forgotten_only_when_no_row_needs_it(change: dict[str, Any]) -> None:
    assert PartitionState(committed=-1).is_void()
    assert not PartitionState(**({"committed": -1} | change)).is_void()
