"""Rates in windows of a heartbeat: what the rounds saw at their two ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from streaming.groups.context import GroupConfig
from streaming.groups.lag.state import PartitionState
from streaming.groups.load.rates import is_doubtful
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
    assert life.state is not None
    assert life.state.load is not None
    return life.state.load.since_time


def at_second(row: LagRow | GroupHealthRow) -> int:
    return (row.round_time - START) // SECOND


def test_what_was_produced_and_consumed_in_ten_minutes_is_told_from_then_on() -> None:
    life = lived(1_140, lambda s: 5 * s, lambda s: 3 * s)
    known = {at_second(row): (row.produced_per_second, row.consumed_per_second) for row in life.rows.lag}
    assert {second for second, of in known.items() if of == (None, None)} == set(range(0, HEARTBEAT, EVERY))
    assert {of for second, of in known.items() if second >= HEARTBEAT} == {(5.0, 3.0)}
    assert (health(life).produced_per_second, health(life).consumed_per_second) == (5.0, 3.0)


def test_a_rate_is_that_of_the_window_and_changes_when_the_next_has_ended() -> None:
    life = lived(1_800, lambda s: min(s, HEARTBEAT) * 10, lambda _: 0)
    known = {at_second(row): row.produced_per_second for row in life.rows.lag}
    assert known[HEARTBEAT] == 10
    assert known[2 * HEARTBEAT] == 0


def test_a_commit_that_cannot_be_read_leaves_no_rate_of_what_was_consumed_in_its_window() -> None:
    life = Life()
    for second in range(0, HEARTBEAT + 1, EVERY):
        commit = make_commit(10 * second + 1, 3 * second, topic="x", time=START + second * SECOND)
        if second == HEARTBEAT // 2:
            commit = msgspec.structs.replace(commit, commits=0, first_offset=-1, offset=-1, unreadable=True)
        life.take(commit, round_at(second, make_topic("x", 1, end=5 * second)))
    assert rates(life) == (5.0, None)


@pytest.mark.parametrize(("seconds", "known"), [(60, (5.0, 3.0)), (61, (None, None))])
def test_a_window_of_several_short_heartbeats_has_rates_up_to_a_minute(
    seconds: int, known: tuple[float | None, float | None]
) -> None:
    life = Life(GroupConfig(cluster="test", heartbeat_ms=10 * SECOND))
    for second in (0, seconds, 2 * seconds):
        life.take(make_commit(10 * second + 1, 3 * second, topic="x", time=START + second * SECOND))
        life.take(round_at(second, make_topic("x", 1, end=5 * second)))
    assert rates(life) == known


@pytest.mark.parametrize(("seconds", "known"), [(2 * HEARTBEAT, (5.0, 3.0)), (2 * HEARTBEAT + 1, (None, None))])
def test_a_window_has_rates_up_to_two_heartbeats(seconds: int, known: tuple[float | None, float | None]) -> None:
    life = Life()
    for second in (0, seconds):
        life.take(make_commit(10 * second + 1, 3 * second, topic="x", time=START + second * SECOND))
        life.take(round_at(second, make_topic("x", 1, end=5 * second)))
    assert rates(life) == known


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


def test_a_partition_that_nobody_has_committed_has_a_rate_of_what_is_produced_alone() -> None:
    life = Life.after(make_record(1, [make_member("a", ("x",), {"x": (0, 1)})]))
    lived(HEARTBEAT, lambda s: [5 * s, 2 * s], lambda s: 3 * s, life=life, partitions=2)
    assert rates(life, 0) == (5.0, 3.0)
    assert rates(life, 1) == (2.0, None)
    assert (health(life).produced_per_second, health(life).consumed_per_second) == (7.0, 3.0)


@pytest.mark.parametrize("second", [60, 540, 600])
def test_a_rewind_leaves_no_rate_of_what_was_consumed_wherever_in_the_window_it_is(second: int) -> None:
    back = 10_000
    life = lived(HEARTBEAT, lambda s: 30_000 + 5 * s, lambda s: 20_000 + 3 * s - (back if s == second else 0))
    assert rates(life) == (5.0, None)
    lived(2 * HEARTBEAT, lambda s: 30_000 + 5 * s, lambda s: 20_000 + 3 * s, life=life, since=HEARTBEAT + EVERY)
    assert rates(life)[1] == (None if second == 599 else pytest.approx(3.0 if second < 600 else 3.0 + back / 600))


@pytest.mark.parametrize("second", [60, 540, 600])
def test_a_log_that_was_cut_back_has_no_rates_even_if_it_has_grown_beyond_since(second: int) -> None:
    life = lived(
        HEARTBEAT, lambda s: 1_000 + 100 * s - (400 if s == second else 0) - 100 * (s == second) * 60, lambda s: s
    )
    assert rates(life) == (None, None)
    assert health(life).produced_per_second is None


@pytest.mark.parametrize("second", [0, 60, 600])
def test_a_high_watermark_that_a_round_does_not_know_leaves_no_rate(second: int) -> None:
    life = lived(HEARTBEAT, lambda s: -1 if s == second else 100 * s, lambda s: s)
    assert rates(life)[0] is None


def test_a_topic_created_again_has_no_rates_in_that_window_and_has_them_in_the_next() -> None:
    life = lived(300, lambda s: 5 * s, lambda s: 3 * s)
    lived(HEARTBEAT, lambda s: 90 * s, lambda s: 80 * s, life=life, since=360, topic_id="another")
    assert rates(life) == (None, None)
    lived(2 * HEARTBEAT, lambda s: 90 * s, lambda s: 80 * s, life=life, since=660, topic_id="another")
    assert rates(life)[0] == 90.0


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


def test_new_partitions_have_no_rates_in_the_window_in_which_they_come_and_the_others_keep_theirs() -> None:
    life = Life.after(make_record(1, [make_member("a", ("x",), {"x": (0, 1)})]))
    lived(300, lambda s: [5 * s], lambda s: 3 * s, life=life)
    lived(HEARTBEAT, lambda s: [5 * s, 7 * s], lambda s: 3 * s, life=life, since=360, partitions=2)
    assert rates(life, 0) == (5.0, 3.0)
    assert rates(life, 1) == (None, None)
    lived(2 * HEARTBEAT, lambda s: [5 * s, 7 * s], lambda s: 3 * s, life=life, since=660, partitions=2)
    assert rates(life, 1) == (7.0, None)


def test_a_topic_that_is_not_seen_at_an_end_of_the_window_has_no_rates() -> None:
    life = lived(540, lambda s: 5 * s, lambda s: 3 * s)
    life.take(round_at(HEARTBEAT))
    assert rates(life) == (None, None)
    assert health(life).produced_per_second is None


def test_offsets_that_were_deleted_and_committed_again_are_not_compared() -> None:
    life = lived(HEARTBEAT, lambda s: 5 * s, lambda s: 3 * s if s <= 240 or s > 300 else None)
    assert rates(life) == (5.0, 3.0)
    life = lived(240, lambda s: 5 * s, lambda s: 3 * s)
    life.take(make_commit(2_500, None, topic="x"))
    lived(HEARTBEAT, lambda s: 5 * s, lambda s: 3 * s, life=life, since=300)
    assert rates(life) == (5.0, None)


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


def test_a_window_in_which_the_group_was_not_seen_for_an_hour_has_no_rates() -> None:
    life = lived(300, lambda s: 5 * s, lambda s: 3 * s)
    lived(3_960, lambda s: 5 * s, lambda s: 3 * s, life=life, since=3_960)
    assert rates(life) == (None, None)
    lived(4_560, lambda s: 5 * s, lambda s: 3 * s, life=life, since=4_020)
    assert rates(life) == (5.0, 3.0)


def test_a_window_of_which_a_part_was_compacted_has_no_rates() -> None:
    life = lived(300, lambda s: 100_000 + 5 * s, lambda s: 40 * s)
    life.take(Compacted(3_010, 3_500))
    lived(HEARTBEAT, lambda s: 100_000 + 5 * s, lambda s: 40 * s, life=life, since=360)
    assert rates(life) == (None, None)
    assert (health(life).consumed_per_second, health(life).consumed_per_second_behind) == (None, None)


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


def test_a_commit_beyond_the_end_of_the_log_is_nothing_consumed() -> None:
    life = lived(HEARTBEAT, lambda s: 5 * s, lambda s: 3 * s if s < HEARTBEAT else 10**15)
    assert rates(life) == (5.0, None)


def test_a_group_that_was_behind_all_the_time_shows_how_fast_it_can_be() -> None:
    life = lived(HEARTBEAT, lambda s: 100_000 + 5 * s, lambda s: 40 * s)
    assert health(life).consumed_per_second_behind == 40.0
    # It has caught up, and is slower because there is no more.
    lived(4_740, lambda s: 100_000 + 5 * s, lambda s: min(100_000 + 5 * s, 40 * s), life=life, since=660)
    assert health(life).consumed_per_second == 5.0
    assert health(life).consumed_per_second_behind == 40.0


def test_a_group_that_keeps_up_does_not_show_it() -> None:
    life = lived(2 * HEARTBEAT, lambda s: 5 * s, lambda s: 5 * s)
    assert health(life).consumed_per_second_behind is None


@pytest.mark.parametrize("second", [0, 300, 600])
def test_nor_one_that_had_caught_up_at_a_single_round(second: int) -> None:
    # From the next round on it is as far behind as before. (It has a row within ten minutes after the window's end.)
    life = lived(
        2 * HEARTBEAT - EVERY,
        lambda s: 40 * s + (20_000 if s > second else 10_000),
        lambda s: 40 * s + (10_000 if s >= second else 0),
    )
    assert health(life).consumed_per_second is not None
    assert health(life).consumed_per_second_behind is None


def test_nor_one_that_is_behind_and_reads_nothing() -> None:
    life = lived(HEARTBEAT, lambda s: 100_000 + 5 * s, lambda s: 40 * s)
    lived(2 * HEARTBEAT, lambda s: 100_000 + 5 * s, lambda _: None, life=life, since=660)
    assert health(life).consumed_per_second == 0
    assert health(life).consumed_per_second_behind == 40.0


def test_a_partition_without_a_rate_tells_nothing_of_how_fast_the_group_can_be() -> None:
    life = Life()
    for second in range(0, HEARTBEAT + 1, EVERY):
        life.take(make_commit(10 * second + 1, 40 * second, topic="x", time=START + second * SECOND))
        if second >= 300:
            life.take(make_commit(10 * second + 2, second, topic="x", partition=1, time=START + second * SECOND))
        life.take(round_at(second, make_topic("x", 2, end=100_000)))
    assert health(life).consumed_per_second == 40.0
    assert health(life).consumed_per_second_behind is None


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


def test_a_commit_that_comes_again_after_it_was_deleted_has_no_rate_in_that_window() -> None:
    life = lived(120, lambda s: 1_000 + 5 * s, lambda _: 500)
    life.take(make_commit(1_500, None, topic="x", time=START + 150 * SECOND))
    life.take(round_at(180, make_topic("x", 1, end=1_900)))
    lived(660, lambda s: 1_000 + 5 * s, lambda _: 900, life=life, since=240)
    row = life.rows.lag[-1]
    assert (row.produced_per_second, row.consumed_per_second) == (5.0, None)


def test_a_topic_that_was_created_again_does_not_keep_the_rates_of_the_other() -> None:
    life = lived(660, lambda s: 1_000 + 5 * s, lambda _: 500, topic_id="A" * 22)
    life.take(round_at(720, make_topic("x", 1, end=3, topic_id="B" * 22)))
    assert life.rows.lag[-1].produced_per_second is None


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


def test_a_topic_without_an_id_that_shrank_and_grew_again_has_no_rate_across_its_deletion() -> None:
    life = Life.after(make_record(0, [make_member("a", ("x",), {"x": (0, 1)})], time=START))

    def until(second: int, since: int, partitions: int, pace: int) -> None:
        ends: Callable[[int], int] = lambda s: pace * s  # noqa: E731
        lived(second, ends, lambda _: None, life=life, since=since, partitions=partitions, topic_id=None)

    until(240, 0, 2, 5)
    until(300, 300, 1, 90)
    until(HEARTBEAT, 360, 2, 90)
    assert rates(life) == rates(life, 1) == (None, None)
    until(2 * HEARTBEAT, 660, 2, 90)
    assert rates(life) == rates(life, 1) == (90.0, None)


def test_a_topic_that_is_not_subscribed_does_not_hide_how_fast_the_group_can_be() -> None:
    life = Life.after(make_record(0, [make_member("a", ("x",), {"x": (0,)})], time=START))
    for second in range(0, HEARTBEAT + 1, EVERY):
        at = START + second * SECOND
        life.take(make_commit(10 * second + 1, 40 * second, topic="x", time=at))
        if second >= 300:
            life.take(make_commit(10 * second + 2, second, topic="y", time=at))
        life.take(make_observation(10 * second + 3, make_topic("x", 1, end=100_000), make_topic("y", 1), time=at))
    assert health(life).consumed_per_second_behind == 40.0


def test_a_partition_whose_first_records_were_deleted_unread_is_in_doubt_though_it_committed_nothing_but_zero() -> None:
    assert is_doubtful(PartitionState(committed=0, start=10), 20) == (False, True)
    assert is_doubtful(PartitionState(committed=0, start=1), 20) == (False, False)  # a transaction's marker, perhaps
    assert is_doubtful(PartitionState(committed=-1, start=10), 20) == (False, False)


@pytest.mark.parametrize(("deletes", "known"), [(False, 6.0), (True, 3.0)])
def test_a_window_in_which_an_offset_was_deleted_tells_nothing_of_how_fast_the_group_can_be(
    deletes: bool, known: float
) -> None:
    # It reads 3 a second in the first window, and 6 in the second one.
    life = Life.after(
        make_record(0, [make_member("a", ("x",), {"x": (0, 1)})]), make_commit(1, 10, topic="x", time=START)
    )
    for second in range(0, 2 * HEARTBEAT + 1, EVERY):
        at = START + second * SECOND
        read = 3 * second + 3 * max(0, second - HEARTBEAT)
        life.take(make_commit(10 * second + 1, read, topic="x", partition=1, time=at))
        life.take(round_at(second, make_topic("x", 2, end=5 * second + 50_000)))
        if deletes and second == HEARTBEAT:
            life.take(make_commit(10 * second + 5, None, topic="x", time=at))
    assert health(life).consumed_per_second_behind == known
