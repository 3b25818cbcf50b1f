"""What the lag of a group's partitions is together, and since when the group is behind."""

from __future__ import annotations

from tests.groups.build import (
    SECOND,
    START,
    Life,
    make_commit,
    make_member,
    make_observation,
    make_record,
    make_topic,
)
from tests.groups.lag.backlog import behind, caught_up, health, see, told, told_of


def test_a_group_is_as_far_behind_as_its_oldest_unread_record() -> None:
    life = Life()
    topic = lambda *ends: make_topic("x", 2, end=ends)  # noqa: E731
    life.take(make_commit(5, 100, topic="x"), make_commit(6, 100, topic="x", partition=1))
    life.take(make_observation(10, topic(100, 100)), make_observation(20, topic(100, 100)))
    assert health(life) == (0.0, 0.0, None, None)
    life.take(make_observation(30, topic(100, 150)))
    # The age is as of the round's opening, and the record may have come since, so the group may keep up.
    assert health(life) == (0.0, 10.0, None, None)
    life.take(make_observation(40, topic(150, 200)))
    assert health(life) == (9.5, 20.0, None, ("x", 1))
    life.take(make_commit(45, 200, topic="x", partition=1), make_observation(50, topic(150, 200)))
    assert health(life) == (9.5, 20.0, None, ("x", 0))


def test_a_group_that_keeps_up_at_a_constant_distance_has_no_row_for_that_in_each_round() -> None:
    life = Life()
    for second in range(10, 300, 10):
        life.take(make_commit(second - 1, 10 * second - 5, topic="x"))
        see(life, second, 10 * second)
    written = len(life.rows.group_health)
    assert written <= 3
    assert health(life) == (0.0, 10.0, None, None)
    see(life, 300, 3_000)
    see(life, 310, 3_000)
    assert health(life) == (9.5, 20.0, None, ("x", 0))


def test_one_partition_that_is_behind_since_before_the_rounds_leaves_the_upper_bound_of_the_group_open() -> None:
    life = Life()
    life.take(make_commit(5, 100, topic="x"), make_commit(6, 90, topic="x", partition=1))
    life.take(make_observation(10, make_topic("x", 2)), make_observation(20, make_topic("x", 2, end=(150, 100))))
    assert health(life) == (9.5, None, "before_rounds", ("x", 1))
    other = Life()
    other.take(make_commit(5, 90, topic="x"), make_commit(6, 100, topic="x", partition=1))
    other.take(make_observation(10, make_topic("x", 2)), make_observation(20, make_topic("x", 2, end=(100, 150))))
    assert health(other) == (9.5, None, "before_rounds", ("x", 0))


def test_a_group_whose_upper_bound_is_open_gets_no_row_because_another_partition_reads_on() -> None:
    life = Life()
    life.take(make_commit(5, 90, topic="x"))  # before the rounds, and nothing since
    for second in range(10, 300, 10):
        life.take(make_commit(second - 1, 10 * second, topic="x", partition=1))
        life.take(make_observation(second, make_topic("x", 2, end=(100, 10 * second + 15))))
    assert health(life)[1:] == (None, "before_rounds", ("x", 0))
    assert [row.round for row in life.rows.group_health] == [10]


def test_a_group_whose_lag_is_not_known_is_neither_behind_nor_caught_up() -> None:
    life = caught_up()
    see(life, 30, 150, held_since=START)
    assert health(life) == (None, None, "lag_unknown", None)


def test_topics_that_the_group_no_longer_subscribes_to_do_not_count() -> None:
    life = behind()
    life.take(make_record(55, [make_member("a", ("y",))]))
    life.take(make_observation(60, make_topic("x", 1, end=250), make_topic("y", 1, end=0)))
    assert health(life)[2:] == ("lag_unknown", None)
    assert told_of(life, "x").oldest_unread_time_max == START + 30 * SECOND + SECOND // 2


def test_a_backlog_of_which_no_time_is_certain_does_not_keep_up() -> None:
    life = Life()
    life.take(make_commit(5, 0, topic="x"))
    see(life, 10, 100_000, closed=-1)
    assert told(life) == (None, None, "uncertain_time")
    assert health(life) == (0.0, None, "uncertain_time", None)


def test_a_group_whose_log_was_cut_back_does_not_keep_up() -> None:
    life = Life()
    life.take(make_commit(5, 100, topic="x"))
    see(life, 10, 100)
    for second in (30, 40):
        see(life, second, 1_000)
    see(life, 50, 900)
    assert health(life)[3] == ("x", 0)


def test_sums_beyond_what_a_state_can_hold_are_cut_off() -> None:
    life = Life()
    members = (make_member("a", ("x",), {"x": (0, 1, 2)}),)
    most = 2**63 - 1
    life.take(make_record(5, members), make_observation(10, make_topic("x", 3, end=0)))
    life.take(make_observation(20, make_topic("x", 3, end=most)), make_observation(30, make_topic("x", 3, end=most)))
    life.take(*(make_commit(40 + number, 0, topic="x", partition=number) for number in range(3)))
    life.take(make_observation(50, make_topic("x", 3, end=most)), make_observation(60, make_topic("x", 3, end=most)))
    assert life.rows.group_health[-1].lag_total == most
