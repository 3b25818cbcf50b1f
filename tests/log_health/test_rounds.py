from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from streaming.groups import OpenTransactionRow, Rows, decode_reserved, encode_state
from streaming.log_health import RoundsState, advance_rounds
from streaming.records import Broker, Brokers, ClosedRound, HeldPartition, decode_closed_rounds, encode_inputs
from tests.log_health.made_round import SECOND, START, make_round

HOUR = 3_600


def advanced(*batches: list[ClosedRound]) -> Rows:
    state, rows = RoundsState(), Rows()
    for batch in batches:
        state = decode_reserved(encode_state(state), RoundsState)
        state, more = advance_rounds(state, decode_closed_rounds(encode_inputs(batch)), "test")
        rows.rounds.extend(more.rounds)
        rows.gaps.extend(more.gaps)
    return rows


def test_a_closed_round_has_a_row() -> None:
    (row,) = advanced([make_round(5, 0)]).rounds
    assert (row.cluster, row.cluster_id, row.round, row.round_time) == ("test", "kafka-cluster-id", 5, START)
    assert (row.event_date, row.closed_time, row.interval_ms, row.probe) == (20_454, START + 350, 10_000, "probe-1")
    assert (row.groups, row.events, row.log_partitions, row.held_partitions, row.log_records) == (4, 9, 50, 1, 1234)


@pytest.mark.parametrize(
    ("interval_ms", "records", "more", "told"),
    [
        (10_000, 0, {}, 30_000),
        (2_000, 0, {}, 6_000),
        (60_000, 0, {}, 60_000),
        (10_000, 0, {"events": {"0": (5, 7)}, "resting": {"0": (5, 7)}}, 30_000),
        (10_000, 1, {}, 10_000),
        (10_000, 0, {"events": {"0": (5, 9)}, "resting": {"0": (5, 7)}}, 10_000),
        (10_000, 0, {"holds": (HeldPartition(3, START, 5, 6, 1),)}, 10_000),
        (10_000, 0, {"brokers": Brokers((), (Broker(1, "a", since=START),))}, 10_000),
    ],
)
def test_a_row_tells_how_often_rounds_are_written_which_is_less_often_where_nothing_moves(
    interval_ms: int, records: int, more: dict[str, Any], told: int
) -> None:
    item = msgspec.structs.replace(make_round(5, 0, interval_ms=interval_ms, **more), log_records=records)
    assert [row.interval_ms for row in advanced([item]).rounds] == [told]


def lived(*seconds: int, jumps: Mapping[int, int] = MappingProxyType({}), first: int = 5) -> Rows:
    """Rounds at these seconds, each in its own batch; `jumps` gives the clock's error at some of them."""
    elapsed, before, batches = 0, None, []
    for place, second in enumerate(seconds):
        told = second + jumps.get(place, 0)
        elapsed += 0 if before is None else max(0, min(told - before, 30))
        before = told
        batches.append([make_round(first + 2 * place, told, elapsed=elapsed * SECOND)])
    return advanced(*batches)


def gaps(rows: Rows) -> list[tuple[int, ...]]:
    """Begin and end of each gap in seconds."""
    return [tuple(((time or 0) - START) // SECOND for time in (gap.from_time, gap.to_time)) for gap in rows.gaps]


DAY = 86_400


def test_rounds_on_time_leave_no_gap() -> None:
    assert gaps(lived(0, 10, 40)) == []


def test_more_than_three_intervals_without_a_round_are_a_gap() -> None:
    (gap,) = lived(0, 31).gaps
    assert (gap.cluster, gap.kind, gap.topic, gap.partition) == ("test", "rounds", None, None)
    assert (gap.from_time, gap.to_time) == (START, START + 31 * SECOND)
    assert (gap.from_offset, gap.to_offset) == (None, None)


@pytest.mark.parametrize("until", [10 + HOUR, 10 + DAY])
def test_a_long_gap_is_told_with_the_second_round_after_it(until: int) -> None:
    assert gaps(lived(0, 10, until)) == []
    assert gaps(lived(0, 10, until, until + 10, until + 20)) == [(10, until)]


@pytest.mark.parametrize("off", [DAY, -DAY])
def test_a_clock_that_is_wrong_for_one_round_is_no_gap_and_hides_none(off: int) -> None:
    assert gaps(lived(0, 10, 20, 30, 40, 50, jumps={2: off})) == []
    later = 50 + HOUR
    assert gaps(lived(0, 10, 20, 30, 40, 50, later, later + 10, jumps={2: off})) == [(50, later)]
    assert gaps(lived(0, 10, 20, 70, 80, jumps={2: off})) == []
    assert gaps(lived(0, 10, 20, 71, 80, jumps={2: off})) == [(10, 71)]


def test_a_clock_that_is_set_back_for_good_is_no_gap() -> None:
    assert gaps(lived(*range(0, 100, 10), jumps=dict.fromkeys(range(5, 10), -HOUR))) == []


def test_a_clock_that_was_wrong_at_the_very_first_round_is_no_gap() -> None:
    assert gaps(lived(*range(0, 100, 10), jumps={0: -DAY})) == gaps(lived(*range(0, 100, 10), jumps={0: DAY})) == []


def test_the_first_round_of_all_has_no_gap_before_it() -> None:
    assert advanced([make_round(5, 100_000)]).gaps == []


def test_rounds_are_taken_by_number() -> None:
    rows = advanced([make_round(9, 20), make_round(5, 0), make_round(7, 10)])
    assert ([row.round for row in rows.rounds], rows.gaps) == ([5, 7, 9], [])


def test_cutting_a_batch_changes_nothing() -> None:
    rounds = [make_round(n, n * 10 if n < 6 else n * 1_000, elapsed=n * 10 * SECOND) for n in range(1, 12)]
    assert advanced(rounds) == advanced(*([item] for item in rounds))
    assert len(advanced(rounds).gaps) == 5


def test_rounds_that_take_far_longer_than_their_interval_are_gaps_each_told_by_the_next() -> None:
    assert gaps(lived(0, 10, 210, 410, 610)) == [(10, 210), (210, 410)]


HELD = HeldPartition(7, START - 40_000, 100, 180, 3)


def held(number: int, *holds: HeldPartition) -> ClosedRound:
    return make_round(number, number * 10, holds=holds)


def rows_of(*batches: list[ClosedRound]) -> list[OpenTransactionRow]:
    state, found = RoundsState(), list[OpenTransactionRow]()
    for batch in batches:
        state, rows = advance_rounds(decode_reserved(encode_state(state), RoundsState), batch, "test")
        found += rows.open_transactions
    return found


def test_a_hold_has_a_row_where_it_begins_and_one_where_it_ends() -> None:
    growing = [held(n, msgspec.structs.replace(HELD, end=180 + n)) for n in range(1, 5)]
    first, last = rows_of([held(0), *growing, held(5)])
    assert (first.round, first.log_partition, first.held, first.held_since) == (1, 7, True, START - 40_000)
    assert (first.held_offset, first.waiting, first.groups, first.transactional_id) == (100, 81, 3, None)
    assert (last.round, last.held, last.held_since, last.held_offset) == (5, False, START - 40_000, 100)
    assert (last.waiting, last.groups) == (0, 0)


def test_a_hold_whose_owner_becomes_known_has_a_row_more() -> None:
    named = msgspec.structs.replace(HELD, producer_id=4001, transactional_id="payments-3")
    rows = rows_of([held(1, HELD), held(2, named), held(3, named), held(4)])
    assert [(row.round, row.held, row.producer_id, row.transactional_id) for row in rows] == [
        (1, True, None, None),
        (2, True, 4001, "payments-3"),
        (4, False, 4001, "payments-3"),
    ]


def test_partitions_are_held_each_for_itself() -> None:
    other = HeldPartition(9, START, 5, 6, 1)
    rows = rows_of([held(1, HELD), held(2, HELD, other), held(3, other)])
    assert [(row.round, row.log_partition, row.held) for row in rows] == [(1, 7, True), (2, 9, True), (3, 7, False)]


def test_a_probe_that_does_not_tell_of_holds_ends_none() -> None:
    assert [row.held for row in rows_of([held(1, HELD), make_round(2, 20), held(3, HELD)])] == [True]


def test_cutting_a_batch_changes_no_hold() -> None:
    named = msgspec.structs.replace(HELD, producer_id=4001)
    rounds = [held(0), held(1, HELD), held(2, HELD), held(3, named), held(4), held(5, HELD), held(6)]
    whole = rows_of(rounds)
    assert len(whole) == 5
    for cut in range(1, len(rounds)):
        assert rows_of(rounds[:cut], rounds[cut:]) == whole


def test_the_state_of_rounds_before_holds_were_told_goes_on() -> None:
    packed = msgspec.msgpack.encode([START])
    state = decode_reserved((1, packed), RoundsState)
    assert (state.time, state.holds) == (START, {})
