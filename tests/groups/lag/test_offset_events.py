"""Events of committed offsets other than commits: reported once, with the right kind, at the round that shows them."""

from __future__ import annotations

from typing import Any

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


Step = tuple[tuple[GroupInput, ...], dict[str, Any], dict[str, tuple[int, str]]]
"""Inputs, then columns of the newest row of `lag`, and the findings with the second of their beginning."""


def check(*steps: Step) -> None:
    life = Life()
    for inputs, columns, findings in steps:
        life.take(*inputs)
        row = life.rows.lag[-1]
        assert {name: getattr(row, name) for name in columns} == columns
        told = {f.finding: ((f.since - START) // SECOND, f.detail) for f in life.rows.group_health[-1].findings}
        assert told == findings


# -- a topic deleted and created again

AGAIN = "deleted and created again: x"
LEFT = f"{AGAIN} (1 partition with offsets of the previous topic)"
MET: Step = ((commit(5, 90, "first"), make_observation(10, topic("first"))), {"lag": 10}, {})
WITHOUT_IDS: Step = ((commit(5, 90, None), make_observation(10, topic("first"))), {"lag": 10}, {})
ANOTHER = make_observation(20, topic("second", end=40))

CREATED_AGAIN: dict[str, list[Step]] = {
    **{
        f"a commit of the topic before gives neither lag nor ahead: {offset}": [
            ((commit(5, offset, "first"), make_observation(10, topic("first", end=100_000))), {}, {}),
            (
                (ANOTHER,),
                {
                    "lag": None,
                    "lag_read_committed": None,
                    "ahead_by": None,
                    "lag_status": "unknown",
                    "reason": "topic_recreated",
                    "committed_offset": offset,
                    "high_watermark": 40,
                },
                {"topic_recreated": (20, LEFT)},
            ),
        ]
        for offset in (30, 90_000)
    },
    "its lag is known again with the first commit to the new topic": [
        MET,
        ((ANOTHER,), {"reason": "topic_recreated"}, {"topic_recreated": (20, LEFT)}),
        (
            (commit(25, 3, "second"), make_observation(30, topic("second", end=40))),
            {"lag": 37, "lag_status": "ok", "reason": None, "rewound_by": 0},
            {"topic_recreated": (20, AGAIN)},
        ),
        ((make_observation(20 + 600, topic("second", end=40)),), {}, {}),
    ],
    "a commit to the new topic before any round showed it counts at once": [
        MET,
        (
            (commit(15, 3, "second"), ANOTHER),
            {"lag": 37, "lag_status": "ok", "rewound_by": 0},
            {"topic_recreated": (20, AGAIN)},
        ),
    ],
    "a commit to the old topic that arrives late is none of the new one": [
        MET,
        ((ANOTHER,), {}, {"topic_recreated": (20, LEFT)}),
        (
            (commit(25, 95, "first"), make_observation(30, topic("second", end=40))),
            {"reason": "topic_recreated", "committed_offset": 95, "rewound_by": 0},
            {"topic_recreated": (20, LEFT)},
        ),
        (
            (commit(35, 40, "second"), make_observation(40, topic("second", end=40))),
            {"lag": 0, "rewound_by": 0},
            {"topic_recreated": (20, AGAIN)},
        ),
    ],
    "without ids in the commits the rounds tell what came before": [
        WITHOUT_IDS,
        ((ANOTHER,), {"reason": "topic_recreated"}, {"topic_recreated": (20, LEFT)}),
        (
            (commit(25, 3, None), make_observation(30, topic("second", end=40))),
            {"lag": 37, "reason": None, "rewound_by": 0},
            {"topic_recreated": (20, AGAIN)},
        ),
    ],
    "a topic that was gone for some rounds counts as well": [
        WITHOUT_IDS,
        ((make_observation(20, topic(None, None)),), {"reason": "topic_does_not_exist"}, {}),
        (
            (make_observation(30, topic("second", end=40)),),
            {"reason": "topic_recreated"},
            {"topic_recreated": (30, LEFT)},
        ),
    ],
    "a topic that no answer showed for a moment is the same as before": [
        MET,
        ((make_observation(20, topic(None, None)),), {}, {}),
        ((make_observation(30, topic("first")),), {"lag": 10, "reason": None}, {}),
    ],
    "a group met after the topic was created again is told by the commit's id": [
        (
            (commit(5, 90, "first"), make_observation(10, topic("second", end=40))),
            {"lag": None, "reason": "topic_recreated"},
            {"topic_recreated": (10, LEFT)},
        )
    ],
    "a round without ids compares nothing": [
        ((commit(5, 90, "first"), make_observation(10, topic(None))), {"lag": 10}, {}),
        ((make_observation(20, topic("first")),), {"round": 10, "reason": None}, {}),
    ],
    "a partition count that shrank is named": [
        ((commit(5, 90, "first", 0), commit(6, 90, "first", 3), make_observation(10, topic("first", 4))), {}, {}),
        (
            (make_observation(20, topic("second", 2, end=40)),),
            {"partition": 3, "reason": "beyond_partition_count", "ahead_by": None},
            {
                "topic_recreated": (
                    20,
                    f"{AGAIN} (2 partitions instead of 4, 1 partition with offsets of the previous topic)",
                )
            },
        ),
    ],
    "also a single partition": [
        ((commit(5, 90, "first"), make_observation(10, topic("first", 4))), {}, {}),
        (
            (commit(15, 3, "second"), make_observation(20, topic("second", 1, end=40))),
            {},
            {"topic_recreated": (20, f"{AGAIN} (1 partition instead of 4)")},
        ),
    ],
    "a count that shrank tells of brokers without ids": [
        ((commit(5, 90, None), make_observation(10, topic(None, 4))), {}, {}),
        (
            (make_observation(20, topic(None, 2, end=40)),),
            {"reason": "topic_recreated"},
            {
                "topic_recreated": (
                    20,
                    f"{AGAIN} (2 partitions instead of 4, 1 partition with offsets of the previous topic)",
                )
            },
        ),
    ],
    "a count that grew does not": [
        ((commit(5, 90, None), make_observation(10, topic(None, 2))), {}, {}),
        ((make_observation(20, topic(None, 4)),), {"reason": None}, {}),
    ],
    "the coordinator's tombstones of a deleted topic leave nothing behind": [
        MET,
        (
            (commit(15, None, None), ANOTHER),
            {"ended": True, "offset_deleted": True, "lag": None, "committed_offset": None},
            {
                "topic_recreated": (20, AGAIN),
                "offset_deleted": (20, "committed offsets were deleted or expired: x (1 partition)"),
            },
        ),
    ],
    # Commits to two topics between two rounds are folded to the first, the last and the largest step back; only the
    # last id is kept.
    "commits to two topics of one name between two rounds are told apart by nothing": [
        ((commit(5, 50, "second"), make_observation(10, topic("second"))), {}, {}),
        (
            (
                merge_windows(commit(15, 90, "first"), commit(16, 51, "second")),
                make_observation(20, topic("second")),
            ),
            {"rewound_by": 39, "lag_status": "ok", "lag": 49},
            {},
        ),
    ],
}


@pytest.mark.parametrize("case", CREATED_AGAIN)
def test_offsets_of_a_topic_that_was_created_again_mean_nothing_for_it(case: str) -> None:
    check(*CREATED_AGAIN[case])


def test_what_nobody_can_read_yet_comes_first() -> None:
    life = lived(
        MET[0],
        (make_observation(20, topic("second", end=40), held_since=START),),
        (make_observation(30, topic("second", end=40)),),
    )
    assert [row.reason for row in life.rows.lag] == [None, "offsets_blocked", "topic_recreated"]


# -- steps back


def back(record: int, offset: int) -> tuple[GroupInput, ...]:
    return make_commit(record, offset, topic="x"), make_observation(record + 5, make_topic("x", 1, end=6_000))


def below(by: int) -> dict[str, tuple[int, str]]:
    return {"rewound": (20, f"committed offsets went back: x 0 is {by:,} below where it was")}


def test_a_step_back_is_said_with_how_far_it_still_is_until_the_offset_is_where_it_was() -> None:
    check(
        (back(5, 5_000), {"rewound_by": 0}, {}),
        (back(15, 3_800), {"rewound_by": 1_200}, below(1_200)),
        (back(25, 4_900), {"rewound_by": 0}, below(100)),
        (back(35, 5_000), {"rewound_by": 0}, {}),
    )


def test_steps_back_of_many_partitions_are_one_finding() -> None:
    life = Life()
    for record, offset in ((5, 90), (25, 10)):
        commits = [make_commit(record + p, offset + p * (record == 5), topic="x", partition=p) for p in range(4)]
        life.take(*commits, make_observation(record + 10, make_topic("x", 4)))
    below = [f"x {partition} is {80 + partition} below where it was" for partition in range(3)]
    assert said(life) == {"rewound": f"committed offsets went back: {', '.join(below)} and 1 more"}


def test_a_commit_out_of_order_that_the_next_one_mends_is_no_finding() -> None:
    life = Life.after(
        make_commit(5, 50, topic="x"),
        make_observation(10, make_topic("x", 1)),
        make_commits(15, 49, 60, topic="x"),
        make_observation(20, make_topic("x", 1)),
    )
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
    assert life.state.deleted is None


def test_topics_created_again_one_after_the_other_are_reported_since_the_first() -> None:
    def seen(second: int, x: str, y: str) -> GroupInput:
        return make_observation(second, topic(x), make_topic("y", 1, topic_id=y))

    # The round at 20 lies in a stretch that was compacted, so it is not judged, but it shows the new topic.
    life = lived((seen(10, "x1", "y1"),), (Compacted(15, 26), seen(20, "x2", "y1")), (seen(30, "x2", "y2"),))
    assert since(life, "topic_recreated") == 20
