"""What holds back the offsets log, from round to round."""

from __future__ import annotations

from streaming.probe.kafka.holds import (
    HELD_ROUNDS,
    BlockedPartition,
    BlockingProducer,
    advance_holds,
    reported_holds,
    with_holders,
)
from streaming.probe.kafka.memory import Memory, recall
from streaming.records import HeldPartition, RoundClosed
from tests.probe.kafka.build import LOG, MakeHead, events_of, look_at


def test_an_offset_that_stands_still_below_the_end_is_held_after_more_than_three_rounds(make_head: MakeHead) -> None:
    holds: tuple[BlockedPartition | None, ...] = ()
    said = []
    for number in range(1, HELD_ROUNDS + 3):
        holds = advance_holds(holds, (10, 15, 30), (10, 20, 30), number * 100)
        [event] = events_of(make_head(holds=holds), look_at({}, g=()), Memory())
        said.append(event.saw.held_since)
    assert said == [None, None, None, 100, 100]


def test_transactions_back_to_back_are_no_hold() -> None:
    holds: tuple[BlockedPartition | None, ...] = ()
    for number in range(10):
        holds = advance_holds(holds, (number,), (number + 5,), number)
    assert holds == (BlockedPartition(9, 9, 1),)


def test_a_hold_ends_when_the_log_is_readable_to_its_end() -> None:
    assert advance_holds((BlockedPartition(10, 100, 9),), (20,), (20,), 500) == (None,)


def test_commits_between_the_two_questions_are_no_hold() -> None:
    assert advance_holds((), (25,), (20,), 500) == (None,)


def test_a_log_that_got_more_partitions_is_followed() -> None:
    assert advance_holds((BlockedPartition(1, 5, 1),), (1, 7), (2, 7), 9) == (BlockedPartition(1, 5, 2), None)


def test_who_holds_the_log_is_told_with_each_group_and_with_the_round(make_head: MakeHead) -> None:
    young, old = BlockedPartition(10, 900, 1), BlockedPartition(20, 300, HELD_ROUNDS + 1)
    holds = with_holders((young, old, None), {1: BlockingProducer(4001, "payments-3")})
    [event] = events_of(make_head(holds=holds), look_at({}, g=()), Memory())
    assert (event.saw.held_since, event.saw.held_by_producer, event.saw.held_by) == (300, 4001, "payments-3")
    told = reported_holds(holds, (11, 25, 30), [1, 1, 2])
    assert told == (HeldPartition(1, 300, 20, 25, 2, 4001, "payments-3"),)
    # It is known from then on, also to a restarted probe.
    assert advance_holds(holds, LOG, (11, 21, 30), 1_100)[1] == BlockedPartition(
        20, 300, 5, BlockingProducer(4001, "payments-3")
    )
    closed = RoundClosed(1, "prod", "p", 100, 7, 1_000, LOG, (11, 25, 30), {}, 0, 0, holds=told)
    assert recall(closed, []).holds == (
        BlockedPartition(10, 1_000, 1),
        BlockedPartition(20, 300, 4, BlockingProducer(4001, "payments-3")),
        None,
    )


def test_a_restarted_probe_counts_a_young_hold_from_the_last_round() -> None:
    closed = RoundClosed(1, "prod", "p", 100, 7, 1_000, (10,), (12,), {}, 0, 0)
    assert recall(closed, []).holds == (BlockedPartition(10, 1_000, 1),)
