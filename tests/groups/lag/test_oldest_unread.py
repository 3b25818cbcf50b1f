"""Since when a partition's oldest unread record could be read: what rounds tell, and why a bound is missing."""

from __future__ import annotations

import msgspec
import pytest

from streaming.groups.lag.oldest_unread import thinned, unread_between
from tests.examples import examples
from tests.groups.build import (
    SECOND,
    START,
    Life,
    make_commit,
    make_observation,
    packed,
)
from tests.groups.lag.backlog import HOUR, behind, caught_up, health, see, told
from tests.groups.lag.unread_world import INTERVAL, lived
from tests.groups.rocketmq.world import A, Client, World


def test_a_record_came_after_the_last_round_without_it_opened_and_before_the_first_round_with_it_closed() -> None:
    life = caught_up()
    assert told(life) == (None, None, "nothing_unread")
    see(life, 30, 150)
    assert told(life) == (20.0, 30.5, None)
    assert life.rows.lag[-1].oldest_unread_method == "rounds"


def test_a_group_that_was_behind_and_has_read_everything_has_nothing_unread() -> None:
    life = behind()
    life.take(make_commit(55, 250, topic="x"))
    for second in (60, 70):
        see(life, second, 250)
        assert told(life) == (None, None, "nothing_unread")
    assert life.state is not None
    assert life.state.partitions["x"][0].marks == []


def test_rounds_from_before_a_topic_was_not_shown_for_long_say_nothing_about_the_one_that_comes_back() -> None:
    # It may have been deleted and created again by brokers that do not tell ids.
    life = caught_up()
    see(life, 30, 150)
    for second in range(60, 1_300, 60):
        life.take(make_observation(second))
    see(life, 1_300, 300)
    assert told(life) == (None, 1_300.5, "before_rounds")


def test_an_empty_queue_without_a_commit_has_nothing_unread_also_right_after_a_round_that_did_not_show_it() -> None:
    world = World()
    world.join(Client(A))
    world.rebalance()
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


@pytest.mark.parametrize(
    ("committed", "bounds"),
    [(149, (20.0, 30.5)), (150, (30.0, 40.5)), (199, (30.0, 40.5)), (200, (40.0, 50.5)), (249, (40.0, 50.5))],
)
def test_each_record_of_a_backlog_has_the_bounds_of_the_rounds_around_it(
    committed: int, bounds: tuple[float, float]
) -> None:
    life = behind()
    life.take(make_commit(55, committed, topic="x"))
    see(life, 60, 300)
    assert told(life) == (*bounds, None)


def test_records_that_arrive_while_a_caught_up_group_rests_are_bounded_by_the_newest_round() -> None:
    life = caught_up()
    for second in range(30, 600, 10):
        see(life, second, 100)
    see(life, 600, 110)
    assert told(life) == (590.0, 600.5, None)


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


def test_a_group_first_seen_in_the_middle_of_a_backlog_is_behind_for_at_least_so_long() -> None:
    life = Life.after(make_commit(5, 40, topic="x"))
    see(life, 10, 100)
    see(life, 20, 200)
    assert told(life) == (None, 10.5, "before_rounds")
    life.take(make_commit(25, 120, topic="x"))
    see(life, 30, 200)
    assert told(life) == (10.0, 20.5, None)


def test_what_a_group_goes_back_to_is_older_than_the_rounds_that_are_kept() -> None:
    life = behind()
    life.take(make_commit(55, 200, topic="x"))
    see(life, 60, 300)
    life.take(make_commit(65, 120, topic="x"))
    see(life, 70, 300)
    # By 40.5 all up to 200 was there. (What the rounds before had seen was not needed any more.)
    assert told(life) == (None, 40.5, "before_rounds")


def test_a_caught_up_group_that_goes_back_has_the_round_before_as_upper_bound() -> None:
    life = caught_up()
    life.take(make_commit(25, 30, topic="x"))
    see(life, 30, 150)
    assert told(life) == (None, 20.5, "before_rounds")


def test_one_offset_may_be_a_transaction_marker_so_nothing_is_claimed() -> None:
    life = caught_up()
    see(life, 30, 101)
    assert told(life) == (None, None, "one_offset")
    assert health(life) == (0.0, 0.0, None, None)
    see(life, 40, 102)
    assert told(life) == (20.0, 30.5, None)


def test_what_the_log_start_has_passed_is_not_unread() -> None:
    life = behind()
    see(life, 60, 300, log_start_offsets=packed([210]))
    assert told(life) == (40.0, 50.5, None)


def test_an_unknown_high_watermark_makes_the_bounds_wider_and_not_wrong() -> None:
    life = caught_up()
    see(life, 30, -1)
    assert told(life) == (None, None, "lag_unknown")
    see(life, 40, 150)
    assert told(life) == (20.0, 40.5, None)


def test_while_the_offsets_log_is_blocked_nothing_is_claimed_and_nothing_is_forgotten() -> None:
    life = caught_up()
    see(life, 30, 150, held_since=START)
    see(life, 40, 200, held_since=START)
    assert told(life) == (None, None, "lag_unknown")
    life.take(make_commit(45, 150, topic="x"))
    see(life, 50, 200)
    assert told(life) == (30.0, 40.5, None)


def test_records_that_replace_those_lost_in_an_unclean_election_are_not_older_than_they_are() -> None:
    life = behind()
    see(life, 60, 180)  # it had been 250: what is at 100 may be another record now
    assert told(life) == (20.0, 60.5, None)
    life.take(make_commit(65, 170, topic="x"))
    see(life, 70, 300)
    assert told(life) == (30.0, 60.5, None)
    life.take(make_commit(75, 180, topic="x"))
    see(life, 80, 300)
    assert told(life) == (60.0, 70.5, None)


def test_a_log_that_was_cut_back_to_where_it_had_been_has_all_beyond_from_then_on() -> None:
    life = behind()
    see(life, 60, 150)
    life.take(make_commit(65, 150, topic="x"))
    see(life, 70, 300)
    assert told(life) == (60.0, 70.5, None)


def test_a_topic_that_was_deleted_and_created_again_begins_anew() -> None:
    life = behind()
    life.take(make_commit(55, 10, topic="x"))
    see(life, 60, 400, topic_id="another")
    assert (life.rows.lag[-1].reason, told(life)) == ("topic_recreated", (None, None, "lag_unknown"))
    life.take(make_commit(65, 20, topic="x"))
    see(life, 70, 500, topic_id="another")
    assert told(life) == (None, 60.5, "before_rounds")


@pytest.mark.parametrize("committed", [20, 300])
def test_rounds_of_a_deleted_topic_bound_nothing_of_the_one_that_has_its_name(committed: int) -> None:
    life = behind()
    commit = make_commit(55, committed, topic="x")
    life.take(msgspec.structs.replace(commit, topic_id="another"))
    see(life, 60, 400, topic_id="another")
    assert told(life) == (None, 60.5, "before_rounds")


def test_a_round_whose_time_has_jumped_bounds_nothing_until_the_next_one_tells_which_clock_was_right() -> None:
    life = Life.after(make_commit(5, 100, topic="x"))
    for second in (10, 20):
        see(life, second, 100, elapsed=second * SECOND)
    see(life, 30, 150, elapsed=30 * SECOND, time=START + 30 * SECOND + HOUR, closed=START + 31 * SECOND + HOUR)
    assert told(life) == (20.0, None, "uncertain_time")
    see(life, 40, 150, elapsed=40 * SECOND)
    assert told(life) == (20.0, 40.5, None)
    see(life, 50, 200, elapsed=50 * SECOND)
    assert told(life) == (20.0, 40.5, None)


def test_after_an_outage_of_the_probe_the_bounds_hold_the_outage() -> None:
    life = Life.after(make_commit(5, 100, topic="x"))
    for second in (10, 20):
        see(life, second, 100, elapsed=second * SECOND)
    see(life, 3_600, 150, elapsed=50 * SECOND)
    assert told(life) == (20.0, None, "uncertain_time")
    see(life, 3_610, 150, elapsed=60 * SECOND)
    assert told(life) == (20.0, 3_610.5, None)


def test_a_clock_that_is_set_back_takes_the_bounds_with_it() -> None:
    life = Life.after(make_commit(5, 100, topic="x"))
    for second, end in ((3_610, 100), (3_620, 100), (3_630, 150)):
        see(life, second, end, elapsed=second * SECOND)
    for second in (40, 50):
        see(life, second, 150, elapsed=(3_600 + second) * SECOND)
    assert told(life) == (20.0, 30.5, None)


def test_a_clock_that_is_set_back_by_a_moment_leaves_the_bounds_in_order() -> None:
    life = caught_up()
    see(life, 30, 150, time=START + 10 * SECOND, closed=START + 11 * SECOND)
    assert told(life) == (11.0, 11.0, None)


def test_a_closing_record_of_a_broker_whose_clock_is_behind_does_not_come_before_the_opening_one() -> None:
    life = caught_up()
    see(life, 30, 150, closed=START + 29 * SECOND)
    assert told(life) == (20.0, 30.0, None)


def test_a_round_that_does_not_tell_when_it_closed_gives_no_upper_bound() -> None:
    life = caught_up()
    for second in (30, 40, 50):
        see(life, second, 150, closed=-1)
    assert told(life) == (20.0, None, "uncertain_time")
    assert [row.round for row in life.rows.lag] == [10, 30]


@pytest.mark.parametrize("since", [10, 30])
def test_an_idle_group_that_moves_is_bounded_by_the_last_round_that_skipped_it(since: int) -> None:
    life = caught_up()
    see(life, 30, 100, idle=True)
    # The rounds up to 580 looked as the one at 30 did, and did not report it.
    see(life, 590, 150, rested_since=START + since * SECOND, rested_until=START + 580 * SECOND)
    assert told(life) == (580.0, 590.5, None)


def test_so_is_what_arrives_in_an_idle_group_that_is_behind() -> None:
    life = behind()
    see(life, 60, 250, idle=True)
    see(life, 590, 300, rested_since=START + 50 * SECOND, rested_until=START + 580 * SECOND)
    life.take(make_commit(595, 250, topic="x"))
    see(life, 600, 300)
    assert told(life) == (580.0, 590.5, None)


def test_what_arrives_after_the_rest_of_a_group_that_went_back_is_bounded_by_the_rest() -> None:
    life = caught_up()
    see(life, 30, 100, idle=True)
    life.take(make_commit(585, 30, topic="x"))
    see(life, 590, 150, rested_since=START + 10 * SECOND, rested_until=START + 580 * SECOND)
    assert told(life) == (None, 30.5, "before_rounds")
    life.take(make_commit(595, 100, topic="x"))
    see(life, 600, 150)
    assert told(life) == (580.0, 590.5, None)


@pytest.mark.parametrize("since", [31, 600])
def test_a_rest_that_began_after_the_round_that_the_job_has_seen_tells_nothing(since: int) -> None:
    life = caught_up()
    see(life, 30, 100, idle=True)
    see(life, 590, 150, rested_since=START + since * SECOND, rested_until=START + 580 * SECOND)
    assert told(life) == (30.0, 590.5, None)


def test_marks_are_few_however_long_a_group_is_away_and_no_bound_is_wider_than_a_tenth_of_its_age() -> None:
    life = caught_up()
    rounds = 9_000  # a day
    for number in range(3, rounds):
        see(life, 10 * number, 100 + number)
    assert life.state is not None
    [known] = life.state.partitions["x"].values()
    assert len(known.marks) <= 3 * 120
    now = START + 10 * SECOND * rounds
    for committed in range(110, 100 + rounds - 3, 97):
        marks = list(known.marks)
        later = Life()
        later.state = life.state
        later.take(make_commit(10 * rounds - 1, committed, topic="x"))
        see(later, 10 * rounds, 100 + rounds)
        life.state.partitions["x"][0].marks = marks
        row = later.rows.lag[-1]
        earliest, latest = row.oldest_unread_time_min, row.oldest_unread_time_max
        assert earliest is not None
        assert latest is not None
        assert latest - earliest <= max(20 * SECOND, (now - latest) / 10)


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
    assert life.state is not None
    assert len(life.state.partitions["x"][0].marks) <= 3 * 2 * 192 + 3


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_marks_are_left_as_they_are(count: int) -> None:
    marks = [number for at in range(count) for number in (at, START + at * SECOND, START + at * SECOND + 500)]
    assert thinned(marks, START + HOUR) == marks


def test_a_lower_bound_at_the_beginning_of_all_times_is_one() -> None:
    assert unread_between(0, -1) == (0, None, "rounds", "uncertain_time")
    assert unread_between(0, 0) == (0, 0, "rounds", None)


def test_so_is_an_upper_bound_of_what_an_earlier_round_saw_at_a_time_that_is_not_known() -> None:
    life = Life.after(make_commit(5, 0, topic="x", time=0))
    for second, end, closed in ((10, 10, -1), (20, 20, 0), (30, 30, 10 * SECOND)):
        see(life, second, end, time=max(0, closed), closed=closed)
    assert life.rows.lag[-1].oldest_unread_time_max == 0


ROUNDS = 1_500


def test_the_truth_is_between_the_bounds_of_the_current_row_at_each_round() -> None:
    evaluations = bounded = wide = 0
    for seed in range(examples(200)):
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
