"""What other strategies had given where the broker assigns, and by the load that partitions carry."""

from __future__ import annotations

import pytest

from streaming.groups import GroupConfig
from streaming.groups.rows import WhatIfRow
from streaming.records import GroupObservation
from tests.groups.build import CONFIG, GROUP, MINUTE, START, Life, make_observation, make_topic
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
        "broker:4.0.0",
        2,
        0.0,
    )
    assert (uniform.partitions_moved_optimal, uniform.imbalance_optimal, uniform.reason) == (2, 0.0, None)
    assert (uniform.decision, uniform.generation, uniform.incarnation) == (19, 2, 13)
    assert the_row(rows, "range").runs is False


def test_where_nobody_asks_for_an_assignor_both_are_those_of_the_newest_release_and_which_runs_is_not_told() -> None:
    # b owns 0 1 2, a joins: range gives a the larger part, 0 1; uniform in current brokers leaves b two.
    log = [asking("b", None), epoch(1), target("b", 0, 1, 2), stands(1)]
    log += [asking("a", None), epoch(2), target("a", 0, 1), target("b", 2), stands(2)]
    rows = {row.strategy: row for row in rows_of(*log, count=3)}
    assert {name: row.partitions_moved for name, row in rows.items()} == {"range": 2, "uniform": 1}
    assert {(row.runs, row.library) for row in rows.values()} == {(None, "broker:4.0.1")}


def test_the_assignor_that_members_ask_for_is_of_the_release_that_gave_the_target_and_the_other_of_the_newest() -> None:
    # c leaves: in 4.0.0 uniform gives the first member the larger part; the target is that of no later release.
    log = [asking("a", "uniform"), asking("b", "uniform"), epoch(1), target("a"), target("b"), stands(1)]
    log += [asking("c", "uniform"), epoch(2), target("a", 1), target("b", 0, 2), target("c"), stands(2)]
    log += [*gone("c"), epoch(3), target("a", 1, 2), target("b", 0), stands(3)]
    rows = rows_of(*log, count=3)
    assert (the_row(rows, "uniform").runs, the_row(rows, "uniform").library) == (True, "broker:4.0.0")
    assert (the_row(rows, "range").runs, the_row(rows, "range").library) == (False, "broker:4.0.1")


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
    assert [(row.partitions_moved, row.reason) for row in rows if row.generation == 2] == [(None, reason)]


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
    assert {name: rows[name].load_imbalance for name in ("range", "roundrobin")} == {
        "range": pytest.approx(12 / 7 - 1),
        "roundrobin": 0.0,
    }
    assert rows["range"].imbalance == rows["roundrobin"].imbalance == 0


def test_before_the_first_window_has_ended_the_load_is_not_known() -> None:
    life = Life.after(record_of(1, {"x": (0, 1, 2, 3)}, topics=("x",)))
    see(life, RATES, 0, HEARTBEAT - 60)
    rows = after_a_rebalance(life)
    assert rows["range"].imbalance == 0
    assert {row.load_imbalance for row in rows.values()} == {None}


def test_with_a_topic_without_rates_or_without_records_nothing_is_weighed() -> None:
    life = Life.after(record_of(1, {"x": (0, 1, 2)}, topics=("x",)))
    see(life, {"x": [6, 6, 1]}, 0, 840)
    assert after_a_rebalance(life)["range"].load_imbalance is None
    life = Life.after(record_of(1, {"x": (0, 1, 2, 3)}, topics=("x",)))
    see(life, {"x": [0] * 4}, 0, 840)
    assert after_a_rebalance(life)["range"].load_imbalance is None


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
