"""Where a batch ends, and the rounds topic, whatever somebody wrote to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from streaming.events import RejectedEvent
from streaming.job.source.plan import Batch, MostRead, RoundRecord, RoundsTopic, plan_batch
from streaming.job.source.positions import INITIAL, Positions
from streaming.record_batches import FetchedBatch, OffsetRange
from streaming.records import RoundClosed
from tests.job.source.made_rounds import CLUSTER, at, closed, opened
from tests.record_batches.encoded import forged, varint

START = Positions.read(INITIAL)


def numbers(batch: Batch) -> list[int]:
    return [taken.closed.round for taken in batch.rounds]


def reasons(batch: Batch) -> list[tuple[int, str]]:
    return [(void.record.offset, void.reason) for void in batch.void]


def told(batch: Batch) -> list[tuple[int, str]]:
    """The batch's messages about the records in its range."""
    return [reason for reason in reasons(batch) if reason[0] < batch.end.rounds]


def test_a_batch_ends_where_its_last_round_ends() -> None:
    records = [
        at(0, opened()),
        at(1, closed(0, [5, 0], {"0": (0, 3), "1": (0, 2)})),
        at(2, opened()),
        at(3, closed(2, [7, 1], {"0": (3, 4)})),
        at(4, opened()),
    ]
    batch = plan_batch(START, records, CLUSTER)
    assert numbers(batch) == [0, 2]
    assert batch.end == Positions(log={0: 7, 1: 1}, events={0: 4, 1: 2}, rounds=4, round=2, time=1_000_002, elapsed=2)
    assert [taken.log_records for taken in batch.rounds] == [5, 3]
    assert [taken.closed_time for taken in batch.rounds] == [2_000_001, 2_000_003]


def test_a_mark_that_a_probe_ends_is_no_round_and_nobodys_news() -> None:
    records = [at(2, opened(since=0)), at(3, closed(2, [7]))]
    marks = [at(0, opened(ends=True)), at(1, opened(ends=True)), at(4, opened(ends=True))]
    plain = plan_batch(START, records, CLUSTER)
    marked = plan_batch(START, [*marks[:2], *records, marks[2]], CLUSTER)
    assert numbers(plain) == [2]
    assert marked == plain


def test_the_limit_counts_rounds() -> None:
    records = [at(2 * n + 1, closed(2 * n, [n])) for n in range(5)]
    batch = plan_batch(START, records, CLUSTER, MostRead(2, 10**9, 10**9))
    assert numbers(batch) == [0, 2]
    assert batch.end.rounds == 4


def test_the_limit_counts_offsets_and_events_and_lets_one_round_pass() -> None:
    records = [at(2 * n + 1, closed(2 * n, [98 * (n + 1)], written=2)) for n in range(5)]
    assert numbers(plan_batch(START, records, CLUSTER, MostRead(60, 200, 10**9))) == [0, 2]
    assert numbers(plan_batch(START, records, CLUSTER, MostRead(60, 199, 10**9))) == [0]
    assert numbers(plan_batch(START, records, CLUSTER, MostRead(60, 1, 10**9))) == [0]


def test_the_limit_counts_the_bytes_of_events() -> None:
    records = [at(2 * n + 1, closed(2 * n, [n], size=1_000)) for n in range(5)]
    assert numbers(plan_batch(START, records, CLUSTER, MostRead(60, 10**9, 2_000))) == [0, 2]
    assert numbers(plan_batch(START, records, CLUSTER, MostRead(60, 10**9, 1_999))) == [0]
    assert numbers(plan_batch(START, records, CLUSTER, MostRead(60, 10**9, 1))) == [0]


def test_without_a_round_to_take_nothing_moves() -> None:
    assert plan_batch(START, [at(0, opened())], CLUSTER).end == START


def test_partitions_that_appear_later_are_taken_with_the_round_that_saw_them() -> None:
    start = Positions({0: 3}, {}, 10, 8)
    batch = plan_batch(start, [at(11, closed(10, [4, 2]))], CLUSTER)
    assert batch.end.log == {0: 4, 1: 2}


def test_a_batch_has_one_number_of_log_partitions() -> None:
    records = [at(1, closed(0, [1])), at(3, closed(2, [2, 0])), at(5, closed(4, [3, 1]))]
    first = plan_batch(START, records, CLUSTER)
    assert numbers(first) == [0]
    second = plan_batch(first.end, records, CLUSTER)
    assert numbers(second) == [2, 4]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (closed(0, [9]), "the offsets log had 2 partitions, the round tells 1"),
        (closed(0, [9, 9], cluster_id="other"), "a round of the Kafka cluster 'other'; so far all were of 'kafka'"),
        (RejectedEvent("not one of our records"), "not one of our records"),
    ],
)
def test_a_record_that_cannot_be_true_is_kept_with_its_reason_and_counts_for_nothing(
    content: object, reason: str
) -> None:
    start = Positions({0: 3, 1: 3}, {}, 10, -1, rounds_of="kafka")
    honest = at(31, closed(30, [9, 9]))
    batch = plan_batch(start, [at(20, content), honest], CLUSTER)
    assert reasons(batch) == [(20, reason)]
    assert batch.end == plan_batch(start, [honest], CLUSTER).end


# The log was read on without rounds (the fallback) while round 10 was still open.
GONE_ON = Positions({0: 100, 1: 100}, {0: 1}, 10, 8)


@pytest.mark.parametrize(
    ("start", "rounds", "taken"),
    [
        (START, [closed(0, [1]), closed(0, [2])], [0]),
        (START, [closed(1, [5]), closed(0, [5])], [1]),
        (GONE_ON, [closed(10, [99, 120], {"0": (1, 2)}), closed(12, [100, 121])], [12]),
        (START, [closed(0, [5], cluster="other")], []),
        (START, [closed(0, [5]), closed(2, [], source="admin"), closed(4, [6])], [0, 4]),
    ],
    ids=["closed again", "older", "gone beyond", "of another cluster", "from another source"],
)
def test_a_round_that_is_not_the_querys_or_came_too_late_is_passed_over(
    start: Positions, rounds: list[RoundClosed], taken: list[int]
) -> None:
    batch = plan_batch(start, [at(20 + n, one) for n, one in enumerate(rounds)], CLUSTER)
    assert (numbers(batch), batch.void) == (taken, ())


def test_positions_survive_the_way_through_the_checkpoint() -> None:
    for positions in (START, Positions({11: 5, 2: 0}, {0: 7}, 9, 8)):
        assert Positions.read(positions.write()) == positions
    assert START.write() == INITIAL
    assert list(Positions({11: 5, 2: 0}).write()["log"]) == ["11", "2"]


@st.composite
def rounds_topics(draw: st.DrawFn) -> list[RoundRecord]:
    """A rounds topic with correct rounds, and all kinds of wrong ones between them."""
    log, events, records, offset, late = [0, 0], 0, list[RoundRecord](), 0, 0
    for _ in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["honest", "honest", "honest", "old", "again", "fewer", "junk", "more"]))
        number = offset
        offset += draw(st.integers(1, 3))
        if kind == "more":
            log.append(0)
        if kind in {"honest", "more"}:
            log = [position + draw(st.integers(0, 4)) for position in log]
            first, events = events, events + draw(st.integers(0, 3))
            content: object = closed(number, log, {"0": (first, events)})
        elif kind == "old":
            # Its probe wrote the events all the same, beyond all that other rounds have there.
            late += 1
            content = closed(number, [max(0, position - 1) for position in log], {"1": (late - 1, late)})
        elif kind == "again":
            content = closed(max(0, number - 2), log)
        elif kind == "fewer":
            content = closed(number, log[:-1])
        else:
            content = RejectedEvent("junk")
        records.append(at(offset, content))
        offset += 1
    return records


@given(rounds_topics(), st.lists(st.integers(1, 4), max_size=12))
def test_rounds_and_ends_do_not_depend_on_the_cut(records: list[RoundRecord], cuts: list[int]) -> None:
    alone = _run(records, [1] * len(records))
    cut = _run(records, cuts)
    assert [t for b in cut for t in b.rounds] == [t for b in alone for t in b.rounds]
    if alone:
        assert cut[-1].end == alone[-1].end
    assert [r for b in cut for r in told(b)] == [r for b in alone for r in told(b)]


@given(rounds_topics(), st.lists(st.integers(1, 4), max_size=12))
def test_a_batch_planned_again_from_its_end_is_the_same(records: list[RoundRecord], cuts: list[int]) -> None:
    batches = _run(records, cuts)
    starts = [START, *(batch.end for batch in batches)]
    for (start, end), batch in zip(pairwise(starts), batches, strict=True):
        read = [record for record in records if start.rounds <= record.offset < end.rounds]
        again = plan_batch(start, read, CLUSTER)
        assert again.end == batch.end
        assert again.rounds == batch.rounds
        assert reasons(again) == told(batch)


def _run(records: list[RoundRecord], cuts: list[int]) -> list[Batch]:
    batches, start = [], START
    for rounds in [*cuts, *[1] * len(records)]:
        left = [record for record in records if record.offset >= start.rounds]
        batch = plan_batch(start, left, CLUSTER, MostRead(rounds, 10**9, 10**9))
        if not batch.rounds:
            break
        batches.append(batch)
        start = batch.end
    return batches


def steps(*moments: tuple[int, int]) -> list[int]:
    """Elapsed time at rounds with these times and intervals."""
    rounds = []
    for number, (time, interval) in enumerate(moments):
        record = at(2 * number + 1, closed(2 * number, [0], time=time, interval_ms=interval))
        rounds.append(replace(record, timestamp=time + 100))
    batch = plan_batch(START, rounds, CLUSTER)
    assert batch.void == ()
    return [taken.elapsed for taken in batch.rounds]


DAY = 86_400_000


def test_time_that_passes_over_rounds_is_the_sum_of_their_steps() -> None:
    assert steps((0, 10), (10, 10), (20, 10), (35, 10)) == [0, 10, 20, 35]


def test_one_wrong_clock_costs_one_step_of_three_intervals_at_the_most() -> None:
    assert steps((0, 10), (10, 10), (20 + DAY, 10), (30, 10), (40, 10)) == [0, 10, 40, 40, 50]
    assert steps((DAY, 10), (DAY + 10, 10), (20, 10), (DAY + 30, 10), (DAY + 40, 10)) == [0, 10, 10, 40, 50]


def test_a_pause_counts_three_intervals_and_an_absurd_interval_no_absurd_step() -> None:
    assert steps((0, 10), (7_200_000, 10), (7_200_010, 10)) == [0, 30, 40]
    assert steps((0, 10), (DAY, 2**40)) == [0, 3 * 600_000]


def test_elapsed_time_is_the_same_wherever_batches_are_cut() -> None:
    times = [0, 10, 35, DAY, 40, 50, 90]
    records = [
        replace(at(2 * n + 1, closed(2 * n, [0], time=time, interval_ms=10)), timestamp=time)
        for n, time in enumerate(times)
    ]
    whole = [taken.elapsed for taken in plan_batch(START, records, CLUSTER).rounds]
    for cut in range(1, len(records)):
        first = plan_batch(START, records[:cut], CLUSTER)
        carried = Positions.read(first.end.write())
        second = plan_batch(carried, records, CLUSTER)
        assert [taken.elapsed for taken in (*first.rounds, *second.rounds)] == whole


def taken_of(rounds: list[RoundClosed], most: MostRead) -> list[int]:
    records = [at(number, told) for number, told in enumerate(rounds, 1_000)]
    return [taken.closed.round for taken in plan_batch(Positions(), records, CLUSTER, most).rounds]


def test_how_many_events_a_round_has_is_counted_by_offsets_whatever_it_tells() -> None:
    rounds = [closed(n, [1], {"0": (5_000 * n, 5_000 * (n + 1))}, size=1, written=1) for n in range(4)]
    assert taken_of(rounds, MostRead(rounds=60, records=12_000, size=1_000)) == [0, 1]


class Batches:
    """A topic of these batches."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, offset: int, delta: int) -> None:
        """One record in a batch at `offset`, which claims another place."""
        self.written.append(forged([(varint(0), varint(delta), b"k", b"junk")], base_offset=offset))

    def read(
        self, ranges: Iterable[OffsetRange], _patience_s: float | None = None
    ) -> Iterator[tuple[OffsetRange, FetchedBatch]]:
        (where,) = ranges
        for data in self.written:
            batch = DefaultRecordBatch(data)
            found = FetchedBatch(batch.base_offset, batch.last_offset, 0, batch).between(where.start, where.end)
            if found is not None:
                yield where, found


def test_a_record_that_claims_an_offset_far_ahead_hides_none_behind_it() -> None:
    reader = Batches()
    reader.write(0, 0)
    reader.write(1, 2**31 - 1)
    reader.write(2, 0)
    topic = RoundsTopic("rounds")
    records, is_full = topic.upcoming(reader, 0, 3)  # type: ignore[arg-type]
    assert ([record.offset for record in records], is_full) == ([0, 1, 2], False)
    reader.write(3, 0)
    records, _ = topic.upcoming(reader, 3, 4)  # type: ignore[arg-type]
    assert [record.offset for record in records] == [3]
