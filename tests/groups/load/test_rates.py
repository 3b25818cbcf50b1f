"""Rates in windows of a heartbeat: what the rounds saw at their two ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from streaming.groups.context import GroupConfig
from streaming.groups.rows import GroupHealthRow, LagRow
from streaming.records import Compacted
from tests.groups.build import (
    MINUTE,
    SECOND,
    START,
    Life,
    make_commit,
    make_member,
    make_observation,
    make_record,
    make_topic,
)
from tests.groups.load.windows import EVERY, HEARTBEAT, round_at


def lived(
    until: int,
    end: Callable[[int], Any],
    committed: Callable[[int], int | None],
    *,
    life: Life | None = None,
    since: int = 0,
    partitions: int = 1,
    **changes: Any,
) -> Life:
    """A group that reads topic x, with a round every minute; commits go to partition 0."""
    life = life or Life()
    for second in range(since, until + 1, EVERY):
        offset = committed(second)
        if offset is not None:
            life.take(make_commit(10 * second + 1, offset, topic="x", time=START + second * SECOND))
        life.take(round_at(second, make_topic("x", partitions, end=end(second), **changes)))
    return life


def rates(life: Life, partition: int = 0) -> tuple[float | None, float | None]:
    """Rates in the newest row of a partition, which is not older than the window that has ended last."""
    row = [row for row in life.rows.lag if row.partition == partition][-1]
    assert row.round_time >= window_ended(life)
    return row.produced_per_second, row.consumed_per_second


def health(life: Life) -> GroupHealthRow:
    """The group's newest row, which is not older than the window that has ended last."""
    assert life.rows.group_health[-1].round_time >= window_ended(life)
    return life.rows.group_health[-1]


def window_ended(life: Life) -> int:
    return life.state.load.since_time


def at_second(row: LagRow | GroupHealthRow) -> int:
    return (row.round_time - START) // SECOND


def test_what_was_produced_and_consumed_in_ten_minutes_is_told_from_then_on() -> None:
    life = lived(1_140, lambda s: 5 * s, lambda s: 3 * s)
    known = {at_second(row): (row.produced_per_second, row.consumed_per_second) for row in life.rows.lag}
    assert {second for second, of in known.items() if of == (None, None)} == set(range(0, HEARTBEAT, EVERY))
    assert {of for second, of in known.items() if second >= HEARTBEAT} == {(5.0, 3.0)}
    assert (health(life).produced_per_second, health(life).consumed_per_second) == (5.0, 3.0)


def test_a_commit_that_cannot_be_read_leaves_no_rate_of_what_was_consumed_in_its_window() -> None:
    life = Life()
    for second in range(0, HEARTBEAT + 1, EVERY):
        commit = make_commit(10 * second + 1, 3 * second, topic="x", time=START + second * SECOND)
        if second == HEARTBEAT // 2:
            commit = msgspec.structs.replace(commit, commits=0, first_offset=-1, offset=-1, unreadable=True)
        life.take(commit, round_at(second, make_topic("x", 1, end=5 * second)))
    assert rates(life) == (5.0, None)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(("apart_ms", "known"), [(6_000, (5.0, 3.0)), (6_001, (None, None))])
def test_a_window_has_rates_if_its_lengths_by_both_clocks_differ_by_one_percent_at_most(
    apart_ms: int, sign: int, known: tuple[float | None, float | None]
) -> None:
    life = Life()
    for second, more_ms in ((0, 0), (HEARTBEAT, sign * apart_ms)):
        at = START + second * SECOND + more_ms
        life.take(make_commit(10 * second + 1, 3 * second, topic="x", time=at))
        topic = make_topic("x", 1, end=5 * second)
        life.take(make_observation(10 * second + 2, topic, time=at, elapsed=second * SECOND))
    assert rates(life) == known


@pytest.mark.parametrize(
    ("heartbeat_s", "seconds", "known"),
    [
        # A window has rates up to two heartbeats, and up to a minute where heartbeats are short.
        (HEARTBEAT, [0, 2 * HEARTBEAT], (5.0, 3.0)),
        (HEARTBEAT, [0, 2 * HEARTBEAT + 1], (None, None)),
        (10, [0, 60, 120], (5.0, 3.0)),
        (10, [0, 61, 122], (None, None)),
    ],
)
def test_a_window_that_is_too_long_has_no_rates(
    heartbeat_s: int, seconds: list[int], known: tuple[float | None, float | None]
) -> None:
    life = Life(GroupConfig(cluster="test", heartbeat_ms=heartbeat_s * SECOND))
    for second in seconds:
        life.take(make_commit(10 * second + 1, 3 * second, topic="x", time=START + second * SECOND))
        life.take(round_at(second, make_topic("x", 1, end=5 * second)))
    assert rates(life) == known


def of_two(life: Life) -> Life:
    """A group whose member owns two partitions of x."""
    life.take(make_record(0, [make_member("a", ("x",), {"x": (0, 1)})], time=START))
    return life


def grows(pace: int, since: int = 0) -> Callable[[int], int]:
    return lambda second: since + pace * second


def except_at(second: int, other: int, usual: Callable[[int], int]) -> Callable[[int], int]:
    return lambda at: other if at == second else usual(at)


# The second until which rounds come, what a round at a second shows and which offset is committed before it, what else
# is changed; then the rates of each partition.
Stage = tuple[int, Callable[[int], Any], Callable[[int], int | None], dict[str, Any], dict[int, Any]]

FIVE, THREE, NOTHING = grows(5), grows(3), lambda _: None
UNKNOWN = (None, None)

STAGES: dict[str, list[Stage]] = {
    **{
        f"a rewind in a window leaves no rate of what was consumed: {second}": [
            (
                *(HEARTBEAT, grows(5, 30_000), except_at(second, 10_000 + 3 * second, grows(3, 20_000)), {}),
                {0: (5.0, None)},
            )
        ]
        for second in (60, 540, 600)
    },
    **{
        f"a log that was cut back has none even if it has grown beyond since: {second}": [
            (HEARTBEAT, except_at(second, 100 * second - 5_400, grows(100, 1_000)), grows(1), {}, {0: UNKNOWN})
        ]
        for second in (60, 540, 600)
    },
    **{
        f"nor has one whose end a round does not know: {second}": [
            (HEARTBEAT, except_at(second, -1, grows(100)), grows(1), {}, {0: (None, consumed)})
        ]
        for second, consumed in ((0, 1.0), (60, None), (600, None))
    },
    "a topic created again has none in that window and has them in the next": [
        (300, FIVE, THREE, {}, {}),
        (HEARTBEAT, grows(90), grows(80), {"topic_id": "another"}, {0: UNKNOWN}),
        (2 * HEARTBEAT, grows(90), grows(80), {"topic_id": "another"}, {0: (90.0, 80.0)}),
    ],
    "so has one without an id that shrank and grew again": [
        (240, grows(5), NOTHING, {"partitions": 2, "topic_id": None}, {}),
        (300, grows(90), NOTHING, {"partitions": 1, "topic_id": None}, {}),
        (HEARTBEAT, grows(90), NOTHING, {"partitions": 2, "topic_id": None}, {0: UNKNOWN, 1: UNKNOWN}),
        (2 * HEARTBEAT, grows(90), NOTHING, {"partitions": 2, "topic_id": None}, {0: (90.0, None), 1: (90.0, None)}),
    ],
    "new partitions have none in the window in which they come and the others keep theirs": [
        (300, FIVE, THREE, {}, {}),
        (HEARTBEAT, lambda s: [5 * s, 7 * s], THREE, {"partitions": 2}, {0: (5.0, 3.0), 1: UNKNOWN}),
        (2 * HEARTBEAT, lambda s: [5 * s, 7 * s], THREE, {"partitions": 2}, {1: (7.0, None)}),
    ],
    "a partition that nobody has committed has a rate of what is produced alone": [
        (HEARTBEAT, lambda s: [5 * s, 2 * s], THREE, {"partitions": 2}, {0: (5.0, 3.0), 1: (2.0, None)}),
    ],
    "a window in which the group was not seen for an hour has none": [
        (300, FIVE, THREE, {}, {}),
        (3_960, FIVE, THREE, {"since": 3_960}, {0: UNKNOWN}),
        (4_560, FIVE, THREE, {}, {0: (5.0, 3.0)}),
    ],
    "it changes when the next window has ended": [
        (HEARTBEAT, lambda s: 10 * min(s, HEARTBEAT), lambda _: 0, {}, {0: (10.0, 0.0)}),
        (2 * HEARTBEAT, lambda s: 10 * min(s, HEARTBEAT), lambda _: 0, {}, {0: (0.0, 0.0)}),
    ],
    "a commit of a part of the rounds is enough": [
        (HEARTBEAT, FIVE, lambda s: 3 * s if s <= 240 or s > 300 else None, {}, {0: (5.0, 3.0)}),
    ],
    "offsets that were deleted and committed again are not compared": [
        (240, FIVE, THREE, {}, {}),
        (300, FIVE, NOTHING, {"deleted": 2_500}, {}),
        (HEARTBEAT, FIVE, THREE, {}, {0: (5.0, None)}),
    ],
    "a commit beyond the end of the log is nothing consumed": [
        (HEARTBEAT, FIVE, except_at(HEARTBEAT, 10**15, THREE), {}, {0: (5.0, None)}),
    ],
}


@pytest.mark.parametrize("case", STAGES)
def test_a_rate_is_that_of_a_window_in_which_nothing_forbids_one(case: str) -> None:
    life, since = of_two(Life()), 0
    for until, end, committed, changes, expected in STAGES[case]:
        if (record := changes.get("deleted")) is not None:
            life.take(make_commit(record, None, topic="x"))
        lived(
            until,
            end,
            committed,
            **({"life": life, "since": since} | {k: v for k, v in changes.items() if k != "deleted"}),
        )
        assert {partition: rates(life, partition) for partition in expected} == expected
        since = until + EVERY


def test_rates_cause_no_rows() -> None:
    def rows_with(heartbeat_ms: int) -> tuple[int, int]:
        life = Life(GroupConfig(cluster="test", heartbeat_ms=heartbeat_ms))
        lived(HEARTBEAT - EVERY, lambda s: 5 * s, lambda s: 3 * s, life=life)
        lived(4_000, lambda _: 3_000, lambda _: None, life=life, since=HEARTBEAT)
        return len(life.rows.lag), len(life.rows.group_health)

    lag, of_group = rows_with(10 * MINUTE)
    # A row a round while something moves, and then one a heartbeat, as without rates.
    assert lag <= 10 + 1 + 4_000 // HEARTBEAT
    assert of_group <= 10 + 15 + 4_000 // HEARTBEAT


@pytest.mark.parametrize(("topic_id", "consumed"), [("id-of-x", 3.0), ("another", None)])
def test_commits_that_name_their_topic_count_if_it_is_the_one_that_rounds_show(
    topic_id: str, consumed: float | None
) -> None:
    life = Life()
    for second in range(0, HEARTBEAT + 1, EVERY):
        commit = make_commit(10 * second + 1, 3 * second, topic="x", time=START + second * SECOND)
        life.take(msgspec.structs.replace(commit, topic_id=topic_id))
        life.take(round_at(second, make_topic("x", 1, end=5 * second)))
    assert rates(life) == (5.0, consumed)


def test_what_was_deleted_unread_does_not_count_as_consumed() -> None:
    life = Life()
    for second in range(0, HEARTBEAT + 1, EVERY):
        start = 5 * second if second >= 300 else 0
        committed = 10 if second < 420 else 5 * second
        life.take(make_commit(10 * second + 1, committed, topic="x", time=START + second * SECOND))
        packed_start = start.to_bytes(8, "little")
        life.take(round_at(second, make_topic("x", 1, end=5 * second + 50, log_start_offsets=packed_start)))
    assert rates(life) == (5.0, None)


def test_after_an_outage_or_a_clock_that_jumped_a_window_has_no_rates() -> None:
    # The rounds are an hour later than elapsed time says: what came in that hour is no rate of ten minutes.
    life = Life()
    for second in range(0, HEARTBEAT + 1, EVERY):
        late = 3_600 if second > 300 else 0
        topic = make_topic("x", 1, end=5 * (second + late))
        life.take(make_commit(10 * second + 1, 3 * second, topic="x"))
        life.take(
            make_observation(10 * second + 2, topic, time=START + (second + late) * SECOND, elapsed=second * SECOND)
        )
    assert rates(life) == (None, None)
    for second in range(HEARTBEAT + EVERY, 2 * HEARTBEAT + 1, EVERY):
        topic = make_topic("x", 1, end=5 * (second + 3_600))
        at = START + (second + 3_600) * SECOND
        life.take(make_observation(10 * second + 2, topic, time=at, elapsed=second * SECOND))
    assert rates(life)[0] == 5.0


def test_a_window_of_which_a_part_was_compacted_has_no_rates() -> None:
    life = lived(300, lambda s: 100_000 + 5 * s, lambda s: 40 * s)
    life.take(Compacted(3_010, 3_500))
    lived(HEARTBEAT, lambda s: 100_000 + 5 * s, lambda s: 40 * s, life=life, since=360)
    assert rates(life) == (None, None)
    assert health(life).consumed_per_second is None


def test_an_idle_group_has_rates_of_nothing_at_the_rounds_that_show_it() -> None:
    life = lived(120, lambda _: 50, lambda s: 20 if s == 0 else None)
    for second in (400, 995, 1_600):  # a heartbeat apart, one slightly early
        life.take(round_at(second, make_topic("x", 1, end=50), idle=True, state="Empty"))
        assert rates(life) == (0.0, 0.0)


def test_sums_leave_out_topics_that_the_group_does_not_subscribe_to() -> None:
    life = Life.after(make_record(1, [make_member("a", ("x",), {"x": (0,)})]))
    for second in range(0, HEARTBEAT + 1, EVERY):
        life.take(make_commit(10 * second + 1, second, topic="old", time=START + second * SECOND))
        life.take(round_at(second, make_topic("x", 1, end=2 * second), make_topic("old", 1, end=1_000 * second)))
    assert (health(life).produced_per_second, health(life).consumed_per_second) == (2.0, None)
    assert {row.produced_per_second for row in life.rows.lag[-2:]} == {2.0, 1_000.0}


def test_the_largest_offsets_there_are_give_finite_rates() -> None:
    most = 2**63 - 1
    life = lived(2 * HEARTBEAT - EVERY, lambda s: most if s else 0, lambda s: most - 1 if s else 0, partitions=1)
    assert rates(life) == (most / 600, (most - 1) / 600)
    assert health(life).produced_per_second == most / 600
    assert msgspec.json.encode(health(life))


@pytest.mark.parametrize("partition", [-1, -5, 7, 2**31 - 1, -(2**31)])
def test_commits_of_partitions_that_cannot_exist_change_no_rate_of_another(partition: int) -> None:
    life = Life()
    for second in range(0, 2 * HEARTBEAT + 1, EVERY):
        at = START + second * SECOND
        life.take(make_commit(10 * second + 1, 3 * second, topic="x", time=at))
        life.take(make_commit(10 * second + 2, 10_000 - second, topic="x", partition=partition, time=at))
        life.take(round_at(second, make_topic("x", 2, end=5 * second + 50_000)))
    assert rates(life) == (5.0, 3.0)
    assert rates(life, partition) == (None, None)
    assert health(life).consumed_per_second == 3.0


def test_the_groups_sums_leave_a_topic_that_was_created_again_at_once() -> None:
    def both(second: int, **of_x: Any) -> list[Any]:
        y = make_topic("y", 1, end=2 * second, topic_id="Y" * 22)
        return [make_topic("x", 1, **({"end": 5 * second, "topic_id": "A" * 22} | of_x)), y]

    life = Life.after(*(make_commit(1 + n, 0, topic=topic, time=START) for n, topic in enumerate("xy")))
    for second in range(0, 661, EVERY):
        life.take(round_at(second, *both(second)))
    assert health(life).produced_per_second == 7.0
    life.take(round_at(720, *both(720, end=3, topic_id="B" * 22)))
    assert (health(life).round_time, health(life).produced_per_second) == (START + 720 * SECOND, 2.0)
