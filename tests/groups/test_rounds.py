from __future__ import annotations

from streaming.groups.facts import Rows
from streaming.groups.rounds import (
    ClosedRound,
    RoundsState,
    advance_rounds,
    decode_closed_rounds,
    encode_closed_rounds,
)

START = 1_767_225_600_000
SECOND = 1_000


def make_round(number: int, seconds: int, **changes: object) -> ClosedRound:
    fields: dict[str, object] = {
        "round": number,
        "time": START + seconds * SECOND,
        "closed_time": START + seconds * SECOND + 350,
        "interval_ms": 10 * SECOND,
        "probe": "probe-1",
        "cluster_id": "kafka-cluster-id",
        "groups": 4,
        "events": 9,
        "log_partitions": 50,
        "held_partitions": 1,
        "log_records": 1234,
    }
    return ClosedRound(**(fields | changes))  # type: ignore[arg-type]


def advanced(*batches: list[ClosedRound]) -> Rows:
    state, rows = RoundsState(), Rows()
    for batch in batches:
        state, more = advance_rounds(state, decode_closed_rounds(encode_closed_rounds(batch)), "test")
        rows.rounds.extend(more.rounds)
        rows.gaps.extend(more.gaps)
    return rows


def test_a_closed_round_has_a_row() -> None:
    (row,) = advanced([make_round(5, 0)]).rounds
    assert (row.cluster, row.cluster_id, row.round, row.round_time) == ("test", "kafka-cluster-id", 5, START)
    assert (row.event_date, row.closed_time, row.interval_ms, row.probe) == (20_454, START + 350, 10_000, "probe-1")
    assert (row.groups, row.events, row.log_partitions, row.held_partitions, row.log_records) == (4, 9, 50, 1, 1234)


def test_rounds_on_time_leave_no_gap() -> None:
    assert advanced([make_round(5, 0), make_round(7, 10)], [make_round(9, 40)]).gaps == []


def test_more_than_three_intervals_without_a_round_are_a_gap() -> None:
    (gap,) = advanced([make_round(5, 0)], [make_round(7, 31)]).gaps
    assert (gap.cluster, gap.kind, gap.topic, gap.partition) == ("test", "rounds", None, None)
    assert (gap.from_time, gap.to_time) == (START, START + 31 * SECOND)
    assert (gap.from_offset, gap.to_offset) == (None, None)


def test_the_first_round_of_all_has_no_gap_before_it() -> None:
    assert advanced([make_round(5, 100_000)]).gaps == []


def test_rounds_are_taken_by_number() -> None:
    rows = advanced([make_round(9, 20), make_round(5, 0), make_round(7, 10)])
    assert ([row.round for row in rows.rounds], rows.gaps) == ([5, 7, 9], [])


def test_cutting_a_batch_changes_nothing() -> None:
    rounds = [make_round(n, n * 10 if n < 6 else n * 100) for n in range(1, 12)]
    assert advanced(rounds) == advanced(*([item] for item in rounds))
