"""When a job has time for maintenance, as a few batches on a clock."""

from __future__ import annotations

import pytest

from streaming.maintain import Gap, Pace


def after(*batches: tuple[float, float | None]) -> Pace:
    """A job with these batches: when each began and ended (None while it is at work)."""
    pace = Pace()
    for began, ended in batches:
        pace.began(began)
        if ended is not None:
            pace.ended(ended)
    return pace


def test_from_the_end_of_a_batch_until_the_next_is_a_gap() -> None:
    pace = after((0, 2), (10, 12))
    assert pace.gap(12) == Gap(left=8, whole=8)
    assert pace.gap(19.5) == Gap(left=0.5, whole=8)


def test_in_a_batch_there_is_no_gap() -> None:
    assert after((0, 2), (10, None)).gap(11) is None


@pytest.mark.parametrize("batches", [(), ((0, 2),), ((0, None),)])
def test_before_the_second_batch_nothing_is_known_and_there_is_no_gap(
    batches: tuple[tuple[float, float | None], ...],
) -> None:
    assert after(*batches).gap(3) is None


def test_in_a_catch_up_there_is_no_gap_and_after_it_there_is() -> None:
    pace = after((0, 9.9), (10, 19.9))
    assert pace.gap(19.95) is None
    pace.began(20)
    pace.ended(27)
    assert pace.gap(28) == Gap(left=2, whole=3)
    pace.began(30)
    pace.ended(37.1)
    assert pace.gap(38) is None, "more than 70 % of the time is a catch-up"


def test_a_batch_that_is_late_may_come_at_any_moment_until_nothing_comes_any_more() -> None:
    pace = after((0, 2), (10, 12))
    assert pace.gap(20) is None
    assert pace.gap(30) is None
    assert pace.gap(30.5) == Gap(left=10, whole=10)
    assert pace.gap(100_000) == Gap(left=10, whole=10)
