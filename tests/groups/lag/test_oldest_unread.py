"""Since when a partition's oldest unread record could be read: what rounds tell, and why a bound is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest

from streaming.groups.lag.oldest_unread import thinned
from streaming.records import CommitWindow, GroupInput, GroupObservation
from tests.examples import examples
from tests.groups.build import (
    SECOND,
    START,
    Life,
    make_commit,
    make_observation,
    packed,
)
from tests.groups.lag.backlog import behind, caught_up, health, see, seen, told
from tests.groups.lag.unread_world import INTERVAL, lived
from tests.groups.rocketmq.world import A, Client, group

NOTHING = (None, None, "nothing_unread")
UNKNOWN = (None, None, "lag_unknown")


def met() -> Life:
    """A group of which only a commit of 100 is known."""
    return Life.after(make_commit(5, 100, topic="x"))


def behind_from_the_start() -> Life:
    """A group first seen in the middle of a backlog: 100 records at 10, of which 40 were read."""
    return Life.after(make_commit(5, 40, topic="x"), seen(10, 100))


def commit(second: int, offset: int, topic_id: str | None = None) -> CommitWindow:
    return msgspec.structs.replace(make_commit(second, offset, topic="x"), topic_id=topic_id)


def clocked(second: int, end: int, by_the_clock: int | None = None) -> GroupObservation:
    """A round by the steady time of its second, and by the time of a clock that may say something else."""
    at = second if by_the_clock is None else by_the_clock
    return seen(at, end, elapsed=second * SECOND, closed=START + at * SECOND + 500)


def rested(second: int, end: int, since: int) -> GroupObservation:
    """A round of a group that rounds from one second until 580 have skipped."""
    return seen(second, end, rested_since=START + since * SECOND, rested_until=START + 580 * SECOND)


Steps = Sequence[tuple[Sequence[GroupInput], tuple[float | None, float | None, str | None]]]

BOUNDS: dict[str, tuple[Callable[[], Life], Steps]] = {
    "after the last round without it opened, before the first with it closed": (
        caught_up,
        [([], NOTHING), ([seen(30, 150)], (20.0, 30.5, None))],
    ),
    "a group that has read everything has nothing unread": (
        behind,
        [([commit(55, 250), seen(60, 250)], NOTHING), ([seen(70, 250)], NOTHING)],
    ),
    # It may have been deleted and created again by brokers that do not tell ids.
    "rounds from before a topic was away for long say nothing of the one that comes back": (
        caught_up,
        [
            (
                [seen(30, 150), *(make_observation(second) for second in range(60, 1_300, 60)), seen(1_300, 300)],
                (None, 1_300.5, "before_rounds"),
            )
        ],
    ),
    **{
        f"each record of a backlog has the bounds of the rounds around it: {committed}": (
            behind,
            [([commit(55, committed), seen(60, 300)], (*bounds, None))],
        )
        for committed, bounds in {
            149: (20.0, 30.5),
            150: (30.0, 40.5),
            199: (30.0, 40.5),
            200: (40.0, 50.5),
            249: (40.0, 50.5),
        }.items()
    },
    "what arrives while a caught up group rests is bounded by the newest round": (
        caught_up,
        [([*(seen(second, 100) for second in range(30, 600, 10)), seen(600, 110)], (590.0, 600.5, None))],
    ),
    "a group first seen in the middle of a backlog is behind for at least so long": (
        behind_from_the_start,
        [
            ([seen(20, 200)], (None, 10.5, "before_rounds")),
            ([commit(25, 120), seen(30, 200)], (10.0, 20.5, None)),
        ],
    ),
    # By 40.5 all up to 200 was there. What the rounds before had seen was not needed any more.
    "what a group goes back to is older than the rounds that are kept": (
        behind,
        [
            ([commit(55, 200), seen(60, 300)], (40.0, 50.5, None)),
            ([commit(65, 120), seen(70, 300)], (None, 40.5, "before_rounds")),
        ],
    ),
    "a caught up group that goes back has the round before as upper bound": (
        caught_up,
        [([commit(25, 30), seen(30, 150)], (None, 20.5, "before_rounds"))],
    ),
    "what the log start has passed is not unread": (
        behind,
        [([seen(60, 300, log_start_offsets=packed([210]))], (40.0, 50.5, None))],
    ),
    "an unknown high watermark makes the bounds wider and not wrong": (
        caught_up,
        [([seen(30, -1)], UNKNOWN), ([seen(40, 150)], (20.0, 40.5, None))],
    ),
    "while the offsets log is blocked nothing is claimed and nothing is forgotten": (
        caught_up,
        [
            ([seen(30, 150, held_since=START), seen(40, 200, held_since=START)], UNKNOWN),
            ([commit(45, 150), seen(50, 200)], (30.0, 40.5, None)),
        ],
    ),
    # The end had been 250: what is at 100 may be another record now.
    "records that replace those lost in an unclean election are not older than they are": (
        behind,
        [
            ([seen(60, 180)], (20.0, 60.5, None)),
            ([commit(65, 170), seen(70, 300)], (30.0, 60.5, None)),
            ([commit(75, 180), seen(80, 300)], (60.0, 70.5, None)),
        ],
    ),
    "a log that was cut back to where it had been has all beyond from then on": (
        behind,
        [([seen(60, 150), commit(65, 150), seen(70, 300)], (60.0, 70.5, None))],
    ),
    "a topic that was deleted and created again begins anew": (
        behind,
        [
            ([commit(55, 10), seen(60, 400, topic_id="another")], UNKNOWN),
            ([commit(65, 20), seen(70, 500, topic_id="another")], (None, 60.5, "before_rounds")),
        ],
    ),
    **{
        f"rounds of a deleted topic bound nothing of the one that has its name: {committed}": (
            behind,
            [([commit(55, committed, "another"), seen(60, 400, topic_id="another")], (None, 60.5, "before_rounds"))],
        )
        for committed in (20, 300)
    },
    "a round whose time has jumped bounds nothing until the next one tells which clock was right": (
        met,
        [
            ([clocked(10, 100), clocked(20, 100), clocked(30, 150, 30 + 3_600)], (20.0, None, "uncertain_time")),
            ([clocked(40, 150)], (20.0, 40.5, None)),
            ([clocked(50, 200)], (20.0, 40.5, None)),
        ],
    ),
    "after an outage of the probe the bounds hold the outage": (
        met,
        [
            ([clocked(10, 100), clocked(20, 100), clocked(50, 150, 3_600)], (20.0, None, "uncertain_time")),
            ([clocked(60, 150, 3_610)], (20.0, 3_610.5, None)),
        ],
    ),
    "a clock that is set back takes the bounds with it": (
        met,
        [
            ([clocked(3_610, 100), clocked(3_620, 100), clocked(3_630, 150)], (3_620.0, 3_630.5, None)),
            ([clocked(3_640, 150, 40), clocked(3_650, 150, 50)], (20.0, 30.5, None)),
        ],
    ),
    "a clock that is set back by a moment leaves the bounds in order": (
        caught_up,
        [([seen(30, 150, time=START + 10 * SECOND, closed=START + 11 * SECOND)], (11.0, 11.0, None))],
    ),
    "a closing record of a broker whose clock is behind does not come before the opening one": (
        caught_up,
        [([seen(30, 150, closed=START + 29 * SECOND)], (20.0, 30.0, None))],
    ),
    "an idle group that moves is bounded by the last round that skipped it": (
        caught_up,
        [([seen(30, 100, idle=True), rested(590, 150, since=10)], (580.0, 590.5, None))],
    ),
    "also where they began to skip it at the round that the job has seen": (
        caught_up,
        [([seen(30, 100, idle=True), rested(590, 150, since=30)], (580.0, 590.5, None))],
    ),
    "so is what arrives in an idle group that is behind": (
        behind,
        [
            (
                [seen(60, 250, idle=True), rested(590, 300, since=50), commit(595, 250), seen(600, 300)],
                (580.0, 590.5, None),
            )
        ],
    ),
    "what arrives after the rest of a group that went back is bounded by the rest": (
        caught_up,
        [
            (
                [seen(30, 100, idle=True), commit(585, 30), rested(590, 150, since=10)],
                (None, 30.5, "before_rounds"),
            ),
            ([commit(595, 100), seen(600, 150)], (580.0, 590.5, None)),
        ],
    ),
    **{
        f"a rest that began after the round that the job has seen tells nothing: {since}": (
            caught_up,
            [([seen(30, 100, idle=True), rested(590, 150, since=since)], (30.0, 590.5, None))],
        )
        for since in (31, 600)
    },
}


@pytest.mark.parametrize("case", BOUNDS)
def test_a_record_became_readable_between_the_rounds_around_it(case: str) -> None:
    start, steps = BOUNDS[case]
    life = start()
    for inputs, expected in steps:
        life.take(*inputs)
        assert told(life) == expected


def test_an_empty_queue_without_a_commit_has_nothing_unread_also_right_after_a_round_that_did_not_show_it() -> None:
    world = group(Client(A))
    world.round(2)
    listed, world.lists["broker-a"] = world.lists["broker-a"], None
    world.round()
    world.lists["broker-a"] = listed
    told_of_it = [(row.lag, row.oldest_unread_reason) for row in world.round().lag if row.broker == "broker-a"]
    assert told_of_it == [(0, "nothing_unread")] * 4


def test_the_bounds_stay_while_nothing_is_read_and_no_row_is_written_while_nothing_moves() -> None:
    life = behind()
    assert told(life) == (20.0, 30.5, None)
    written = len(life.rows.lag), len(life.rows.group_health)
    for second in range(60, 600, 10):
        see(life, second, 250)
    assert (len(life.rows.lag), len(life.rows.group_health)) == written
    see(life, 600, 260)
    assert told(life) == (20.0, 30.5, None)


def test_a_consumer_that_is_always_a_little_behind_has_the_bounds_of_one_interval() -> None:
    life = Life()
    for second in range(10, 100, 10):
        life.take(make_commit(second - 5, 10 * second - 5, topic="x"))
        see(life, second, 10 * second)
        assert told(life) == (
            None if second == 10 else second - 10.0,
            second + 0.5,
            None if second > 10 else "before_rounds",
        )


def test_one_offset_may_be_a_transaction_marker_so_nothing_is_claimed() -> None:
    life = caught_up()
    see(life, 30, 101)
    assert told(life) == (None, None, "one_offset")
    assert health(life) == (0.0, 0.0, None, None)
    see(life, 40, 102)
    assert told(life) == (20.0, 30.5, None)


def test_a_round_that_does_not_tell_when_it_closed_gives_no_upper_bound() -> None:
    life = caught_up()
    for second in (30, 40, 50):
        see(life, second, 150, closed=-1)
    assert told(life) == (20.0, None, "uncertain_time")
    assert [row.round for row in life.rows.lag] == [10, 30]


def test_a_clock_that_runs_backwards_cannot_make_marks_many() -> None:
    marks = [number for at in range(500) for number in (at, START - at, START - at + 1)]
    kept = thinned(marks, START - 1_000)
    assert len(kept) <= 3 * 192
    assert kept[:6] == marks[:6]
    assert kept[-3:] == marks[-3:]


def test_the_last_row_of_a_partition_claims_nothing() -> None:
    life = behind()
    life.take(make_observation(60, gone="deleted"))
    assert told(life) == (None, None, "lag_unknown")
    assert health(life) == (None, None, "lag_unknown", None)


@pytest.mark.parametrize("wrong", [{"closed": -1}, {}])
def test_the_marks_are_bounded_while_no_round_tells_its_time(wrong: dict[str, int]) -> None:
    life = Life.after(make_commit(5, 0, topic="x"))
    for number in range(700):
        # Every other round is an hour off, where the closing time is known.
        time = START + (number * 10 + (number % 2) * 3_600) * SECOND
        see(life, 10 + number, 100 + number, time=time, **wrong)
    assert len(life.state.partitions["x"][0].marks) <= 3 * 2 * 192 + 3


ROUNDS = 1_500


def test_the_truth_is_between_the_bounds_of_the_current_row_at_each_round() -> None:
    evaluations = bounded = wide = 0
    for seed in range(examples(150)):
        for found in lived(seed, ROUNDS):
            earliest, latest = found.row.oldest_unread_time_min, found.row.oldest_unread_time_max
            assert earliest is None or earliest <= found.truth, (seed, found)
            assert latest is None or found.truth <= latest, (seed, found)
            evaluations += 1
            if earliest is not None and latest is not None:
                bounded += 1
                wide += latest - earliest > max(2 * INTERVAL, (found.now - found.truth) / 10)
    assert bounded > evaluations / 2
    assert wide < 0.05 * bounded
