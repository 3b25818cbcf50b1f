"""Committed offsets of groups whose log is not read: those that a round has seen for the first time."""

from __future__ import annotations

from streaming.groups.seen.commits import window_seen
from streaming.records import SeenCommits
from tests.groups.build import (
    SECOND,
    Life,
    even,
    make_look,
    make_topic,
)
from tests.groups.seen.looks import OTHER_ID, TOPIC_ID, X, classic


def test_offsets_that_moved_are_lag_without_commits() -> None:
    life = Life()
    seen = classic(*even("x", 2, "a"))
    life.take(make_look(1, X, classic=seen, commits=SeenCommits(True, {"x": ((0, 10), (1, 90))})))
    life.take(make_look(3, X, commits=SeenCommits(False, {"x": ((0, 60),)})))
    life.take(make_look(5, X, commits=SeenCommits(False, {"x": ((0, 40), (1, -1))})))
    rows = [(r.round, r.partition, r.committed_offset, r.lag, r.commits, r.rewound_by) for r in life.rows.lag]
    assert rows == [
        *((1, 0, 10, 90, None, 0), (1, 1, 90, 10, None, 0)),
        (3, 0, 60, 40, None, 0),
        *((5, 0, 40, 60, None, 20), (5, 1, None, None, None, 0)),
    ]
    assert life.rows.lag[-1].offset_deleted
    assert {row.last_commit_time for row in life.rows.lag} == {None}
    assert {row.commits for row in life.rows.group_health} == {None}


def test_offsets_missing_from_all_of_them_are_gone_and_equal_ones_are_no_news() -> None:
    life = Life()
    life.take(make_look(1, X, state="Empty", commits=SeenCommits(True, {"x": ((0, 10), (1, 90))})))
    life.take(make_look(3, X, state="Empty", commits=SeenCommits(True, {"x": ((0, 10), (1, 90))})))
    assert {row.round for row in life.rows.lag} == {1}
    life.take(make_look(5, X, state="Empty", commits=SeenCommits(True, {"x": ((0, 10),)})))
    assert [(row.round, row.partition, row.ended) for row in life.rows.lag][2:] == [(5, 1, True)]


def test_offset_zero_is_an_offset() -> None:
    life = Life()
    life.take(make_look(1, X, state="Empty", commits=SeenCommits(True, {"x": ((0, 0), (1, 0))})))
    life.take(make_look(3, X, state="Empty", commits=SeenCommits(False, {"x": ((0, -1),)})))
    life.take(make_look(5, X, state="Empty", commits=SeenCommits(True, {})))
    rows = [(r.round, r.partition, r.committed_offset, r.lag, r.offset_deleted) for r in life.rows.lag]
    assert rows == [(1, 0, 0, 100, False), (1, 1, 0, 100, False), (3, 0, None, None, True), (5, 1, None, None, True)]


def test_the_offset_of_a_new_topic_of_the_name_is_no_step_back() -> None:
    first, second = make_topic("x", 1, end=100, topic_id=TOPIC_ID), make_topic("x", 1, end=9, topic_id=OTHER_ID)
    life = Life()
    life.take(make_look(1, first, state="Empty", commits=SeenCommits(True, {"x": ((0, 90),)})))
    life.take(make_look(3, second, state="Empty", commits=SeenCommits(False, {"x": ((0, 5),)})))
    row = life.rows.lag[-1]
    assert (row.committed_offset, row.rewound_by, row.reason) == (5, 0, "topic_recreated")
    life.take(make_look(5, second, state="Empty", commits=SeenCommits(False, {"x": ((0, 7),)})))
    assert (life.rows.lag[-1].lag, life.rows.lag[-1].reason) == (2, None)


def test_a_group_with_lag_whose_offset_stands_still_is_stopped_by_rounds_of_its_own_rhythm() -> None:
    life = Life()
    for number in range(10, 410, 10):
        moved = SeenCommits(False, {"x": ((0, number),)}) if number <= 200 else None
        topic = make_topic("x", 1, end=number + 5)
        life.take(make_look(number, topic, state="Empty", commits=moved, elapsed=number * SECOND))
    statuses = {row.round: row.lag_status for row in life.rows.lag}
    assert statuses[200] == "ok"
    assert statuses[400] == "stopped"


def test_an_offset_that_a_round_misses_is_deleted_once() -> None:
    gone = window_seen(7, "x", 1, -1)
    assert (gone.commits, gone.tombstones, gone.deleted, gone.first_record, gone.last_record) == (0, 1, True, 7, 7)
    seen = window_seen(7, "x", 1, 40)
    assert (seen.commits, seen.tombstones, seen.deleted, seen.first_offset, seen.offset) == (1, 0, False, 40, 40)
