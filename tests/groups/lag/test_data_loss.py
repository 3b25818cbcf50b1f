"""Until when retention keeps what a group has not read: never a promise that the broker may break; and what is lost."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.groups.rows import GroupHealthRow, LagRow
from streaming.records import GroupInput, TopicObservation, TopicRetention
from tests.groups.build import (
    SECOND,
    START,
    Life,
    even,
    make_commit,
    make_member,
    make_observation,
    make_record,
    make_topic,
    packed,
)

HOUR_MS = 3_600_000

APPENDED = TopicRetention(HOUR_MS, -1, True, True)


def keeping(ms: int = HOUR_MS, size: int = -1, *, deletes: bool = True, append_time: bool = True) -> TopicRetention:
    return TopicRetention(ms, size, deletes, append_time)


def behind(kept: TopicRetention | None, *seconds: int, **more: Any) -> GroupHealthRow:
    """A group that has read all up to 20, and nothing of what came between the rounds at 20 and at 30.

    Rounds close half a second after they open.
    """
    life = Life.after(make_record(5, even("x", 1, "a")), make_commit(6, 100, topic="x"))
    for at, end in ((10, 100), (20, 100), (30, 150), (40, 150), *((at, 150) for at in seconds)):
        life.take(make_observation(at, make_topic("x", 1, end=end, retention=kept, **more)))
    return life.rows.group_health[-1]


def told(row: GroupHealthRow) -> tuple[float | None, float | None, str | None]:
    return row.loses_data_in_seconds_min, row.loses_data_in_seconds_max, row.loses_data_reason


def test_retention_counts_from_the_bounds_of_the_oldest_unread_record_on() -> None:
    row = behind(APPENDED)
    # It came between 20 and 30.5, was in the log a minute before it was readable at most, and the row is of 40.
    assert (row.round, *told(row)) == (40, 3_600 + 20 - 60 - 40, 3_600 + 30.5 - 40, None)
    place = row.loses_data_topic, row.loses_data_partition, row.loses_data_retention_seconds, row.loses_data_by
    assert place == ("x", 0, 3_600.0, "append_time")


def test_rows_are_written_at_changes_only_and_the_time_of_the_end_is_the_same_in_all_of_them() -> None:
    life = Life.after(make_record(5, even("x", 1, "a")), make_commit(6, 100, topic="x"))
    for at, end in ((10, 100), (20, 100), *((at, 150) for at in range(30, 2_000, 10))):
        life.take(make_observation(at, make_topic("x", 1, end=end, retention=APPENDED)))
    rows = [row for row in life.rows.group_health if row.loses_data_in_seconds_max is not None]
    assert len(rows) <= 2 + 2_000 // 600 + 2
    assert {round(row.round + (row.loses_data_in_seconds_max or 0), 3) for row in rows} == {3_630.5}


def test_what_is_past_its_retention_may_go_at_any_time_and_never_is_negative() -> None:
    assert told(behind(APPENDED, 3_599)) == (0.0, 31.5, None)
    assert told(behind(APPENDED, 9_000)) == (0.0, 0.0, None)


def test_with_create_time_the_bounds_rest_on_the_producers_and_the_row_says_so() -> None:
    row = behind(keeping(append_time=False))
    assert (told(row), row.loses_data_by) == (told(behind(APPENDED)), "create_time")


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (None, (None, None, "retention_unknown")),
        (keeping(deletes=False), (None, None, "no_retention")),
        (keeping(-1), (None, None, "no_retention")),
        (keeping(2**63 - 1), (None, None, "no_retention")),
        (keeping(100 * 366 * 86_400_000), (None, None, "no_retention")),
        (keeping(-1, 1_000), (None, None, "retention_bytes")),
        (keeping(-1, 0), (None, None, "retention_bytes")),
        (keeping(HOUR_MS, 1_000), (None, 3_590.5, "retention_bytes")),
        (keeping(0), (0.0, 0.0, None)),
    ],
)
def test_what_settings_do_not_promise_is_null_with_a_reason(kept: TopicRetention | None, expected: object) -> None:
    assert told(behind(kept)) == expected


def test_a_group_that_keeps_up_is_in_no_danger_however_short_the_retention_and_gets_no_rows_by_it() -> None:
    life = Life.after(make_record(5, even("x", 1, "a")))
    for at in range(10, 600, 10):
        life.take(make_commit(at - 1, at, topic="x"))
        life.take(make_observation(at, make_topic("x", 1, end=at + 5, retention=keeping(30 * SECOND))))
    assert told(life.rows.group_health[-1]) == (None, None, "keeps_up")
    without = Life.after(make_record(5, even("x", 1, "a")))
    for at in range(10, 600, 10):
        without.take(make_commit(at - 1, at, topic="x"))
        without.take(make_observation(at, make_topic("x", 1, end=at + 5)))
    assert len(without.rows.group_health) == len(life.rows.group_health)


def test_a_backlog_from_before_the_first_round_may_go_at_any_time() -> None:
    life = Life.after(
        make_record(5, even("x", 1, "a")),
        make_commit(6, 50, topic="x"),
        make_observation(10, make_topic("x", 1, end=100, retention=APPENDED)),
    )
    assert told(life.rows.group_health[-1]) == (None, 3_600.5, "before_rounds")


def test_no_lag_at_all_says_nothing() -> None:
    life = Life.after(make_record(5, even("x", 1, "a")), make_observation(10, make_topic("x", 1, retention=APPENDED)))
    assert told(life.rows.group_health[-1]) == (None, None, "lag_unknown")


@pytest.mark.parametrize("kept", [keeping(5 * HOUR_MS), None])
def test_of_several_topics_the_first_end_counts(kept: TopicRetention | None) -> None:
    # Topic x has unread records since the round at 30; topic y, which keeps them for longer, since the round at 20.
    life = Life.after(
        make_record(5, even("x", 1, "a", topics=("x", "y"))), *(make_commit(6, 100, topic=name) for name in ("x", "y"))
    )
    for at, x, y in ((10, 100, 100), (20, 100, 150), (30, 150, 150), (40, 150, 150)):
        topics = make_topic("x", 1, end=x, retention=APPENDED), make_topic("y", 1, end=y, retention=kept)
        life.take(make_observation(at, *topics))
    row = life.rows.group_health[-1]
    assert (row.round, row.loses_data_in_seconds_max, row.loses_data_topic) == (30, 3_600 + 30.5 - 30, "x")
    # What is kept for nobody knows how long may go at any time.
    assert row.loses_data_in_seconds_min == (None if kept is None else 3_600 + 20 - 60 - 30)


def topic(start: int, end: int = 5_000_000, **changes: Any) -> TopicObservation:
    return make_topic("x", 1, end=end, log_start_offsets=packed([start]), **changes)


def last(life: Life) -> LagRow:
    return life.rows.lag[-1]


def said(life: Life) -> list[tuple[str, int, str]]:
    """Findings of the newest row, each with the second of its beginning."""
    return [(f.finding, (f.since - START) // SECOND, f.detail) for f in life.rows.group_health[-1].findings]


def far_behind() -> Life:
    """A group that has committed 1,000, in a log that begins at 4,900,000."""
    return Life.after(
        make_commit(5, 1_000, topic="x"), make_observation(10, topic(4_900_000)), make_observation(20, topic(4_900_000))
    )


def starts(second: int, start: int, end: int = 5_000_000, **changes: Any) -> GroupInput:
    return make_observation(second, topic(start, end, **changes))


FAR_BEHIND = [make_commit(5, 1_000, topic="x"), starts(10, 4_900_000)]

# Inputs, the newest row's lag and lost records, and the findings.
LOST: dict[str, list[tuple[list[GroupInput], int | None, int | None, list[str]]]] = {
    "what was deleted unread is lost from the second round on, until the group has committed past it": [
        (FAR_BEHIND, 100_000, None, []),
        ([starts(20, 4_900_000)], 100_000, 4_899_000, ["data_lost"]),
        ([starts(30, 4_950_000), starts(40, 4_950_000)], 50_000, 4_949_000, ["data_lost"]),
        ([make_commit(45, 4_950_500, topic="x"), starts(50, 4_950_000)], 49_500, 0, []),
    ],
    "all of a log": [
        ([make_commit(5, 10, topic="x"), starts(10, 500, 500), starts(20, 500, 500)], 0, 490, ["data_lost"]),
    ],
    # An exactly-once pipeline at rest stays one record behind; in time everything expires, the marker too.
    "the marker of a transaction is none": [
        ([make_commit(5, 499, topic="x"), starts(10, 500, 500), starts(20, 500, 500)], 0, 0, []),
    ],
    "where the log starts is not known": [
        ([make_commit(5, 10, topic="x"), starts(10, -1, 500), starts(20, -1, 500)], 490, None, []),
    ],
    "the log of a topic that was created again says nothing of the one before": [
        ([make_commit(5, 10, topic="x"), starts(10, 0, topic_id="first")], 4_999_990, 0, []),
        (
            [starts(20, 400, topic_id="second"), starts(30, 400, topic_id="second")],
            None,
            None,
            ["topic_recreated"],
        ),
    ],
}


@pytest.mark.parametrize("case", LOST)
def test_offsets_are_lost_once_they_are_certainly_deleted_unread(case: str) -> None:
    life = Life()
    for inputs, lag, lost, findings in LOST[case]:
        life.take(*inputs)
        assert (last(life).lag, last(life).lost_records, [name for name, *_ in said(life)]) == (lag, lost, findings)


def test_a_loss_says_where_and_how_much_since_the_round_that_was_certain() -> None:
    life = far_behind()
    assert (last(life).lost_records, life.rows.group_health[-1].lost_records) == (4_899_000, 4_899_000)
    assert said(life) == [("data_lost", 20, "deleted before the group committed past it: x 0 (4,899,000 offsets)")]
    health = life.rows.group_health[-1]
    assert (health.lag_total, health.lag_max) == (100_000, 100_000)


def test_one_round_is_not_enough_for_a_loss_as_the_group_may_have_committed_since_its_position_was_read() -> None:
    # Kafka Streams commits, and deletes what it has committed, all day: the position of the log is read before the log
    # start, and is earlier than both.
    life = Life.after(
        make_commit(5, 100, topic="x"), make_observation(10, topic(100, 300)), make_observation(20, topic(200, 300))
    )
    assert (last(life).log_start_offset, last(life).lag, last(life).lost_records, said(life)) == (200, 100, 0, [])
    life.take(make_commit(25, 200, topic="x"), make_observation(30, topic(200, 300)))
    assert {row.lost_records for row in life.rows.lag} == {0}
    assert {row.findings for row in life.rows.group_health} == {()}


def test_a_round_that_does_not_know_the_lag_ends_no_loss() -> None:
    life = far_behind()
    life.take(make_observation(30, topic(4_900_000), held_since=START + 25 * SECOND))
    assert [name for name, *_ in said(life)] == ["offsets_blocked", "data_lost"]
    life.take(make_observation(40, topic(4_900_000)))
    assert [(name, since) for name, since, _ in said(life)] == [("data_lost", 20)]


def test_what_a_group_commits_and_has_deleted_while_the_log_is_blocked_is_not_lost() -> None:
    # As Kafka Streams does, with commits that nobody can read before another group's transaction ends.
    life = Life.after(make_commit(5, 1_000, topic="x"), make_observation(10, topic(900, 1_000)))
    for at, start in ((50, 1_000), (60, 2_000), (70, 3_000)):
        life.take(make_observation(at, topic(start, start + 500), held_since=START + 12 * SECOND))
        assert [name for name, *_ in said(life)] == ["offsets_blocked"]
    life.take(make_commit(75, 3_400, topic="x"), make_observation(80, topic(3_000, 3_500)))
    assert (last(life).lost_records, said(life)) == (0, [])
    assert {row.lost_records for row in life.rows.group_health} == {0}


def test_what_was_lost_before_the_log_was_blocked_does_not_grow_meanwhile_and_grows_afterwards() -> None:
    life = far_behind()
    (before,) = said(life)
    life.take(make_observation(30, topic(4_950_000), held_since=START + 25 * SECOND))
    assert said(life)[1:] == [before]
    for at in (40, 50):
        life.take(make_observation(at, topic(4_950_000)))
    assert last(life).lost_records == 4_949_000


def test_a_loss_on_a_topic_that_is_not_subscribed_is_in_its_row_alone() -> None:
    life = Life.after(make_record(1, (make_member("a", ("y",), {"y": (0,)}),)), make_commit(5, 10, topic="x"))
    for at in (10, 20):
        life.take(make_observation(at, topic(400), make_topic("y", 1)))
    assert [row.lost_records for row in life.rows.lag if row.topic == "x"] == [None, 390]
    assert (life.rows.group_health[-1].lost_records, said(life)) == (0, [])


def test_a_log_start_or_a_last_stable_offset_that_moves_makes_a_row() -> None:
    life = Life.after(make_commit(5, 80, topic="x"))
    for position, start, stable in ((10, 0, 90), (20, 0, 90), (30, 40, 90), (40, 40, 95), (50, 40, 95)):
        seen = make_topic("x", 1, end=100, log_start_offsets=packed([start]), last_stable_offsets=packed([stable]))
        life.take(make_observation(position, seen))
    assert [(row.round, row.log_start_offset, row.lag_read_committed) for row in life.rows.lag] == [
        (10, 0, 10),
        (30, 40, 10),
        (40, 40, 15),
    ]


def test_losses_on_many_partitions_are_one_finding() -> None:
    life = Life()
    seen = make_topic("x", 2, end=900, log_start_offsets=packed([500, 700]))
    commits = [make_commit(5 + p, 100, topic="x", partition=p) for p in (0, 1)]
    life.take(*commits, make_observation(10, seen), make_observation(20, seen))
    assert [detail for *_, detail in said(life)] == [
        "deleted before the group committed past it: x 0 (400 offsets), x 1 (600 offsets)"
    ]
    assert life.rows.group_health[-1].lost_records == 1_000
