"""Events of committed offsets other than commits: reported once, with the right kind, at the round that shows them."""

from __future__ import annotations

import msgspec
import pytest

from streaming.groups.rows import LagRow
from streaming.records import CommitWindow, Compacted, GroupInput, TopicObservation, merge_windows
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
)


def commit(record: int, offset: int | None, topic_id: str | None, partition: int = 0) -> CommitWindow:
    """One commit with the topic's id, as brokers from 4.1 on write it."""
    return msgspec.structs.replace(make_commit(record, offset, topic="x", partition=partition), topic_id=topic_id)


def topic(topic_id: str | None, partitions: int | None = 1, end: int = 100) -> TopicObservation:
    return make_topic("x", partitions, end=end, topic_id=topic_id)


def lag_of(life: Life, partition: int = 0) -> LagRow:
    return [row for row in life.rows.lag if row.partition == partition][-1]


def said(life: Life) -> dict[str, str]:
    """Findings of the newest row, with their details."""
    return {f.finding: f.detail for f in life.rows.group_health[-1].findings}


def since(life: Life, finding: str) -> int:
    [found] = [f for f in life.rows.group_health[-1].findings if f.finding == finding]
    return (found.since - START) // SECOND


def lived(*steps: tuple[GroupInput, ...]) -> Life:
    life = Life()
    for step in steps:
        life.take(*step)
    return life


# -- a topic deleted and created again


@pytest.mark.parametrize("offset", [30, 90_000])
def test_a_commit_of_the_topic_before_gives_neither_lag_nor_ahead(offset: int) -> None:
    life = lived(
        (commit(5, offset, "first"), make_observation(10, topic("first", end=100_000))),
        (make_observation(20, topic("second", end=40)),),
    )
    row = lag_of(life)
    assert (row.lag, row.lag_read_committed, row.ahead_by, row.lag_status) == (None, None, None, "unknown")
    assert (row.reason, row.committed_offset, row.high_watermark) == ("topic_recreated", offset, 40)
    assert said(life) == {
        "topic_recreated": "deleted and created again: x (1 partition with offsets of the previous topic)"
    }
    assert since(life, "topic_recreated") == 20


def test_its_lag_is_known_again_with_the_first_commit_to_the_new_topic() -> None:
    life = lived(
        (commit(5, 90, "first"), make_observation(10, topic("first"))),
        (make_observation(20, topic("second", end=40)),),
        (commit(25, 3, "second"), make_observation(30, topic("second", end=40))),
    )
    row = lag_of(life)
    assert (row.lag, row.lag_status, row.reason, row.rewound_by) == (37, "ok", None, 0)
    assert said(life) == {"topic_recreated": "deleted and created again: x"}
    life.take(make_observation(20 + 600, topic("second", end=40)))
    assert said(life) == {}


def test_a_commit_to_the_new_topic_before_any_round_showed_it_counts_at_once() -> None:
    life = lived(
        (commit(5, 90, "first"), make_observation(10, topic("first"))),
        (commit(15, 3, "second"), make_observation(20, topic("second", end=40))),
    )
    row = lag_of(life)
    assert (row.lag, row.lag_status, row.rewound_by) == (37, "ok", 0)


def test_a_commit_to_the_old_topic_that_arrives_late_is_none_of_the_new_one() -> None:
    life = lived(
        (commit(5, 90, "first"), make_observation(10, topic("first"))),
        (make_observation(20, topic("second", end=40)),),
        (commit(25, 95, "first"), make_observation(30, topic("second", end=40))),
    )
    assert (lag_of(life).reason, lag_of(life).committed_offset, lag_of(life).rewound_by) == ("topic_recreated", 95, 0)
    life.take(commit(35, 40, "second"), make_observation(40, topic("second", end=40)))
    assert (lag_of(life).lag, lag_of(life).rewound_by) == (0, 0)


def test_without_ids_in_the_commits_the_rounds_tell_what_came_before() -> None:
    life = lived(
        (commit(5, 90, None), make_observation(10, topic("first"))),
        (make_observation(20, topic("second", end=40)),),
    )
    assert lag_of(life).reason == "topic_recreated"
    life.take(commit(25, 3, None), make_observation(30, topic("second", end=40)))
    assert (lag_of(life).lag, lag_of(life).reason, lag_of(life).rewound_by) == (37, None, 0)


def test_a_topic_that_was_gone_for_some_rounds_counts_as_recreated_too() -> None:
    life = lived(
        (commit(5, 90, None), make_observation(10, topic("first"))),
        (make_observation(20, topic(None, None)),),
        (make_observation(30, topic("second", end=40)),),
    )
    assert [row.reason for row in life.rows.lag] == [None, "topic_does_not_exist", "topic_recreated"]
    assert since(life, "topic_recreated") == 30


def test_a_topic_that_no_answer_showed_for_a_moment_is_the_same_as_before() -> None:
    life = lived(
        (commit(5, 90, "first"), make_observation(10, topic("first"))),
        (make_observation(20, topic(None, None)),),
        (make_observation(30, topic("first")),),
    )
    assert (lag_of(life).lag, lag_of(life).reason) == (10, None)
    assert said(life) == {}


def test_a_group_met_after_the_topic_was_recreated_is_told_by_the_commit_s_id() -> None:
    life = lived((commit(5, 90, "first"), make_observation(10, topic("second", end=40))))
    assert (lag_of(life).lag, lag_of(life).reason) == (None, "topic_recreated")
    assert since(life, "topic_recreated") == 10


def test_a_round_without_ids_compares_nothing() -> None:
    life = lived((commit(5, 90, "first"), make_observation(10, topic(None))), (make_observation(20, topic("first")),))
    assert [row.reason for row in life.rows.lag] == [None]


def test_a_partition_count_that_shrank_is_named() -> None:
    life = lived(
        (commit(5, 90, "first", 0), commit(6, 90, "first", 3), make_observation(10, topic("first", 4))),
        (make_observation(20, topic("second", 2, end=40)),),
    )
    assert [lag_of(life, p).reason for p in (0, 3)] == ["topic_recreated", "beyond_partition_count"]
    assert [lag_of(life, p).ahead_by for p in (0, 3)] == [None, None]
    assert said(life)["topic_recreated"] == (
        "deleted and created again: x (2 partitions instead of 4, 1 partition with offsets of the previous topic)"
    )


def test_a_topic_that_comes_back_with_a_single_partition_says_so() -> None:
    life = lived(
        (commit(5, 90, "first"), make_observation(10, topic("first", 4))),
        (commit(15, 3, "second"), make_observation(20, topic("second", 1, end=40))),
    )
    assert said(life) == {"topic_recreated": "deleted and created again: x (1 partition instead of 4)"}


def test_a_count_that_shrank_tells_of_brokers_without_ids() -> None:
    life = lived(
        (commit(5, 90, None), make_observation(10, topic(None, 4))),
        (make_observation(20, topic(None, 2, end=40)),),
    )
    assert lag_of(life).reason == "topic_recreated"
    grown = lived((commit(5, 90, None), make_observation(10, topic(None, 2))), (make_observation(20, topic(None, 4)),))
    assert (lag_of(grown).reason, said(grown)) == (None, {})


def test_the_coordinator_s_tombstones_of_a_deleted_topic_leave_nothing_behind() -> None:
    life = lived(
        (commit(5, 90, "first"), make_observation(10, topic("first"))),
        (commit(15, None, None), make_observation(20, topic("second", end=40))),
    )
    row = lag_of(life)
    assert (row.ended, row.offset_deleted, row.lag, row.committed_offset) == (True, True, None, None)
    assert said(life) == {
        "topic_recreated": "deleted and created again: x",
        "offset_deleted": "committed offsets were deleted or expired: x (1 partition)",
    }


def test_what_nobody_can_read_yet_comes_first() -> None:
    life = lived(
        (commit(5, 90, "first"), make_observation(10, topic("first"))),
        (make_observation(20, topic("second", end=40), held_since=START),),
        (make_observation(30, topic("second", end=40)),),
    )
    assert [row.reason for row in life.rows.lag] == [None, "offsets_blocked", "topic_recreated"]


# -- steps back


def test_a_step_back_is_said_with_how_far_it_still_is_until_the_offset_is_where_it_was() -> None:
    life = Life()
    for record, offset in ((5, 5_000), (15, 3_800), (25, 4_900), (35, 5_000)):
        life.take(make_commit(record, offset, topic="x"), make_observation(record + 5, make_topic("x", 1, end=6_000)))
    assert [row.rewound_by for row in life.rows.lag] == [0, 1_200, 0, 0]
    assert [[(f.finding, f.detail, f.since) for f in row.findings] for row in life.rows.group_health] == [
        [],
        [("rewound", "committed offsets went back: x 0 is 1,200 below where it was", START + 20 * SECOND)],
        [("rewound", "committed offsets went back: x 0 is 100 below where it was", START + 20 * SECOND)],
        [],
    ]


def test_steps_back_of_many_partitions_are_one_finding() -> None:
    life = Life()
    for record, offset in ((5, 90), (25, 10)):
        commits = [make_commit(record + p, offset + p * (record == 5), topic="x", partition=p) for p in range(4)]
        life.take(*commits, make_observation(record + 10, make_topic("x", 4)))
    assert said(life) == {"rewound": "committed offsets went back: x is up to 83 below where it was on 4 partitions"}


def test_a_commit_out_of_order_that_the_next_one_mends_is_no_finding() -> None:
    life = Life.after(make_commit(5, 50, topic="x"), make_observation(10, make_topic("x", 1)))
    life.take(make_commits(15, 49, 60, topic="x"), make_observation(20, make_topic("x", 1)))
    assert (lag_of(life).rewound_by, lag_of(life).lag_status, said(life)) == (1, "ok", {})


def test_steps_back_on_topics_that_are_not_subscribed_are_no_finding() -> None:
    life = Life.after(make_record(1, (make_member("a", ("y",), {"y": (0,)}),)))
    for record, offset in ((5, 90), (15, 10)):
        life.take(make_commit(record, offset, topic="x"), make_observation(record + 5, topic("id"), make_topic("y", 1)))
    assert (lag_of(life).rewound_by, "rewound" in said(life)) == (80, False)


def found(life: Life) -> list[list[tuple[str, int]]]:
    """Findings of each row of `group_health`, each with the second of its beginning."""
    return [[(f.finding, (f.since - START) // SECOND) for f in row.findings] for row in life.rows.group_health]


@pytest.mark.parametrize(
    ("end", "changes"), [(-1, {}), (6_000, {"held_since": START})], ids=["no end offset", "log held back"]
)
def test_a_round_without_a_lag_ends_no_step_back_and_hides_none(end: int, changes: dict[str, int]) -> None:
    known, unknown = make_topic("x", 1, end=6_000), make_topic("x", 1, end=[end])
    before = (make_commit(5, 5_000, topic="x"), make_observation(10, known))
    back = make_commit(15, 3_800, topic="x")
    hidden = make_observation(30, unknown, **changes)
    life = lived(before, (back, make_observation(20, known)), (hidden,), (make_observation(40, known),))
    assert [row.lag_status for row in life.rows.lag] == ["ok", "rewound", "unknown", "rewound"]
    assert [row.round for row in life.rows.group_health] == [10, 20, 30, 40]
    assert [("rewound", 20) in findings for findings in found(life)] == [False, True, True, True]
    life = lived(before, (back, hidden), (make_observation(40, known),))
    assert [row.lag_status for row in life.rows.lag] == ["ok", "unknown", "rewound"]
    assert said(life) == {"rewound": "committed offsets went back: x 0 is 1,200 below where it was"}
    assert since(life, "rewound") == 30


def test_a_step_back_ends_in_a_round_without_a_lag_where_the_offset_is_where_it_was() -> None:
    unknown = make_topic("x", 1, end=[-1])
    life = lived((make_commit(5, 5_000, topic="x"), make_observation(10, make_topic("x", 1, end=6_000))))
    for record, offset in ((15, 3_800), (25, 4_999), (35, 5_000)):
        life.take(make_commit(record, offset, topic="x"), make_observation(record + 5, unknown))
    assert [row.round for row in life.rows.group_health] == [10, 20, 30, 40]
    assert found(life) == [[], [("rewound", 20)], [("rewound", 20)], []]


def test_a_late_commit_to_the_topic_before_is_no_step_back() -> None:
    life = lived(
        (commit(5, 90, "first"), make_observation(10, topic("first"))),
        (commit(15, 50, "second"), make_observation(20, topic("second"))),
        (commit(25, 3, "first"), make_observation(30, topic("second"))),
    )
    assert [lag_of(life).reason, *said(life)] == ["topic_recreated", "topic_recreated"]
    assert [row.rewound_by for row in life.rows.lag] == [0, 0, 0]
    # The next one continues from the topic's own last offset.
    life.take(commit(35, 60, "second"), make_observation(40, topic("second")))
    assert (lag_of(life).rewound_by, lag_of(life).lag_status) == (0, "ok")


def test_commits_to_two_topics_of_one_name_between_two_rounds_are_told_apart_by_nothing() -> None:
    # Between two rounds commits are folded to the first, the last and the largest step back; only the last id is kept.
    life = lived((commit(5, 50, "second"), make_observation(10, topic("second"))))
    life.take(merge_windows(commit(15, 90, "first"), commit(16, 51, "second")), make_observation(20, topic("second")))
    row = lag_of(life)
    assert (row.rewound_by, row.lag_status, row.lag, said(life)) == (39, "ok", 49, {})


def test_a_step_back_ends_with_the_topic() -> None:
    life = lived(
        (make_commit(5, 90, topic="x"), make_observation(10, topic("id"))),
        (make_commit(15, 30, topic="x"), make_observation(20, topic("id"))),
        (make_observation(30, topic(None, None)),),
    )
    assert [lag_of(life).reason, *said(life)] == ["topic_does_not_exist"]


# -- deleted and expired offsets


def test_a_deleted_offset_is_said_for_ten_minutes_and_in_one_row_of_lag() -> None:
    life = Life()
    owner = make_record(1, (make_member("a", ("x",), {"x": (0, 1)}),))
    life.take(owner, make_commit(5, 80, topic="x"), make_observation(10, make_topic("x", 2)))
    life.take(make_commit(15, None, topic="x"), make_observation(20, make_topic("x", 2)))
    assert said(life) == {"offset_deleted": "committed offsets were deleted or expired: x (1 partition)"}
    assert since(life, "offset_deleted") == 20
    life.take(
        make_observation(30, make_topic("x", 2, end=101)),
        make_observation(20 + 10 * MINUTE // SECOND, make_topic("x", 2)),
    )
    assert "offset_deleted" not in said(life)
    assert [row.offset_deleted for row in life.rows.lag if row.partition == 0][:3] == [False, True, False]


def test_nothing_is_said_of_a_group_without_events() -> None:
    life = lived(
        *[(make_commit(n, n, topic="x"), make_observation(n + 1, make_topic("x", 1))) for n in range(5, 60, 5)]
    )
    assert {row.findings for row in life.rows.group_health} == {()}
    assert life.state is not None
    assert life.state.deleted is None


def test_topics_created_again_one_after_the_other_are_reported_since_the_first() -> None:
    def seen(second: int, x: str, y: str) -> GroupInput:
        return make_observation(second, topic(x), make_topic("y", 1, topic_id=y))

    # The round at 20 lies in a stretch that was compacted, so it is not judged, but it shows the new topic.
    life = lived((seen(10, "x1", "y1"),), (Compacted(15, 26), seen(20, "x2", "y1")), (seen(30, "x2", "y2"),))
    assert since(life, "topic_recreated") == 20
