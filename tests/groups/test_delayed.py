"""Records that arrived while a rebalance had stopped their partitions."""

from __future__ import annotations

import pytest

from streaming.groups.delayed import WAITING_MAX
from streaming.records import GroupInput
from tests.groups.build import (
    GROUP,
    START,
    Life,
    even,
    make_commit,
    make_cooperative,
    make_observation,
    make_record,
    make_topic,
)
from tests.groups.modern_log import FIRST, SECOND_MEMBER, gone, observation, owns, read
from tests.offsets_log.written import other_key

Told = tuple[int, int | None, int | None, str | None]


def two_owners(record: int, generation: int = 2) -> GroupInput:
    return make_record(record, even("x", 2, "a", "b"), generation=generation)


def begun(committed: int = 90) -> Life:
    life = Life.after(
        make_record(5, even("x", 2, "a")), *(make_commit(6 + p, committed, topic="x", partition=p) for p in (0, 1))
    )
    life.take(make_observation(10, make_topic("x", 2, end=100)))
    return life


def told(life: Life, decision: int) -> list[Told]:
    return [
        (row.revision, row.records_delayed_min, row.records_delayed_max, row.records_delayed_reason)
        for row in life.rows.rebalance_churn
        if row.decision == decision
    ]


def then(*ends: int | list[int], committed: int = 90, at: int = 13, **changes: object) -> list[Told]:
    """A rebalance at a log offset, and rounds after it that show these high watermarks."""
    life = begun(committed)
    life.take(two_owners(at))
    for number, end in enumerate(ends):
        life.take(make_observation(at + 7 + 10 * number, make_topic("x", 2, **{"end": end, **changes})))
    return told(life, at)


UNTOLD = (1, None, None, "no_round")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # (150 - 90) + (140 - 90)
        pytest.param(then([150, 140]), [UNTOLD, (2, 0, 110, None)], id="at most what came since the last commit"),
        pytest.param(then(150, 900), [UNTOLD, (2, 0, 120, None)], id="a later round revises nothing"),
        pytest.param(
            then([150, -1], 150),
            [UNTOLD, (2, None, None, "high_watermark_unknown")],
            id="a round that does not know the end leaves the bounds open for good",
        ),
        pytest.param(then(150, topic_id="another"), [UNTOLD, (2, None, None, "other_log")], id="another topic's log"),
        pytest.param(then(50), [UNTOLD, (2, None, None, "other_log")], id="a log that ends before what was read"),
        pytest.param(then(100, committed=100), [UNTOLD, (2, 0, 0, None)], id="nothing arrived"),
        pytest.param(then(2**63 - 1, committed=0), [UNTOLD, (2, 0, 2**63 - 1, None)], id="more than a table can count"),
    ],
)
def test_the_next_round_bounds_what_arrived_during_a_stop(found: list[Told], expected: list[Told]) -> None:
    assert found == expected


def test_a_rebalance_that_stops_nobody_delays_nothing_and_without_a_commit_before_nothing_is_claimed() -> None:
    # By a cooperative strategy a keeps both, and b gets none.
    life = Life.after(make_cooperative(5, 1, a=(0, 1)))
    life.take(make_cooperative(13, 2, {"a": (0, 1)}, a=(0, 1), b=()))
    assert told(life, 13) == [(1, 0, 0, None)]
    life = Life.after(make_record(5, even("x", 2, "a")), two_owners(13), make_observation(20, make_topic("x", 2)))
    assert told(life, 13) == [(1, None, None, "no_commit")]


def test_a_group_that_is_behind_does_not_count_its_lag() -> None:
    life = begun(committed=10)
    for second in range(20, 400, 10):
        life.take(make_observation(second, make_topic("x", 2, end=1_000 + second)))
    commits = [make_commit(401 + p, 20, topic="x", partition=p) for p in (0, 1)]
    life.take(*commits, two_owners(405), make_observation(410, make_topic("x", 2, end=1_410)))
    # Rounds close half a second after they open: that of 340 was a minute before the commit at 401.
    (_, last) = told(life, 405)
    assert (last[1], last[3]) == (0, None)
    assert last[2] is not None
    assert 2 * (1_410 - 1_340) <= last[2] <= 2 * (1_410 - 1_300)


@pytest.mark.parametrize(("early", "had_arrived"), [(-330_000, 100), (0, 100), (1, 20)])
def test_a_round_that_closed_exactly_a_minute_before_the_last_commit_counts_and_a_later_one_does_not(
    early: int, had_arrived: int
) -> None:
    life = begun(committed=10)
    # The round at 10 closed half a second later, and showed 100 of each.
    at = START + 70_500 - early
    commits = [make_commit(71 + p, 20, topic="x", partition=p, time=at) for p in (0, 1)]
    life.take(*commits, two_owners(75), make_observation(80, make_topic("x", 2, end=150)))
    assert told(life, 75)[-1] == (2, 0, 2 * (150 - had_arrived), None)


def test_what_came_between_two_rounds_inside_a_long_stop_was_certainly_delayed() -> None:
    life = begun()
    for second in range(20, 400, 10):
        life.take(make_observation(second, make_topic("x", 2, end=1_000 + second), state="CompletingRebalance"))
    record = make_record(400, even("x", 2, "a", "b"), generation=2, state_time=life.rows.lag[0].round_time)
    life.take(record, make_observation(410, make_topic("x", 2, end=1_410)))
    least, most = told(life, 400)[-1][1:3]
    # The stop began at 10: the rounds from 70 to 339 lie inside by a minute.
    assert least == 2 * (330 - 70)
    assert most == 2 * (1_410 - 90)


def test_rebalances_before_the_next_round_are_all_told_by_it_up_to_a_limit() -> None:
    life = begun()
    for generation in range(2, 40):
        life.take(two_owners(10 + generation, generation))
    assert len(life.state.stopped) == WAITING_MAX
    rows = life.take(make_observation(60, make_topic("x", 2, end=150))).rebalance_churn
    assert [row.decision for row in rows] == list(range(34, 50))
    assert {row.records_delayed_max for row in rows} == {120}


def test_where_the_broker_assigns_the_round_after_the_last_taking_over_tells() -> None:
    life = Life.after(
        observation(10), *read(FIRST), *(make_commit(16 + p, 60, partition=p) for p in range(4)), observation(21)
    )
    life.take(*read(SECOND_MEMBER, 22), *read([owns("a", 2, 0, 1)], 30), observation(33))
    life.take(*read([owns("b", 2, 2, 3)], 37), observation(38))
    # Two partitions, 100 - 60 each.
    assert told(life, 26) == [(1, None, None, "handover_pending"), (2, None, None, "no_round"), (3, 0, 80, None)]


def test_what_a_group_that_has_ended_delayed_is_told_by_the_next_round() -> None:
    life = Life()
    # Its only round is the first of all.
    commits = [make_commit(16 + partition, 60, partition=partition) for partition in range(4)]
    life.take(*read(FIRST), *commits, observation(21, elapsed=0))
    life.take(*read(SECOND_MEMBER, 22), *read([owns("a", 2, 0, 1)], 30), *read([owns("b", 2, 2, 3)], 37))
    life.take(*read([*gone("a", "b"), (other_key(6, GROUP), None), (other_key(3, GROUP), None)], 40))
    life.take(observation(60, elapsed=10_000))
    assert told(life, 26)[-1] == (3, 0, 80, None)
