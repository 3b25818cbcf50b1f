"""Commits below the log start: lag counts the readable records, and the others are lost once that is certain."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.groups.rows import LagRow
from streaming.records import GroupInput, TopicObservation
from tests.groups.build import (
    SECOND,
    START,
    Life,
    make_commit,
    make_member,
    make_observation,
    make_record,
    make_topic,
    packed,
)


def topic(start: int, end: int = 5_000_000, **changes: Any) -> TopicObservation:
    return make_topic("x", 1, end=end, log_start_offsets=packed([start]), **changes)


def last(life: Life) -> LagRow:
    return life.rows.lag[-1]


def said(life: Life) -> list[tuple[str, int, str]]:
    """Findings of the newest row, each with the second of its beginning."""
    return [(f.finding, (f.since - START) // SECOND, f.detail) for f in life.rows.group_health[-1].findings]


def behind() -> Life:
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
    life = behind()
    assert (last(life).lost_records, life.rows.group_health[-1].lost_records) == (4_899_000, 4_899_000)
    assert said(life) == [("data_lost", 20, "deleted before the group committed past it: x 0 (4,899,000 offsets)")]
    health = life.rows.group_health[-1]
    assert (health.lag_total, health.lag_max) == (100_000, 100_000)


def test_one_round_is_not_enough_for_a_loss_as_the_group_may_have_committed_since_its_position_was_read() -> None:
    # Kafka Streams commits, and deletes what it has committed, all day: the position of the log is read before the log
    # start, and is earlier than both.
    life = Life.after(make_commit(5, 100, topic="x"), make_observation(10, topic(100, 300)))
    life.take(make_observation(20, topic(200, 300)))
    assert (last(life).log_start_offset, last(life).lag, last(life).lost_records, said(life)) == (200, 100, 0, [])
    life.take(make_commit(25, 200, topic="x"), make_observation(30, topic(200, 300)))
    assert {row.lost_records for row in life.rows.lag} == {0}
    assert {row.findings for row in life.rows.group_health} == {()}


def test_a_round_that_does_not_know_the_lag_ends_no_loss() -> None:
    life = behind()
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
    life = behind()
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
        "deleted before the group committed past it: x (1,000 offsets on 2 partitions)"
    ]
    assert life.rows.group_health[-1].lost_records == 1_000
