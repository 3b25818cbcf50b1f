from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.groups import QuarantineRow, Rows, encode_state
from streaming.log_health import UnreadableState, advance_partition
from streaming.log_health import quarantine as quarantine_module
from streaming.offsets_log import LogRecord, UnreadableRecords, Windows
from streaming.offsets_log.fold import unreadable as unread_module
from streaming.offsets_log.fold.unreadable import unknown_type
from streaming.records import (
    CountedRecords,
    LogGap,
    PartitionInput,
    QuarantinedRecord,
    Window,
    WindowEnd,
    decode_partition_inputs,
    encode_inputs,
)
from tests.examples import examples

DAY = 86_400_000


def make_quarantined(offset: int, **changes: object) -> QuarantinedRecord:
    fields: dict[str, object] = {
        "partition": 7,
        "offset": offset,
        "record_time": 20_000 * DAY + offset,
        "key_type": 1,
        "value_version": 3,
        "reason": "value: 4 bytes are missing at offset",
        "key": b"\x00\x01key",
        "value": b"\x00\x03",
        "key_size": 5,
        "value_size": 2,
    }
    return QuarantinedRecord(**(fields | changes))  # type: ignore[arg-type]


def make_unknown(first: int, records: int = 1, *, kind: str = "24/0", last: int = -1, **window: int) -> CountedRecords:
    at = Window(**{"round": first // 10} | window)  # type: ignore[arg-type]
    sample = make_quarantined(first, key_type=24, value_version=0, reason="type 24 is not known", window=at)
    return CountedRecords(kind, records, last if last >= 0 else first + records - 1, sample, at)


def advanced(*batches: list[PartitionInput]) -> Rows:
    state, rows = UnreadableState(), Rows()
    for inputs in batches:
        state, more = advance_partition(state, decode_partition_inputs(encode_inputs(inputs)), "test")
        rows.quarantine.extend(more.quarantine)
        rows.gaps.extend(more.gaps)
    return rows


def counts(rows: list[QuarantineRow]) -> list[tuple[int, int, int]]:
    return [(row.record_offset, row.records, row.last_record_offset) for row in rows]


def test_a_record_that_cannot_be_decoded_is_kept_whole() -> None:
    (row,) = advanced([make_quarantined(12)]).quarantine
    assert (row.cluster, row.topic, row.partition, row.record_offset) == ("test", "__consumer_offsets", 7, 12)
    assert (row.record_time, row.event_date) == (20_000 * DAY + 12, 20_000)
    assert (row.kind, row.key_type, row.value_version) == ("undecodable", 1, 3)
    assert row.reason == "value: 4 bytes are missing at offset"
    assert (row.records, row.last_record_offset) == (1, 12)
    assert (row.key, row.value, row.key_size, row.value_size, row.sha256) == (b"\x00\x01key", b"\x00\x03", 5, 2, None)


def test_every_record_that_cannot_be_decoded_has_its_row() -> None:
    rows = advanced([make_quarantined(14), make_quarantined(12), make_quarantined(13)]).quarantine
    assert [row.record_offset for row in rows] == [12, 13, 14]


def test_null_key_and_value_stay_null() -> None:
    nothing = make_quarantined(
        12, key=None, value=None, key_size=None, value_size=None, key_type=None, value_version=None
    )
    (row,) = advanced([nothing]).quarantine
    assert (row.key, row.value, row.key_size, row.value_size, row.key_type, row.value_version) == (None,) * 6


def test_records_of_an_unknown_type_are_counted_by_day_beside_the_first_of_them() -> None:
    rows = advanced([make_unknown(10, 5)], [make_unknown(20, 3), make_unknown(30)]).quarantine
    assert counts(rows) == [(10, 5, 14), (10, 8, 22), (10, 9, 30)]
    assert {row.kind for row in rows} == {"unknown"}
    assert {row.value for row in rows} == {b"\x00\x03"}


def test_days_and_kinds_are_counted_apart() -> None:
    rows = advanced([make_unknown(10, 5), make_unknown(20, 2, kind="25/0"), make_unknown(30, 3, day=1)])
    assert counts(rows.quarantine) == [(10, 5, 14), (20, 2, 21), (30, 3, 32)]


def test_a_day_begins_again_with_a_sample_and_with_rows_one_by_one() -> None:
    flood: list[PartitionInput] = [make_quarantined(n, window=Window(0)) for n in range(102)]
    rows = advanced(flood, [make_quarantined(200, window=Window(1, 1)), make_unknown(300, day=1)]).quarantine
    assert counts(rows)[-3:] == [(100, 2, 101), (200, 1, 200), (300, 1, 300)]


def test_beyond_a_number_of_undecodable_records_a_day_one_row_counts_all_others() -> None:
    flood: list[PartitionInput] = [make_quarantined(n, window=Window(n // 50)) for n in range(101)]
    rest = [CountedRecords("undecodable", 20, 170, make_quarantined(150, window=Window(3)), Window(3))]
    rows = advanced(flood, [make_quarantined(120, window=Window(3)), *rest]).quarantine
    assert counts(rows) == [*((n, 1, n) for n in range(100)), (100, 1, 100), (100, 22, 170)]
    assert {row.kind for row in rows} == {"undecodable"}


def test_a_count_inside_a_window_that_is_not_over_waits_for_its_end() -> None:
    open_window, closed_window = {"round": 7, "closed": False}, {"round": 7}
    begun = advanced([make_unknown(10, 5, **open_window)])
    assert begun.quarantine == []
    ended = advanced([make_unknown(10, 5, **open_window)], [make_unknown(20, 2, **closed_window)])
    assert counts(ended.quarantine) == [(10, 7, 21)]
    alone = advanced([make_unknown(10, 5, **open_window)], [WindowEnd()])
    assert counts(alone.quarantine) == [(10, 5, 14)]
    both = advanced([make_unknown(10, 5, **open_window)], [WindowEnd(), make_unknown(20, 2, **closed_window)])
    assert counts(both.quarantine) == [(10, 7, 21)]
    passed = advanced([make_unknown(10, 5, **open_window)], [make_unknown(30, 1, round=8)])
    assert counts(passed.quarantine) == [(10, 5, 14), (10, 6, 30)]


def test_kinds_beyond_a_number_share_a_count_without_bytes() -> None:
    rows = advanced([make_unknown(n, kind=f"{n}/0", round=1) for n in range(50)]).quarantine
    assert counts(rows) == [*((n, 1, n) for n in range(32)), (32, 18, 49)]
    others = rows[-1]
    assert (others.kind, others.key, others.value, others.key_type) == ("unknown", None, None, None)
    assert others.reason == "there were 32 other types and versions on that day that this release does not know"


def test_what_is_remembered_stays_small_whatever_is_written() -> None:
    state = UnreadableState()
    large = make_quarantined(0, key=bytes(16_384), value=bytes(16_384), key_size=10**6, value_size=10**6)
    for at in range(1_000):
        kind = make_unknown(at, kind=f"{at}/{at}", round=at).sample
        unreadable = CountedRecords(f"{at}/{at}", 1, at, large, kind.window)
        state, rows = advance_partition(state, [unreadable, make_quarantined(at, window=kind.window)], "test")
        assert len(rows.quarantine) <= 3
    assert len(state.counted) == 34
    assert len(encode_state(state)[1]) < 34 * 34_000


def test_a_reason_is_one_short_line_whatever_names_it_holds() -> None:
    (row,) = advanced([make_quarantined(1, reason="group \x1b[2Jg\nWARNING all is lost " + "x" * 9_000)]).quarantine
    assert row.reason.startswith("group \\x1b[2Jg\\nWARNING")
    assert row.reason.isprintable()
    assert len(row.reason) <= 500


KEYS = [None, b"\x00", b"\x00\x18", b"\x00\x19", b"\x00\x1a"]


def unreadable_of(log: list[bytes | None], rounds: list[tuple[int, int]], start: int, end: int) -> list[PartitionInput]:
    """A task's inputs from [start, end), which ends at a round's position, or after the last one.

    Args:
        log: Keys of the records.
        rounds: Position and day of each round, by number; the one before the first has neither.
        start: Offset.
        end: Offset.
    """
    closed = end in {position for position, _ in rounds}
    below = [Window(-1, 0, closed), *(Window(n, day, closed) for n, (_, day) in enumerate(rounds))]
    positions = [position for position, _ in rounds]
    unreadable = UnreadableRecords(0, Windows(positions, below))
    for offset in range(start, end):
        record = LogRecord(offset, 1_000 * offset, log[offset], b"value")
        if len(log[offset] or b"") < 2:
            unreadable.reject(record, "it has no type")
        else:
            unreadable.unknown(record, *unknown_type(record))
    return unreadable.inputs()


@settings(deadline=None, max_examples=examples(150))
@given(st.data())
def test_the_rows_do_not_depend_on_how_the_log_was_cut_into_batches(data: st.DataObject) -> None:
    log = data.draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=60))
    positions = sorted(data.draw(st.sets(st.integers(1, len(log)), max_size=8)) | {len(log)})
    days = sorted(data.draw(st.lists(st.integers(0, 2), min_size=len(positions), max_size=len(positions))))
    rounds = list(zip(positions, days, strict=True))
    # Batches end at rounds; or, while there are none, anywhere.
    cuts = data.draw(st.sets(st.integers(1, len(log)))) | {len(log)}

    def rows(ends: list[int]) -> Counter[QuarantineRow]:
        state, found, start = UnreadableState(), Counter[QuarantineRow](), 0
        for end in ends:
            state, more = advance_partition(state, unreadable_of(log, rounds, start, end), "test")
            found.update(more.quarantine)
            start = end
        return found

    with pytest.MonkeyPatch.context() as patch:
        for module in (quarantine_module, unread_module):
            patch.setattr(module, "ONE_BY_ONE", 3)
            patch.setattr(module, "KINDS", 2)
        whole = rows([len(log)])
        assert rows(sorted(cuts)) == whole
        assert rows(positions) == whole
        # And all records are counted.
        newest = {(row.record_offset): row.records for row in sorted(whole, key=lambda row: row.last_record_offset)}
        assert sum(newest.values()) == len(log)


def test_a_gap_in_the_log_has_a_row() -> None:
    (row,) = advanced([LogGap(7, 100, 250, "retention")]).gaps
    assert (row.cluster, row.kind, row.topic, row.partition) == ("test", "log", "__consumer_offsets", 7)
    assert (row.from_offset, row.to_offset, row.from_time, row.to_time, row.reason) == (
        100,
        250,
        None,
        None,
        "retention",
    )
