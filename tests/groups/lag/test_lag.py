"""Lag per partition, its judgement, and the conditions for a row."""

from __future__ import annotations

from streaming.groups.rows import LagRow
from streaming.records import GroupInput, TopicObservation
from tests.groups.build import (
    MINUTE,
    SECOND,
    START,
    Life,
    make_commit,
    make_commits,
    make_member,
    make_observation,
    make_record,
    make_topic,
    packed,
)


def last(life: Life, topic: str = "x", partition: int = 0) -> LagRow:
    return [row for row in life.rows.lag if (row.topic, row.partition) == (topic, partition)][-1]


def one_round(*inputs: GroupInput, topic: TopicObservation | None = None, **observation: object) -> LagRow:
    life = Life.after(*inputs, make_observation(10, topic or make_topic("x", 1, end=100), **observation))
    return last(life)


def owner(*topics: str) -> GroupInput:
    topics = topics or ("x",)
    return make_record(1, (make_member("a", topics, dict.fromkeys(topics, (0,))),))


def test_lag_is_end_minus_committed() -> None:
    row = one_round(make_commit(5, 70, topic="x"))
    assert (row.committed_offset, row.high_watermark, row.lag, row.ahead_by, row.reason) == (70, 100, 30, 0, None)
    assert (row.round, row.round_time, row.last_commit_time) == (10, START + 10 * SECOND, START + 5 * SECOND)
    assert (row.commits, row.rewound_by, row.offset_deleted, row.ended, row.lag_status) == (1, 0, False, False, "ok")


def test_lag_stable_is_against_the_last_stable_offset() -> None:
    topic = make_topic("x", 1, end=100, last_stable_offsets=packed([80]), log_start_offsets=packed([3]))
    row = one_round(make_commit(5, 70, topic="x"), topic=topic)
    assert (row.lag, row.lag_read_committed, row.last_stable_offset, row.log_start_offset) == (30, 10, 80, 3)


def test_without_a_commit_lag_is_null_with_the_reason() -> None:
    row = one_round(owner())
    assert (row.lag, row.lag_read_committed, row.ahead_by, row.reason, row.lag_status) == (
        None,
        None,
        None,
        "no_commit",
        "no_commit",
    )
    assert (row.committed_offset, row.high_watermark, row.last_commit_time) == (None, 100, None)


def test_a_commit_beyond_the_end_is_ahead() -> None:
    row = one_round(make_commit(5, 130, topic="x"))
    assert (row.lag, row.ahead_by, row.lag_status) == (0, 30, "ahead")


def test_read_committed_lag_is_never_above_the_lag_though_the_stable_offset_is_asked_for_later() -> None:
    topic = make_topic("x", 1, end=100, last_stable_offsets=packed([105]))
    row = one_round(make_commit(5, 90, topic="x"), topic=topic)
    assert (row.lag, row.lag_read_committed, row.last_stable_offset) == (10, 10, 105)


def test_lag_is_unknown_while_the_log_is_held_back() -> None:
    row = one_round(make_commit(5, 70, topic="x"), held_since=START)
    assert (row.lag, row.reason, row.lag_status, row.high_watermark) == (None, "offsets_blocked", "unknown", 100)


def test_lag_is_unknown_where_no_end_was_to_be_had() -> None:
    row = one_round(make_commit(5, 70, topic="x"), topic=make_topic("x", 1, end=-1))
    assert (row.lag, row.reason, row.high_watermark) == (None, "high_watermark_unknown", None)


def test_lag_is_unknown_for_a_topic_that_the_round_did_not_show() -> None:
    row = one_round(make_commit(5, 70, topic="x"), topic=make_topic("y", 1))
    assert (row.lag, row.reason, row.lag_status) == (None, "topic_not_visible", "unknown")


def test_lag_is_unknown_for_a_topic_that_does_not_exist() -> None:
    row = one_round(make_commit(5, 70, topic="x"), topic=make_topic("x", None))
    assert (row.lag, row.reason) == (None, "topic_does_not_exist")


def test_a_commit_of_a_partition_that_a_smaller_topic_no_longer_has_is_told() -> None:
    life = Life.after(make_commit(5, 70, topic="x", partition=3), make_observation(10, make_topic("x", 2)))
    assert (last(life, partition=3).lag, last(life, partition=3).reason) == (None, "beyond_partition_count")


def test_an_observation_is_judged_with_exactly_the_commits_below_its_position() -> None:
    life = Life.after(
        make_commit(9, 50, topic="x"), make_commit(10, 90, topic="x"), make_observation(10, make_topic("x", 1))
    )
    assert (last(life).committed_offset, last(life).commits) == (50, 1)
    life.take(make_observation(11, make_topic("x", 1)))
    assert (last(life).committed_offset, last(life).commits) == (90, 1)


def test_the_commits_of_all_rows_sum_up_to_all_commits() -> None:
    life = Life()
    total = 0
    for step in range(1, 12):
        count = step % 4
        total += count
        if count:
            life.take(make_commits(step * 10, *range(count), topic="x"))
        life.take(make_observation(step * 10 + 9, make_topic("x", 1)))
    life.take(make_commits(200, 5, 6, None, topic="x"), make_observation(210, gone="deleted"))
    assert sum(row.commits for row in life.rows.lag) == total + 2
    assert sum(row.commits for row in life.rows.group_health) == total + 2


def test_a_step_back_is_told_once() -> None:
    life = Life.after(make_commits(5, 80, 20, 30, topic="x"), make_observation(10, make_topic("x", 1)))
    life.take(make_commit(15, 25, topic="x"), make_observation(20, make_topic("x", 1)))
    life.take(make_commit(25, 26, topic="x"), make_observation(30, make_topic("x", 1)))
    assert [row.rewound_by for row in life.rows.lag] == [60, 5, 0]


def test_a_deleted_offset_closes_the_partition() -> None:
    life = Life.after(make_commit(5, 80, topic="x"), make_observation(10, make_topic("x", 1)))
    life.take(make_commit(15, None, topic="x"), make_observation(20, make_topic("x", 1)))
    row = last(life)
    assert (row.ended, row.offset_deleted, row.committed_offset, row.lag, row.reason) == (
        True,
        True,
        None,
        None,
        "ended",
    )
    life.take(make_observation(700, make_topic("x", 1)))
    assert len(life.rows.lag) == 2


def test_a_deleted_offset_of_a_subscribed_partition_leaves_a_partition_without_a_commit() -> None:
    life = Life.after(owner(), make_commit(5, 80, topic="x"), make_observation(10, make_topic("x", 1)))
    life.take(make_commit(15, None, topic="x"), make_observation(20, make_topic("x", 1)))
    row = last(life)
    assert (row.ended, row.offset_deleted, row.committed_offset, row.reason) == (False, True, None, "no_commit")


def test_a_partition_expired_and_committed_again_between_two_rounds_says_so() -> None:
    life = Life.after(make_commit(5, 80, topic="x"), make_observation(10, make_topic("x", 1)))
    life.take(make_commits(15, None, 90, topic="x"), make_observation(20, make_topic("x", 1)))
    assert (last(life).offset_deleted, last(life).committed_offset) == (True, 90)


def test_a_row_is_written_only_when_something_changed() -> None:
    life = Life.after(make_commit(5, 80, topic="x"))
    for position, end in ((10, 100), (20, 100), (30, 101), (40, 101)):
        life.take(make_observation(position, make_topic("x", 1, end=end)))
    assert [row.round for row in life.rows.lag] == [10, 30]


def test_a_commit_of_the_same_offset_is_counted_in_a_row() -> None:
    life = Life.after(make_commit(5, 80, topic="x"), make_observation(10, make_topic("x", 1)))
    life.take(make_commit(15, 80, topic="x"), make_observation(20, make_topic("x", 1)))
    assert [(row.round, row.commits) for row in life.rows.lag] == [(10, 1), (20, 1)]


def test_a_row_is_repeated_at_the_heartbeat() -> None:
    life = Life.after(make_commit(5, 80, topic="x"))
    for position in (10, 600, 609, 610, 620):
        life.take(make_observation(position, make_topic("x", 1)))
    assert [row.round for row in life.rows.lag] == [10, 610]


def test_the_round_of_an_idle_group_is_its_heartbeat_however_early_it_comes() -> None:
    life = Life.after(make_commit(5, 80, topic="x"), make_observation(10, make_topic("x", 1)))
    for position, idle in ((200, False), (300, True), (890, True), (900, False)):
        life.take(make_observation(position, make_topic("x", 1), idle=idle))
    assert [row.round for row in life.rows.lag] == [10, 300, 890]
    assert [row.round for row in life.rows.group_health] == [10, 300, 890]


def test_commits_of_a_time_without_rounds_are_counted_in_the_next_one() -> None:
    life = Life.after(make_commit(5, 80, topic="x"), make_observation(10, make_topic("x", 1), idle=True))
    for position in (20, 100, 400):
        life.take(make_commit(position, 80, topic="x"))
    life.take(make_observation(600, make_topic("x", 1), idle=True))
    assert [(row.round, row.commits) for row in life.rows.lag] == [(10, 1), (600, 3)]


def test_a_new_owner_makes_a_row() -> None:
    life = Life.after(owner(), make_observation(10, make_topic("x", 1)))
    life.take(
        make_record(15, (make_member("b", ("x",), {"x": (0,)}),), generation=2),
        make_observation(20, make_topic("x", 1)),
    )
    assert [(row.member_id, row.client_id, row.client_host) for row in life.rows.lag] == [
        ("a", "consumer-1", "/127.0.0.1"),
        ("b", "consumer-1", "/127.0.0.1"),
    ]


def test_every_partition_of_a_subscribed_topic_has_a_row() -> None:
    life = Life.after(owner(), make_observation(10, make_topic("x", 3)))
    assert [(row.partition, row.member_id) for row in life.rows.lag] == [(0, "a"), (1, None), (2, None)]


def test_topics_that_are_not_subscribed_are_marked_and_stay_out_of_the_sums() -> None:
    life = Life.after(
        owner("x"),
        make_commit(5, 70, topic="x"),
        make_commit(6, 10, topic="old"),
        make_observation(10, make_topic("x", 1), make_topic("old", 1)),
    )
    assert (last(life, "x").subscribed, last(life, "old").subscribed) == (True, False)
    assert (last(life, "old").lag, life.rows.group_health[-1].lag_total) == (90, 30)


def test_without_a_membership_every_topic_counts() -> None:
    assert one_round(make_commit(5, 70, topic="x")).subscribed is True


def test_the_sums_of_a_group_are_over_known_lags() -> None:
    life = Life.after(
        make_record(1, (make_member("a", ("x",), {"x": (0, 1, 2)}),)),
        make_commit(5, 70, topic="x", partition=0),
        make_commit(6, 50, topic="x", partition=1),
        make_observation(10, make_topic("x", 3, end=100, last_stable_offsets=packed([90, 90, 90]))),
    )
    row = life.rows.group_health[-1]
    assert (row.lag_total, row.lag_read_committed_total, row.lag_max, row.lag_unknown) == (80, 60, 50, 1)
    assert (row.topics, row.partitions, row.commits) == (1, 3, 2)


# The judgement uses the last ten rounds.


def rhythm(life: Life, commits: list[int | None], ends: list[int], start: int = 10) -> list[str]:
    """One round every ten seconds, each after a commit (None: no commit) and with an end; returns the statuses."""
    statuses = []
    for step, (offset, end) in enumerate(zip(commits, ends, strict=True)):
        at = start + 10 * step
        if offset is not None:
            life.take(make_commit(at, offset, topic="x"))
        life.take(make_observation(at + 1, make_topic("x", 1, end=end)))
        statuses.append(last(life).lag_status)
    return statuses


def busy(life: Life) -> None:
    """Thirty rounds of a group that commits in every round and keeps up except for five records."""
    assert set(rhythm(life, list(range(0, 300, 10)), list(range(5, 305, 10)))) == {"ok"}


def test_a_group_that_commits_nothing_any_more_while_lag_grows_has_stopped() -> None:
    life = Life()
    busy(life)
    statuses = rhythm(life, [None] * 12, list(range(310, 430, 10)), start=310)
    assert statuses == ["ok"] * 9 + ["stopped"] * 3


def test_a_group_that_has_committed_twice_by_hand_is_not_falling_behind() -> None:
    statuses = rhythm(Life(), [1, None, None, None, None, None, 2, *[None] * 6], list(range(10, 140, 10)))
    assert set(statuses) == {"ok"}


def test_a_stopped_group_that_goes_on_is_ok_again() -> None:
    life = Life()
    busy(life)
    rhythm(life, [None] * 12, list(range(310, 430, 10)), start=310)
    assert rhythm(life, [425], [430], start=430) == ["ok"]


def test_a_group_with_a_slow_cadence_has_not_stopped() -> None:
    life = Life()
    minutes = 5 * MINUTE // (10 * SECOND)
    commits = [step * 10 if step % minutes == 0 else None for step in range(12 * minutes)]
    assert set(rhythm(life, commits, [step * 10 + 100 for step in range(12 * minutes)])) == {"ok"}


def test_a_job_that_commits_twice_and_pauses_has_not_stopped() -> None:
    life = Life.after(make_commit(5, 1, topic="x"), make_commit(6, 2, topic="x"))
    assert set(rhythm(life, [None] * 60, list(range(10, 610, 10)))) == {"ok"}


def test_a_group_of_which_one_commit_is_known_has_not_stopped() -> None:
    life = Life.after(make_commit(5, 1, topic="x"))
    assert set(rhythm(life, [None] * 30, list(range(10, 310, 10)))) == {"ok"}


def test_a_group_that_has_read_all_but_a_transaction_s_marker_has_not_stopped() -> None:
    life = Life()
    rhythm(life, list(range(0, 300, 10)), list(range(1, 301, 10)))
    assert set(rhythm(life, [None] * 60, [291] * 60, start=310)) == {"ok"}


def test_commits_that_do_not_move_are_a_stall() -> None:
    life = Life()
    busy(life)
    statuses = rhythm(life, [290] * 12, list(range(310, 430, 10)), start=310)
    # The last commit of the busy rounds was already 290, so after nine more there are ten rounds at 290. Until then it
    # is behind its earlier commits, by more with each round.
    assert statuses == ["ok"] * 4 + ["falling_behind"] * 4 + ["stalled"] * 4


def test_a_group_slower_than_its_topic_falls_behind() -> None:
    life = Life()
    commits: list[int | None] = list(range(0, 150, 10))
    statuses = rhythm(life, commits, list(range(50, 500, 30)))
    assert statuses == ["ok"] * 9 + ["falling_behind"] * 6


def test_one_late_commit_is_not_falling_behind() -> None:
    life = Life()
    busy(life)
    assert rhythm(life, [None, 310, 320], [310, 315, 325], start=310) == ["ok", "ok", "ok"]


def test_a_group_that_catches_up_is_ok() -> None:
    life = Life()
    assert set(rhythm(life, list(range(0, 600, 30)), list(range(800, 1000, 10)))) == {"ok"}


def test_an_offset_set_back_is_rewound_until_it_is_where_it_was() -> None:
    life = Life()
    assert rhythm(life, [90, 20, 50, 89, 90], [100] * 5) == ["ok", "rewound", "rewound", "rewound", "ok"]


def test_a_topic_made_again_is_not_taken_for_a_rewind() -> None:
    life = Life.after(make_commit(5, 90, topic="x"), make_observation(10, make_topic("x", 1, topic_id="first")))
    life.take(make_commit(15, 3, topic="x"), make_observation(20, make_topic("x", 1, end=10, topic_id="second")))
    # The commit may belong to either of the two topics.
    assert (last(life).lag_status, last(life).rewound_by) == ("unknown", 0)
    life.take(make_commit(25, 4, topic="x"), make_observation(30, make_topic("x", 1, end=10, topic_id="second")))
    assert (last(life).lag_status, last(life).lag, last(life).rewound_by) == ("ok", 6, 0)


def test_rounds_without_a_known_lag_are_not_judged() -> None:
    life = Life()
    busy(life)
    for step in range(30):
        life.take(make_observation(320 + step * 10, make_topic("x", 1, end=400 + step), held_since=START))
    assert last(life).lag_status == "unknown"
    life.take(make_commit(630, 425, topic="x"), make_observation(640, make_topic("x", 1, end=430)))
    assert last(life).lag_status == "ok"


def test_the_status_of_a_group_is_its_worst_partition_s() -> None:
    life = Life.after(
        make_record(1, (make_member("a", ("x",), {"x": (0, 1, 2)}),)),
        make_commit(5, 70, topic="x", partition=0),
        make_commit(6, 150, topic="x", partition=1),
        make_observation(10, make_topic("x", 3)),
    )
    assert [row.lag_status for row in life.rows.lag] == ["ok", "ahead", "no_commit"]
    assert life.rows.group_health[-1].lag_status == "ahead"


def test_a_group_that_has_committed_offset_0_has_a_commit() -> None:
    row = one_round(make_commit(5, 0, topic="x", time=0))
    assert (row.committed_offset, row.last_commit_time, row.lag) == (0, 0, 100)


def test_a_group_that_stood_before_a_transaction_marker_is_not_stalled_at_once_when_records_come() -> None:
    life = Life()
    for second in range(10, 210, 10):
        life.take(make_commit(second - 1, 99, topic="x"), make_observation(second, make_topic("x", 1, end=100)))
    life.take(make_commit(215, 99, topic="x"), make_observation(220, make_topic("x", 1, end=150)))
    assert (last(life).lag, last(life).lag_status) == (51, "ok")


def test_partitions_of_a_topic_that_no_round_shows_are_closed_once_they_have_neither_an_owner_nor_a_commit() -> None:
    life = Life.after(
        make_record(1, (make_member("a", ("x",), {"x": (0, 1)}),)),
        make_commit(5, 70, topic="x", partition=0),
        make_observation(10, make_topic("x", 2)),
    )
    without = (make_member("a", ("x",), {}),)
    life.take(make_record(15, without, generation=2), make_commit(16, None, topic="x"), make_observation(20))
    rows = [(row.partition, row.ended) for row in life.rows.lag if row.round_time > START + 10 * SECOND]
    assert rows == [(0, True), (1, True)]


def test_a_log_that_never_held_a_record_ends_at_0() -> None:
    row = one_round(make_commit(5, 0, topic="x"), topic=make_topic("x", 1, end=0))
    assert (row.high_watermark, row.last_stable_offset, row.log_start_offset, row.lag) == (0, 0, 0, 0)
