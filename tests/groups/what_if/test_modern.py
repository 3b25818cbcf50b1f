"""What other strategies had given where the broker assigns, and by the load that partitions carry."""

from __future__ import annotations

import pytest

from streaming.groups import GroupConfig
from streaming.groups.rows import WhatIfRow
from streaming.records import GroupObservation
from tests.groups.build import CONFIG, GROUP, MINUTE, START, Life, make_observation, make_record, make_topic
from tests.groups.coordinator import TOPIC, Written
from tests.groups.load.windows import HEARTBEAT, record_of, round_at, see
from tests.groups.modern_log import (
    FIRST,
    SECOND_MEMBER,
    TOPIC_ID,
    asking,
    epoch,
    gone,
    metadata,
    owns,
    read,
    stands,
    target,
)
from tests.groups.verdicts import the_row
from tests.offsets_log.written import member_metadata, other_key, target_assignment


def rows_of(*log: Written, count: int = 4, config: GroupConfig = CONFIG) -> list[WhatIfRow]:
    """Rows of the newest decision; one round follows the log."""
    life = Life(config)
    life.take(*read(list(log)))
    orders = make_topic("orders", count, topic_id=TOPIC_ID)
    rows = life.take(make_observation(10 + len(log), orders, state=None, group_type="consumer")).what_if
    newest = max((row.decision for row in rows), default=None)
    return [row for row in rows if row.decision == newest]


def test_both_assignors_of_the_broker_are_told() -> None:
    # a owns 0 1 2 3; b joins. Uniform lets a keep 0 1; so does range, where a comes first.
    rows = rows_of(*FIRST, *SECOND_MEMBER)

    assert sorted(row.strategy for row in rows) == ["range", "uniform"]
    uniform = the_row(rows, "uniform")
    assert (uniform.runs, uniform.library, uniform.partitions_moved, uniform.imbalance) == (
        True,
        "broker:3.8.1",
        2,
        0.0,
    )
    assert (uniform.partitions_moved_optimal, uniform.imbalance_optimal, uniform.reason) == (2, 0.0, None)
    assert (uniform.decision, uniform.generation, uniform.incarnation) == (19, 2, 13)
    assert the_row(rows, "range").runs is False


def test_the_assignor_that_nobody_asked_for_is_told_by_its_result() -> None:
    # b owns 0 1 2, a joins: range gives a the larger part, 0 1; uniform in current brokers leaves b two.
    log = [asking("b", None), epoch(1), target("b", 0, 1, 2), stands(1)]
    log += [asking("a", None), epoch(2), target("a", 0, 1), target("b", 2), stands(2)]
    rows = rows_of(*log, count=3)

    assert (the_row(rows, "range").runs, the_row(rows, "range").partitions_moved) == (True, 2)
    assert (the_row(rows, "uniform").runs, the_row(rows, "uniform").partitions_moved) == (False, 1)
    assert [the_row(rows, name).library for name in ("range", "uniform")] == ["broker:3.9.0", "broker:4.0.1"]


def test_where_both_give_the_target_which_runs_is_not_told() -> None:
    log = [asking("a", None), epoch(1), target("a", 0, 1, 2, 3), stands(1)]
    assert [row.runs for row in rows_of(*log)] == [None, None]


def test_where_one_gives_the_target_in_one_release_and_the_other_in_another_which_runs_is_not_told() -> None:
    # 0 and 1 of z, which left, go to a: with range in every release, with uniform up to 4.0.0 (later it gives b one).
    log = [asking("b", None), epoch(1), target("b", 0, 1, 2), stands(1)]
    log += [asking("z", None), epoch(2), target("b", 2), target("z", 0, 1), stands(2)]
    log += [*gone("z"), asking("a", None), epoch(3), target("a", 0, 1), stands(3)]
    rows = rows_of(*log, count=3)
    assert [(row.runs, row.partitions_moved, row.library) for row in rows] == [(None, 2, "broker:4.0.1")] * 2


@pytest.mark.parametrize("assignor", [None, "uniform"])
def test_what_range_would_have_given_is_told_of_the_newest_release_that_gave_the_target(assignor: str | None) -> None:
    # c leaves: up to 4.0.0 uniform gives the first member the larger part; the target is that of no later release.
    log = [asking("a", assignor), asking("b", assignor), epoch(1), target("a"), target("b"), stands(1)]
    log += [asking("c", assignor), epoch(2), target("a", 1), target("b", 0, 2), target("c"), stands(2)]
    log += [*gone("c"), epoch(3), target("a", 1, 2), target("b", 0), stands(3)]
    rows = rows_of(*log, count=3)
    assert (the_row(rows, "range").runs, the_row(rows, "range").library) == (False, "broker:4.0.0")


def test_an_assignor_that_is_not_known_has_a_row_with_the_reason() -> None:
    rows = rows_of(*FIRST, asking("a", "mine"), epoch(2), stands(2))

    mine = the_row(rows, "mine")
    assert (mine.runs, mine.partitions_moved, mine.library, mine.reason) == (
        True,
        None,
        None,
        "assignor 'mine' is not known",
    )
    assert (the_row(rows, "uniform").partitions_moved, the_row(rows, "uniform").library) == (0, "broker:4.0.1")


def test_what_is_not_known_is_the_reason() -> None:
    rows = rows_of(*FIRST[3:])
    reason = "the previous target is not known: earlier records of the group may be missing"
    assert [(row.partitions_moved, row.imbalance, row.reason) for row in rows] == [(None, None, reason)] * 2


@pytest.mark.parametrize(("topics", "partition"), [(("orders", "bills"), 0), (("orders",), 2**31 - 1)])
def test_a_target_of_partitions_that_no_round_knows_is_not_measured(topics: tuple[str, ...], partition: int) -> None:
    # Topic ids have 16 bytes; nothing else is known of this one.
    both = target_assignment({TOPIC: (0, 1, 2, 3), bytes(16): (partition,)})
    log = [*FIRST, (other_key(5, GROUP, "b"), member_metadata(topics)), epoch(2)]
    log += [(other_key(7, GROUP, "a"), both), target("b"), stands(2)]
    life = Life.after(*read(log))
    seen = make_topic("orders", 4, topic_id=TOPIC_ID), make_topic("bills", 0, topic_id="EBESExQVFhcYGRobHB0eHw")
    rows = life.take(make_observation(10 + len(log), *seen, state=None, group_type="consumer")).what_if
    reason = "the topics of its target are not known, or have no such partitions"
    assert [(row.partitions_moved, row.reason) for row in rows if row.generation == 2] == [(None, reason)] * 2


def test_a_group_above_the_size_an_empty_one_and_none_at_all() -> None:
    log = (*FIRST, *SECOND_MEMBER)
    assert {row.reason for row in rows_of(*log, config=GroupConfig("test", what_if_max_size=8))} == {None}
    (reason,) = {row.reason for row in rows_of(*log, config=GroupConfig("test", what_if_max_size=7))}
    assert reason.startswith("4 partitions times 2 members are more than what_if_max_size (7)")
    assert rows_of(*log, config=GroupConfig("test", what_if_max_size=0)) == []
    life = Life.after(*read([*FIRST, *gone("a"), epoch(2)]))
    rows = life.take(
        make_observation(30, make_topic("orders", 4, topic_id=TOPIC_ID), state=None, group_type="consumer")
    )
    assert {row.generation for row in rows.what_if} == {1}


RATES = {"x": [6, 6, 1, 1]}


def after_a_rebalance(life: Life) -> dict[str, WhatIfRow]:
    """By range a gets 0 and 1, by round robin 0 and 2."""
    life.take(record_of(9_000, {"x": (0, 1)}, {"x": (2, 3)}, topics=("x",)))
    return {row.strategy: row for row in life.take(_round()).what_if}


def _round() -> GroupObservation:
    return round_at(901, make_topic("x", 4, end=[901 * rate for rate in RATES["x"]]))


def test_each_strategy_is_weighed_by_what_was_produced_in_the_newest_window() -> None:
    life = Life.after(record_of(1, {"x": (0, 1, 2, 3)}, topics=("x",)))
    see(life, RATES, 0, 900)
    rows = after_a_rebalance(life)
    assert {name: (rows[name].load_imbalance, rows[name].load_reason) for name in ("range", "roundrobin")} == {
        "range": (pytest.approx(12 / 7 - 1), None),
        "roundrobin": (0.0, None),
    }
    assert rows["range"].imbalance == rows["roundrobin"].imbalance == 0


def best(row: WhatIfRow) -> tuple[float | None, float | None]:
    return row.load_imbalance_optimal_min, row.load_imbalance_optimal_max


def test_beside_them_stands_the_best_that_any_assignment_could_do() -> None:
    life = Life.after(record_of(1, {"x": (0, 1, 2, 3)}, topics=("x",)))
    see(life, RATES, 0, 900)
    # Two members share 6, 6, 1 and 1: 7 each.
    assert {best(row) for row in after_a_rebalance(life).values()} == {(0.0, 0.0)}


def test_a_partition_that_has_most_of_the_load_bounds_every_strategy() -> None:
    life = Life.after(record_of(1, {"x": (0, 1, 2, 3)}, topics=("x",)))
    see(life, {"x": [9, 1, 1, 1]}, 0, 900)
    life.take(record_of(9_000, {"x": (0, 1)}, {"x": (2, 3)}, topics=("x",)))
    rows = life.take(round_at(901, make_topic("x", 4, end=[901 * rate for rate in (9, 1, 1, 1)]))).what_if
    assert {best(row) for row in rows} == {(0.5, 0.5)}
    assert min(row.load_imbalance or 9 for row in rows) >= 0.5


def test_before_the_first_window_has_ended_the_load_is_not_known() -> None:
    life = Life.after(record_of(1, {"x": (0, 1, 2, 3)}, topics=("x",)))
    see(life, RATES, 0, HEARTBEAT - 60)
    rows = after_a_rebalance(life)
    assert rows["range"].imbalance == 0
    assert {(row.load_imbalance, *best(row)) for row in rows.values()} == {(None, None, None)}
    assert {row.load_reason for row in rows.values()} == {
        "no window of the rates has ended yet, or its length is not certain"
    }


def test_a_topic_without_rates_and_one_without_records_are_reasons() -> None:
    life = Life.after(record_of(1, {"x": (0, 1, 2)}, topics=("x",)))
    see(life, {"x": [6, 6, 1]}, 0, 840)
    assert after_a_rebalance(life)["range"].load_reason == "the rates of topic 'x' are not known for each partition"
    life = Life.after(record_of(1, {"x": (0, 1, 2, 3)}, topics=("x",)))
    see(life, {"x": [0] * 4}, 0, 840)
    assert after_a_rebalance(life)["range"].load_reason == "no records were produced"


def test_a_strategy_that_is_not_computed_has_its_reason_for_the_load_as_well() -> None:
    life = Life()
    members = record_of(1, {"x": (0, 1, 2, 3)}, topics=("x",)).members
    life.take(make_record(1, members, protocol="house-blend"))
    (row,) = [row for row in life.take(round_at(1, make_topic("x", 4))).what_if if row.strategy == "house-blend"]
    assert row.load_imbalance is None
    assert row.load_reason == row.reason


def test_assignors_of_the_broker_are_weighed_too() -> None:
    life = Life.after(*read([metadata("a"), epoch(1), target("a", 0, 1, 2, 3), stands(1), owns("a", 1, 0, 1, 2, 3)], 1))
    shown = {"state": None, "group_type": "consumer"}
    for second in range(0, HEARTBEAT + 1, 60):
        topic = make_topic("orders", 4, end=[second * rate for rate in RATES["x"]], topic_id=TOPIC_ID)
        life.take(round_at(second + 60, topic, **shown))
    life.take(*read([metadata("b"), epoch(2), target("a", 0, 1), target("b", 2, 3), stands(2)], 7_000))
    at = START + 12 * MINUTE
    topic = make_topic("orders", 4, end=10_000, topic_id=TOPIC_ID)
    rows = {row.strategy: row for row in life.take(round_at(720, topic, **shown)).what_if if row.round_time == at}
    assert rows["range"].load_imbalance == pytest.approx(12 / 7 - 1)
    assert rows["range"].load_reason is None
    assert best(rows["range"]) == (0.0, 0.0)
