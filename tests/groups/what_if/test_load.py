"""What other strategies would have made of the load, with the rates of the newest window."""

from __future__ import annotations

import pytest

from assignors import Group, Subscription
from streaming.groups.rows import WhatIfRow
from streaming.groups.what_if.classic import StrategyColumns, with_load_optimal
from streaming.records import GroupObservation
from tests.groups.build import MINUTE, START, Life, make_record, make_topic
from tests.groups.load.windows import HEARTBEAT, record_of, round_at, see
from tests.groups.modern_log import TOPIC_ID, epoch, metadata, owns, read, stands, target

RATES = {"x": [6, 6, 1, 1]}


def after_a_rebalance(life: Life) -> dict[str, WhatIfRow]:
    """By range a gets 0 and 1, by round robin 0 and 2."""
    life.take(record_of(9_000, {"x": (0, 1)}, {"x": (2, 3)}, topics=("x",)))
    return {row.strategy: row for row in life.take(_round()).what_if}


def _round() -> GroupObservation:
    return round_at(901, make_topic("x", 4, end=[901 * rate for rate in RATES["x"]]))


def test_each_strategy_is_weighed_by_what_was_produced_in_the_newest_window() -> None:
    life = Life()
    life.take(record_of(1, {"x": (0, 1, 2, 3)}, topics=("x",)))
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
    life = Life()
    life.take(record_of(1, {"x": (0, 1, 2, 3)}, topics=("x",)))
    see(life, RATES, 0, 900)
    # Two members share 6, 6, 1 and 1: 7 each.
    assert {best(row) for row in after_a_rebalance(life).values()} == {(0.0, 0.0)}


def test_a_partition_that_has_most_of_the_load_bounds_every_strategy() -> None:
    life = Life()
    life.take(record_of(1, {"x": (0, 1, 2, 3)}, topics=("x",)))
    see(life, {"x": [9, 1, 1, 1]}, 0, 900)
    life.take(record_of(9_000, {"x": (0, 1)}, {"x": (2, 3)}, topics=("x",)))
    rows = life.take(round_at(901, make_topic("x", 4, end=[901 * rate for rate in (9, 1, 1, 1)]))).what_if
    assert {best(row) for row in rows} == {(0.5, 0.5)}
    assert min(row.load_imbalance or 9 for row in rows) >= 0.5


def test_before_the_first_window_has_ended_the_load_is_not_known() -> None:
    life = Life()
    life.take(record_of(1, {"x": (0, 1, 2, 3)}, topics=("x",)))
    see(life, RATES, 0, HEARTBEAT - 60)
    rows = after_a_rebalance(life)
    assert rows["range"].imbalance == 0
    assert {(row.load_imbalance, *best(row)) for row in rows.values()} == {(None, None, None)}
    assert {row.load_reason for row in rows.values()} == {
        "no window of the rates has ended yet, or its length is not certain"
    }


def test_a_topic_without_rates_and_one_without_records_are_reasons() -> None:
    life = Life()
    life.take(record_of(1, {"x": (0, 1, 2)}, topics=("x",)))
    see(life, {"x": [6, 6, 1]}, 0, 840)
    assert after_a_rebalance(life)["range"].load_reason == "the rates of topic 'x' are not known for each partition"
    life = Life()
    life.take(record_of(1, {"x": (0, 1, 2, 3)}, topics=("x",)))
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
    life = Life()
    life.take(*read([metadata("a"), epoch(1), target("a", 0, 1, 2, 3), stands(1), owns("a", 1, 0, 1, 2, 3)], 1))
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


def test_the_best_that_any_assignment_could_do_is_asked_for_only_where_a_strategy_was_weighed() -> None:
    group, load = Group((Subscription("a", ("x",)), Subscription("b", ("x",))), {"x": 2}), {"x": [2.0, 1.0]}
    weighed, unknown = (
        StrategyColumns("range", True, load_imbalance=1 / 3),
        StrategyColumns("sticky", False, reason="why"),
    )
    assert with_load_optimal([unknown], group, load) == [unknown]
    assert with_load_optimal([weighed], group, "not known") == [weighed]
    # Two members, and partitions of 2 and 1: 2 / 1.5 is the best.
    for told in with_load_optimal([weighed, unknown], group, load):
        assert told.load_optimal == (pytest.approx(1 / 3), pytest.approx(1 / 3))
