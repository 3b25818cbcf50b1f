"""Lag per partition, its judgement, and the conditions for a row."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import pytest

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


def owner(*topics: str) -> GroupInput:
    topics = topics or ("x",)
    return make_record(1, (make_member("a", topics, dict.fromkeys(topics, (0,))),))


OF_ONE_ROUND: dict[str, tuple[GroupInput, TopicObservation, dict[str, Any], dict[str, Any]]] = {
    "lag is the end minus the committed offset": (
        make_commit(5, 70, topic="x"),
        make_topic("x", 1, end=100),
        {},
        {
            "committed_offset": 70,
            "high_watermark": 100,
            "lag": 30,
            "ahead_by": 0,
            "reason": None,
            "round": 10,
            "round_time": START + 10 * SECOND,
            "last_commit_time": START + 5 * SECOND,
            "commits": 1,
            "rewound_by": 0,
            "offset_deleted": False,
            "ended": False,
            "lag_status": "ok",
            "subscribed": True,
        },
    ),
    "lag of read-committed members is up to the last stable offset": (
        make_commit(5, 70, topic="x"),
        make_topic("x", 1, end=100, last_stable_offsets=packed([80]), log_start_offsets=packed([3])),
        {},
        {"lag": 30, "lag_read_committed": 10, "last_stable_offset": 80, "log_start_offset": 3},
    ),
    "and never above the lag though the stable offset is asked for later": (
        make_commit(5, 90, topic="x"),
        make_topic("x", 1, end=100, last_stable_offsets=packed([105])),
        {},
        {"lag": 10, "lag_read_committed": 10, "last_stable_offset": 105},
    ),
    "without a commit lag is null": (
        owner(),
        make_topic("x", 1, end=100),
        {},
        {
            "lag": None,
            "lag_read_committed": None,
            "ahead_by": None,
            "reason": "no_commit",
            "lag_status": "no_commit",
            "committed_offset": None,
            "high_watermark": 100,
            "last_commit_time": None,
        },
    ),
    "a commit beyond the end is ahead": (
        make_commit(5, 130, topic="x"),
        make_topic("x", 1, end=100),
        {},
        {"lag": 0, "ahead_by": 30, "lag_status": "ahead"},
    ),
    "a commit of offset 0 is one": (
        make_commit(5, 0, topic="x", time=0),
        make_topic("x", 1, end=100),
        {},
        {"committed_offset": 0, "last_commit_time": 0, "lag": 100},
    ),
    "a log that never held a record ends at 0": (
        make_commit(5, 0, topic="x"),
        make_topic("x", 1, end=0),
        {},
        {"high_watermark": 0, "last_stable_offset": 0, "log_start_offset": 0, "lag": 0},
    ),
    "unknown while the offsets log is blocked": (
        make_commit(5, 70, topic="x"),
        make_topic("x", 1, end=100),
        {"held_since": START},
        {"lag": None, "reason": "offsets_blocked", "lag_status": "unknown", "high_watermark": 100},
    ),
    "unknown where no end was to be had": (
        make_commit(5, 70, topic="x"),
        make_topic("x", 1, end=-1),
        {},
        {"lag": None, "reason": "high_watermark_unknown", "high_watermark": None},
    ),
    "unknown for a topic that the round did not show": (
        make_commit(5, 70, topic="x"),
        make_topic("y", 1),
        {},
        {"lag": None, "reason": "topic_not_visible", "lag_status": "unknown"},
    ),
    "unknown for a topic that does not exist": (
        make_commit(5, 70, topic="x"),
        make_topic("x", None),
        {},
        {"lag": None, "reason": "topic_does_not_exist"},
    ),
    "unknown for a partition that a smaller topic no longer has": (
        make_commit(5, 70, topic="x", partition=3),
        make_topic("x", 2),
        {},
        {"partition": 3, "lag": None, "reason": "beyond_partition_count"},
    ),
}


@pytest.mark.parametrize("case", OF_ONE_ROUND)
def test_what_one_round_shows_of_lag(case: str) -> None:
    first, topic, changes, expected = OF_ONE_ROUND[case]
    row = Life.after(first, make_observation(10, topic, **changes)).rows.lag[-1]
    assert {name: getattr(row, name) for name in expected} == expected


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


def seen(second: int, partitions: int = 1, **changes: Any) -> GroupInput:
    return make_observation(second, make_topic("x", partitions), **changes)


COMMITTED = [make_commit(5, 80, topic="x"), seen(10)]
WITHOUT = make_record(15, (make_member("a", ("x",), {}),), generation=2)
B_OWNS = make_record(15, (make_member("b", ("x",), {"x": (0,)}),), generation=2)

# Inputs, columns, and their values in all rows of lag.
ROWS: dict[str, tuple[list[GroupInput], str, list[Any]]] = {
    "a round is judged with exactly the commits below its position": (
        [make_commit(9, 50, topic="x"), make_commit(10, 90, topic="x"), seen(10), seen(11)],
        "round committed_offset commits",
        [(10, 50, 1), (11, 90, 1)],
    ),
    "a step back is in one row only": (
        [
            *(make_commits(5, 80, 20, 30, topic="x"), seen(10), make_commit(15, 25, topic="x"), seen(20)),
            *(make_commit(25, 26, topic="x"), seen(30)),
        ],
        "round rewound_by",
        [(10, 60), (20, 5), (30, 0)],
    ),
    "a deleted offset closes the partition": (
        [*COMMITTED, make_commit(15, None, topic="x"), seen(20), seen(700)],
        "round ended offset_deleted committed_offset lag reason",
        [(10, False, False, 80, 20, None), (20, True, True, None, None, "ended")],
    ),
    "that of a subscribed partition leaves one without a commit": (
        [owner(), *COMMITTED, make_commit(15, None, topic="x"), seen(20)],
        "round ended offset_deleted committed_offset reason",
        [(10, False, False, 80, None), (20, False, True, None, "no_commit")],
    ),
    "an offset expired and committed again between two rounds says so": (
        [*COMMITTED, make_commits(15, None, 90, topic="x"), seen(20)],
        "round offset_deleted committed_offset",
        [(10, False, 80), (20, True, 90)],
    ),
    "a commit of the same offset is counted in a row": (
        [*COMMITTED, make_commit(15, 80, topic="x"), seen(20)],
        "round commits",
        [(10, 1), (20, 1)],
    ),
    "commits of a time without rounds are counted in the next one": (
        [
            *(make_commit(5, 80, topic="x"), seen(10, idle=True)),
            *(*(make_commit(at, 80, topic="x") for at in (20, 100, 400)), seen(600, idle=True)),
        ],
        "round commits",
        [(10, 1), (600, 3)],
    ),
    "a new owner makes a row": (
        [owner(), seen(10), B_OWNS, seen(20)],
        "round member_id client_id client_host",
        [(10, "a", "consumer-1", "/127.0.0.1"), (20, "b", "consumer-1", "/127.0.0.1")],
    ),
    "every partition of a subscribed topic has a row": (
        [owner(), seen(10, 3)],
        "partition member_id",
        [(0, "a"), (1, None), (2, None)],
    ),
    # The commit may belong to either of the two topics.
    "a topic made again is not taken for a rewind": (
        [
            *(make_commit(5, 90, topic="x"), make_observation(10, make_topic("x", 1, topic_id="first"))),
            make_commit(15, 3, topic="x"),
            make_observation(20, make_topic("x", 1, end=10, topic_id="second")),
            make_commit(25, 4, topic="x"),
            make_observation(30, make_topic("x", 1, end=10, topic_id="second")),
        ],
        "round lag_status lag rewound_by",
        [(10, "ok", 10, 0), (20, "unknown", None, 0), (30, "ok", 6, 0)],
    ),
    "partitions of a topic that no round shows are closed once they have neither an owner nor a commit": (
        [
            make_record(1, (make_member("a", ("x",), {"x": (0, 1)}),)),
            *(make_commit(5, 70, topic="x"), seen(10, 2), WITHOUT, make_commit(16, None, topic="x")),
            make_observation(20),
        ],
        "round partition ended",
        [(10, 0, False), (10, 1, False), (20, 0, True), (20, 1, True)],
    ),
}


@pytest.mark.parametrize("case", ROWS)
def test_rows_tell_what_has_changed_since_the_round_before(case: str) -> None:
    inputs, columns, expected = ROWS[case]
    assert list(map(attrgetter(*columns.split()), Life.after(*inputs).rows.lag)) == expected


@pytest.mark.parametrize(
    ("rounds", "written"),
    [
        # Only when something has changed.
        ([(10, 100, False), (20, 100, False), (30, 101, False), (40, 101, False)], [10, 30]),
        # And at the heartbeat.
        ([(second, 100, False) for second in (10, 600, 609, 610, 620)], [10, 610]),
        # The rounds of an idle group are up to a heartbeat apart: half of one will do.
        (
            [(10, 100, False), (200, 100, True), (310, 100, True), (600, 100, True), (1190, 100, True)],
            [10, 310, 1190],
        ),
    ],
)
def test_a_row_is_written_at_a_change_and_at_the_heartbeat(
    rounds: list[tuple[int, int, bool]], written: list[int]
) -> None:
    life = Life.after(make_commit(5, 80, topic="x"))
    for second, end, idle in rounds:
        life.take(make_observation(second, make_topic("x", 1, end=end), idle=idle))
    assert [row.round for row in life.rows.lag] == written


def test_topics_that_are_not_subscribed_are_marked_and_stay_out_of_the_sums() -> None:
    life = Life.after(
        owner("x"),
        make_commit(5, 70, topic="x"),
        make_commit(6, 10, topic="old"),
        make_observation(10, make_topic("x", 1), make_topic("old", 1)),
    )
    assert (last(life, "x").subscribed, last(life, "old").subscribed) == (True, False)
    assert (last(life, "old").lag, life.rows.group_health[-1].lag_total) == (90, 30)


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


def rhythm(life: Life, commits: Sequence[int | None], ends: Sequence[int], start: int = 10) -> list[str]:
    """One round every ten seconds, each after a commit (None: no commit) and with an end; returns the statuses."""
    statuses = []
    for step, (offset, end) in enumerate(zip(commits, ends, strict=True)):
        at = start + 10 * step
        if offset is not None:
            life.take(make_commit(at, offset, topic="x"))
        life.take(make_observation(at + 1, make_topic("x", 1, end=end)))
        statuses.append(last(life).lag_status)
    return statuses


BUSY = (list(range(0, 300, 10)), list(range(5, 305, 10)))
"""Thirty rounds of a group that commits in every round and keeps up except for five records."""

ON = list(range(310, 430, 10))
"""Ends of twelve more rounds."""

FIVE_MINUTES = 5 * MINUTE // (10 * SECOND)
"""Rounds in five minutes."""

STATUSES: dict[str, tuple[Sequence[int | None], Sequence[int], list[str]]] = {
    "nothing is committed any more while lag grows": (
        [*BUSY[0], *[None] * 12],
        [*BUSY[1], *ON],
        ["ok"] * 39 + ["stopped"] * 3,
    ),
    "a stopped group that goes on is ok again": (
        [*BUSY[0], *[None] * 12, 425],
        [*BUSY[1], *ON, 430],
        ["ok"] * 39 + ["stopped"] * 3 + ["ok"],
    ),
    "one late commit is nothing": ([*BUSY[0], None, 310, 320], [*BUSY[1], 310, 315, 325], ["ok"] * 33),
    # The last commit of the busy rounds was already 290, so after nine more there are ten rounds at 290. Until then it
    # is behind its earlier commits, by more with each round.
    "commits that do not move are a stall": (
        [*BUSY[0], *[290] * 12],
        [*BUSY[1], *ON],
        ["ok"] * 34 + ["falling_behind"] * 4 + ["stalled"] * 4,
    ),
    "two commits by hand are not falling behind": (
        [1, None, None, None, None, None, 2, *[None] * 6],
        range(10, 140, 10),
        ["ok"] * 13,
    ),
    "a slow cadence": (
        [step * 10 if step % FIVE_MINUTES == 0 else None for step in range(12 * FIVE_MINUTES)],
        [step * 10 + 100 for step in range(12 * FIVE_MINUTES)],
        ["ok"] * 12 * FIVE_MINUTES,
    ),
    "one commit that is known": ([1, *[None] * 30], range(0, 310, 10), ["ahead"] + ["ok"] * 30),
    "all is read but the marker of a transaction": (
        [*range(0, 300, 10), *[None] * 60],
        [*range(1, 301, 10), *[291] * 60],
        ["ok"] * 90,
    ),
    "a group slower than its topic falls behind": (
        range(0, 150, 10),
        range(50, 500, 30),
        ["ok"] * 9 + ["falling_behind"] * 6,
    ),
    "a group that catches up": (range(0, 600, 30), range(800, 1000, 10), ["ok"] * 20),
    "an offset that was set back is rewound until it is where it was": (
        [90, 20, 50, 89, 90],
        [100] * 5,
        ["ok", "rewound", "rewound", "rewound", "ok"],
    ),
}


@pytest.mark.parametrize("case", STATUSES)
def test_a_status_follows_from_the_newest_rounds(case: str) -> None:
    commits, ends, expected = STATUSES[case]
    assert rhythm(Life(), commits, ends) == expected


def test_rounds_without_a_known_lag_are_not_judged() -> None:
    life = Life()
    rhythm(life, *BUSY)
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


def test_a_group_that_stood_before_a_transaction_marker_is_not_stalled_at_once_when_records_come() -> None:
    life = Life()
    for second in range(10, 210, 10):
        life.take(make_commit(second - 1, 99, topic="x"), make_observation(second, make_topic("x", 1, end=100)))
    life.take(make_commit(215, 99, topic="x"), make_observation(220, make_topic("x", 1, end=150)))
    assert (last(life).lag, last(life).lag_status) == (51, "ok")
