"""The result does not depend on how the stream was cut into batches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.groups import GroupConfig, Rows
from streaming.records import decode_inputs, encode_inputs
from tests.examples import examples
from tests.groups.build import (
    CONFIG,
    MINUTE,
    SECOND,
    START,
    Life,
    counted,
    even,
    make_observation,
    make_record,
    make_topic,
)
from tests.groups.streams import Step, batches, steady_streams, streams

OFTEN = GroupConfig(cluster="test", heartbeat_ms=20 * SECOND)
"""Heartbeats, and so the windows of the rates, of a few rounds only."""


def rows_of(steps: Sequence[Step], cuts: Iterable[int], config: GroupConfig = CONFIG) -> Rows:
    life = Life(config)
    for inputs in batches(steps, cuts):
        life.take(*decode_inputs(encode_inputs(inputs)))
    return life.rows


@settings(deadline=None, max_examples=examples(120))
@given(streams(), st.data())
def test_any_batches_give_the_rows_of_one(steps: list[Step], data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(1, max(1, len(steps) - 1)), max_size=8))
    assert counted(rows_of(steps, cuts)) == counted(rows_of(steps, ()))


@settings(deadline=None, max_examples=examples(60))
@given(steady_streams(), st.data())
def test_any_batches_give_the_rates_of_one(steps: list[Step], data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(1, max(1, len(steps) - 1)), max_size=8))
    rows = rows_of(steps, (), OFTEN)
    assert counted(rows_of(steps, cuts, OFTEN)) == counted(rows)
    for row in (*rows.lag, *rows.group_health):
        for rate in (row.produced_per_second, row.consumed_per_second):
            assert rate is None or 0 <= rate < math.inf
    for health in rows.group_health:
        told = health.load_imbalance, health.load_imbalance_optimal_min, health.load_imbalance_optimal_max
        if health.load_imbalance_optimal_min is not None:
            present, least, most = (value or 0 for value in told)
            assert least + 1e-9 >= 0
            assert least <= most <= present + 1e-9


@pytest.mark.soak
@pytest.mark.turn(2)
@pytest.mark.timeout(3_600)
@settings(deadline=None, max_examples=5_000)
@given(streams(), st.data())
def test_any_batches_give_the_rows_of_one_over_thousands_of_lives(steps: list[Step], data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(1, max(1, len(steps) - 1)), max_size=8))
    assert counted(rows_of(steps, cuts)) == counted(rows_of(steps, ()))


@settings(deadline=None, max_examples=examples(50))
@given(streams(), st.randoms(use_true_random=False))
def test_the_order_of_a_batch_s_inputs_makes_no_difference(steps: list[Step], random: object) -> None:
    whole, shuffled = Life(), Life()
    (inputs,) = batches(steps, ())
    whole.take(*inputs)
    random.shuffle(inputs)  # type: ignore[attr-defined]
    shuffled.take(*inputs)
    assert counted(shuffled.rows) == counted(whole.rows)


def counts_of(life: Life, topic: str) -> list[tuple[int, int, int]]:
    """Partition counts in the state, and the first and last second in which each was seen."""
    return [
        (seen.count, (seen.first - START) // SECOND, (seen.last - START) // SECOND)
        for seen in life.state.topics[topic].counts
    ]


def test_the_newest_count_before_twice_the_grace_is_still_in_force_and_kept_and_older_ones_are_not() -> None:
    assert CONFIG.metadata_grace_ms == 10 * MINUTE
    life = Life.after(make_record(5, even("x", 1, "a")))
    for second, partitions in ((10, 1), (60, 2), (120, 3), (190, 3)):
        life.take(make_observation(second, make_topic("x", partitions)))
    assert counts_of(life, "x") == [(1, 10, 10), (2, 60, 60), (3, 120, 190)]
    life.take(make_observation(200 + 20 * 60, make_topic("x", 4)))
    assert counts_of(life, "x") == [(3, 120, 190), (4, 1400, 1400)]


def test_a_topic_is_forgotten_when_no_round_has_shown_it_for_more_than_twice_the_grace() -> None:
    life = Life.after(
        make_record(5, even("x", 1, "a", topics=("x", "y"))),
        make_observation(10, make_topic("x", 1), make_topic("y", 1)),
    )
    for second, known in ((10 + 20 * 60, {"x", "y"}), (11 + 20 * 60, {"x"})):
        life.take(make_observation(second, make_topic("x", 1)))
        assert set(life.state.topics) == known
