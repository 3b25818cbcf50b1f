"""Where the statuses of a partition begin."""

from __future__ import annotations

import pytest

from streaming.groups.lag.partitions import Measured, absorb, lag_status
from streaming.groups.lag.state import PartitionState, Rhythm, Trend
from tests.groups.build import make_commits

HOUR = 3_600_000


def status(trend: Trend, *, lag: int = 50, committed: int = 100, pauses: int = 3) -> str:
    """Status of a partition whose rhythm is an hour, if it has had three pauses."""
    rhythm = Rhythm([HOUR, HOUR, HOUR, 2 * HOUR, HOUR, 3 * HOUR], 3 * HOUR, pauses)
    state = PartitionState(committed=committed, rhythm=rhythm, trend=trend)
    return lag_status(state, Measured(committed, committed + lag, committed + lag, 0, None))


@pytest.mark.parametrize(
    ("waited", "rounds", "expected"),
    [
        (HOUR * 24 // 10, 10, "ok"),
        (HOUR * 24 // 10 + 1, 10, "stopped"),
        (HOUR * 24 // 10 + 1, 9, "ok"),
    ],
)
def test_a_group_has_stopped_after_more_than_2_4_times_its_rhythm_and_ten_rounds(
    waited: int, rounds: int, expected: str
) -> None:
    assert status(Trend(waited=waited, rounds=rounds)) == expected


def test_a_group_without_a_rhythm_has_not_stopped() -> None:
    assert status(Trend(waited=100 * HOUR, rounds=10), pauses=2) == "ok"


def test_nothing_was_lost_where_the_log_began_at_0_before_and_the_commit_was_above() -> None:
    assert Measured(10, 100, 100, 20, None, start_before=0).lost == 0
    assert Measured(10, 100, 100, 20, None, start_before=-1).lost is None


def test_lag_of_one_offset_is_no_trouble() -> None:
    trouble = Trend(waited=100 * HOUR, rounds=10, stood=10)
    assert (status(trouble, lag=1), status(trouble, lag=2)) == ("ok", "stopped")


@pytest.mark.parametrize(("stood", "expected"), [(8, "ok"), (9, "stalled")])
def test_ten_rounds_with_commits_and_the_same_offset_are_a_stall(stood: int, expected: str) -> None:
    assert status(Trend(stood=stood)) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "falling_behind"),
        ({"run": 9}, "ok"),
        ({"grew": 0b1111}, "ok"),  # in four of nine
        ({"left": 120}, "ok"),  # by 20 in nine steps in which 90 have come: by two rounds' worth
    ],
)
def test_lag_that_grew_in_most_of_ten_rounds_and_by_more_than_two_rounds_worth_falls_behind(
    changes: dict[str, int], expected: str
) -> None:
    values = {"run": 10, "grew": 0b11111, "run_lag": 100, "left": 121, "run_end": 1_000, "end": 1_090}
    assert status(Trend(**(values | changes))) == expected


@pytest.mark.parametrize(
    ("lag", "high", "expected"), [(1, 101, "rewound"), (1, 100, "ok"), (0, 101, "ok"), (1, -1, "ok")]
)
def test_an_offset_below_where_it_was_is_a_rewind_while_there_is_something_to_read(
    lag: int, high: int, expected: str
) -> None:
    assert status(Trend(high=high), lag=lag) == expected


@pytest.mark.parametrize(
    ("committed", "end", "stable", "start", "lag", "read_committed", "ahead_by"),
    [
        (3, 10, 8, 0, 7, 5, 0),
        (0, 5, 0, 0, 5, 0, 0),  # an open transaction from the first record on
        (3, 10, -1, 0, 7, None, 0),
        (3, 10, 8, 6, 4, 2, 0),  # the records below 6 are gone
        (9, 10, 8, 0, 1, 0, 0),
        (12, 10, 10, 0, 0, 0, 2),
    ],
)
def test_lag_is_what_can_be_read_between_the_commit_or_the_log_start_and_the_end(
    committed: int, end: int, stable: int, start: int, lag: int, read_committed: int | None, ahead_by: int
) -> None:
    found = Measured(committed, end, stable, start, None)
    assert (found.lag, found.lag_read_committed, found.ahead_by) == (lag, read_committed, ahead_by)
    assert (found.end, found.stable, found.start) == (end, None if stable < 0 else stable, start)


@pytest.mark.parametrize(
    ("start", "start_before", "lost"),
    [(3, 3, 0), (2, 0, 0), (8, 8, 5), (8, 4, 0), (8, 5, 2), (8, -1, None), (-1, 3, None)],
)
def test_what_is_lost_lies_below_the_log_start_of_the_round_before(
    start: int, start_before: int, lost: int | None
) -> None:
    # (One offset, as from 3 to 4, may be a transaction's marker.)
    assert Measured(3, 10, 10, start, None, start_before).lost == lost


def test_a_tombstone_deletes_only_what_is_known_to_be_committed() -> None:
    new = PartitionState()
    absorb(new, make_commits(5, None), None)
    assert not new.offset_deleted
    committed = PartitionState(committed=0)
    absorb(committed, make_commits(5, None), None)
    assert (committed.offset_deleted, committed.committed) == (True, -1)
    between = PartitionState()
    absorb(between, make_commits(5, 7, None), None)
    assert (between.offset_deleted, between.committed) == (True, -1)
    before = PartitionState()
    absorb(before, make_commits(5, None, 7), None)
    assert (before.offset_deleted, before.committed) == (False, 7)
