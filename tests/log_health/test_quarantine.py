"""Rows of records that cannot be read: the first of each kind between two rounds, however the log is cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.groups import QuarantineRow, Rows, encode_state
from streaming.log_health import UnreadableState, advance_partition
from streaming.log_health import quarantine as quarantine_module
from streaming.offsets_log import LogRecord, UnreadableRecords, Windows
from streaming.offsets_log.fold.unreadable import unknown_type
from streaming.records import LogGap, PartitionInput, QuarantinedRecord, decode_partition_inputs, encode_inputs
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


def make_unknown(offset: int, key_type: int = 24, window: int = -1) -> QuarantinedRecord:
    reason = f"type {key_type} is not known"
    return make_quarantined(offset, key_type=key_type, reason=reason, kind="unknown", window=window)


def advanced(*batches: list[PartitionInput]) -> Rows:
    state, rows = UnreadableState(), Rows()
    for inputs in batches:
        state, more = advance_partition(state, decode_partition_inputs(encode_inputs(inputs)), "test")
        rows.quarantine.extend(more.quarantine)
        rows.gaps.extend(more.gaps)
    return rows


def test_a_record_that_cannot_be_decoded_is_kept_whole() -> None:
    (row,) = advanced([make_quarantined(12)]).quarantine
    assert (row.cluster, row.topic, row.partition, row.record_offset) == ("test", "__consumer_offsets", 7, 12)
    assert (row.record_time, row.event_date) == (20_000 * DAY + 12, 20_000)
    assert (row.kind, row.key_type, row.value_version) == ("undecodable", 1, 3)
    assert row.reason == "value: 4 bytes are missing at offset"
    assert (row.key, row.value, row.key_size, row.value_size, row.sha256) == (b"\x00\x01key", b"\x00\x03", 5, 2, None)


def test_null_key_and_value_stay_null() -> None:
    nothing = make_quarantined(
        12, key=None, value=None, key_size=None, value_size=None, key_type=None, value_version=None
    )
    (row,) = advanced([nothing]).quarantine
    assert (row.key, row.value, row.key_size, row.value_size, row.key_type, row.value_version) == (None,) * 6


def test_the_first_record_of_each_kind_between_two_rounds_has_a_row() -> None:
    first = [make_unknown(12, window=1), make_unknown(10, window=1), make_unknown(11, 25, window=1)]
    second = [make_quarantined(13, window=1), make_unknown(14, window=1), make_unknown(20, window=2)]
    rows = advanced(first, second).quarantine
    assert [(row.record_offset, row.kind, row.key_type) for row in rows] == [
        (10, "unknown", 24),
        (11, "unknown", 25),
        (13, "undecodable", 1),
        (20, "unknown", 24),
    ]


def test_what_is_remembered_stays_small_whatever_is_written() -> None:
    state = UnreadableState()
    for at in range(1_000):
        state, rows = advance_partition(state, [make_unknown(at, at, window=at // 500)], "test")
        assert len(rows.quarantine) == (at % 500 < 32)
    assert len(encode_state(state)[1]) < 1_000


def test_a_reason_is_one_short_line_whatever_names_it_holds() -> None:
    (row,) = advanced([make_quarantined(1, reason="group \x1b[2Jg\nWARNING all is lost " + "x" * 9_000)]).quarantine
    assert row.reason.startswith("group \\x1b[2Jg\\nWARNING")
    assert row.reason.isprintable()
    assert len(row.reason) <= 500


def test_the_state_handed_in_is_not_changed() -> None:
    state = UnreadableState()
    advance_partition(state, [make_unknown(1)], "test")
    assert state == UnreadableState()


KEYS = [None, b"\x00", b"\x00\x18", b"\x00\x19", b"\x00\x1a"]


def unreadable_of(log: list[bytes | None], positions: list[int], start: int, end: int) -> list[PartitionInput]:
    """A task's inputs from [start, end): of a log of these keys, with rounds at these positions."""
    unreadable = UnreadableRecords(0, Windows(positions, range(-1, len(positions))))
    # (Those that wait to be decoded come later than others.)
    for offset in sorted(range(start, end), key=lambda offset: offset % 3):
        record = LogRecord(offset, 1_000 * offset, log[offset], b"value")
        if len(log[offset] or b"") < 2:
            unreadable.reject(record, "it has no type")
        else:
            unreadable.unknown(record, unknown_type(record))
    return unreadable.inputs()


@settings(deadline=None, max_examples=examples(150))
@given(st.data())
def test_the_rows_do_not_depend_on_how_the_log_was_cut_into_batches(data: st.DataObject) -> None:
    log = data.draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=60))
    positions = sorted(data.draw(st.sets(st.integers(1, len(log)), max_size=8)))
    cuts = data.draw(st.sets(st.integers(1, len(log)))) | {len(log)}

    def rows(ends: list[int]) -> list[QuarantineRow]:
        state, found, start = UnreadableState(), list[QuarantineRow](), 0
        for end in ends:
            state, more = advance_partition(state, unreadable_of(log, positions, start, end), "test")
            found += more.quarantine
            start = end
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quarantine_module, "KINDS", 2)
        assert rows(sorted(cuts)) == rows([len(log)])


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
