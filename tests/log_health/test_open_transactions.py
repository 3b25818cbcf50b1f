"""Transactions that hold back the offsets log: rows at the beginning, when the producer is known, and at the end."""

from __future__ import annotations

import msgspec

from streaming.groups import OpenTransactionRow, decode_reserved, encode_reserved
from streaming.log_health import RoundsState, advance_rounds
from streaming.records import ClosedRound, HeldPartition
from tests.log_health.made_round import START, make_round

HELD = HeldPartition(7, START - 40_000, 100, 180, 3)


def held(number: int, *holds: HeldPartition) -> ClosedRound:
    return make_round(number, number * 10, holds=holds)


def rows_of(*batches: list[ClosedRound]) -> list[OpenTransactionRow]:
    state, found = RoundsState(), list[OpenTransactionRow]()
    for batch in batches:
        state, rows = advance_rounds(decode_reserved(encode_reserved(state), RoundsState), batch, "test")
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


def test_cutting_a_batch_changes_nothing() -> None:
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
