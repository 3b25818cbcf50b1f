"""Recorded groups through the core: the same rows however the rounds are cut, and equal to the recorded rows."""

from __future__ import annotations

import itertools

import pytest

from tests.e2e.streams import RecordedStream, by_table, counted, read_streams, rows_of
from tests.groups.verdicts import recompute_all

STREAMS = {stream.key: stream for stream in read_streams()}


@pytest.fixture(params=sorted(STREAMS))
def stream(request: pytest.FixtureRequest) -> RecordedStream:
    return STREAMS[request.param]


def _in_batches(stream: RecordedStream, *cuts: int) -> list[list[bytes]]:
    """Payloads of batches that end before the rounds at `cuts`."""
    bounds = [0, *cuts, len(stream.rounds)]
    return [
        [payload for payloads in stream.rounds[start:end] for payload in payloads]
        for start, end in itertools.pairwise(bounds)
    ]


def test_a_recorded_group_gives_the_rows_that_were_written_down(stream: RecordedStream) -> None:
    rows = by_table(rows_of(stream.key, stream.rounds))
    # Without newer tables, and columns: both are only appended.
    width = {table: len(of[0]) for table, of in stream.rows.items() if of}
    known = {table: [row[: width.get(table)] for row in rows[table]] for table in stream.rows}
    assert counted(known) == counted(stream.rows)


def test_the_verdicts_on_a_recorded_group_follow_from_their_inputs_alone(stream: RecordedStream) -> None:
    rows = rows_of(stream.key, stream.rounds)
    assert recompute_all(rows).total() == len([row for row in rows.drift if row.candidates])


def test_a_recorded_group_gives_the_same_rows_round_by_round_and_in_one_batch(stream: RecordedStream) -> None:
    in_one = rows_of(stream.key, _in_batches(stream))
    assert len(in_one.rebalance_churn) > 2
    assert len(in_one.lag) > 50
    assert counted(by_table(rows_of(stream.key, stream.rounds))) == counted(by_table(in_one))


def test_a_recorded_group_gives_the_same_rows_at_every_cut(stream: RecordedStream) -> None:
    in_one = counted(by_table(rows_of(stream.key, _in_batches(stream))))
    for cut in range(1, len(stream.rounds)):
        assert counted(by_table(rows_of(stream.key, _in_batches(stream, cut)))) == in_one, f"cut before round {cut}"


def test_a_batch_that_is_run_again_from_its_state_gives_the_same_rows(stream: RecordedStream) -> None:
    # Spark runs a batch again after a crash: nothing of the first run may survive outside the state.
    assert by_table(rows_of(stream.key, _in_batches(stream, 7))) == by_table(
        rows_of(stream.key, _in_batches(stream, 7))
    )
