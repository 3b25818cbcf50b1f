from __future__ import annotations

from streaming.groups.facts import QuarantineRow, Rows
from streaming.groups.quarantine import (
    LogGap,
    PartitionInput,
    PartitionState,
    QuarantinedRecord,
    UnknownRecords,
    advance_partition,
    decode_partition_inputs,
    encode_partition_inputs,
)

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


def make_unknown(first: int, last: int, records: int, *, day: int = 20_000, key_type: int = 24) -> UnknownRecords:
    sample = make_quarantined(first, key_type=key_type, value_version=0, reason="type 24 is not known")
    return UnknownRecords(key_type, 0, day, records, last, sample)


def advanced(*batches: list[PartitionInput]) -> Rows:
    state, rows = PartitionState(), Rows()
    for inputs in batches:
        state, more = advance_partition(state, decode_partition_inputs(encode_partition_inputs(inputs)), "test")
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
    rows = advanced([make_unknown(10, 19, 5)], [make_unknown(20, 29, 3), make_unknown(30, 30, 1)]).quarantine
    assert counts(rows) == [(10, 5, 19), (10, 8, 29), (10, 9, 30)]
    assert {row.kind for row in rows} == {"unknown"}
    assert {row.value for row in rows} == {b"\x00\x03"}


def test_days_and_types_are_counted_apart() -> None:
    rows = advanced(
        [make_unknown(10, 19, 5), make_unknown(20, 29, 3, day=20_001), make_unknown(30, 39, 2, key_type=25)]
    )
    assert counts(rows.quarantine) == [(10, 5, 19), (20, 3, 29), (30, 2, 39)]


def test_a_late_record_is_counted_with_its_day() -> None:
    rows = advanced([make_unknown(10, 19, 5)], [make_unknown(20, 20, 1, day=20_030)], [make_unknown(30, 30, 1)])
    assert counts(rows.quarantine)[-1] == (10, 6, 30)


def test_what_is_remembered_stays_small_whatever_days_are_written() -> None:
    state = PartitionState()
    for at in range(1000):
        state, rows = advance_partition(state, [make_unknown(at, at, 1, day=at * 77)], "test")
        assert len(rows.quarantine) == 1
    assert len(state.counted) == 32


def test_the_state_handed_in_is_not_changed() -> None:
    state = PartitionState()
    advance_partition(state, [make_unknown(1, 1, 1)], "test")
    assert state.counted == {}


def test_cutting_a_batch_between_windows_changes_nothing() -> None:
    inputs: list[PartitionInput] = [make_unknown(10 * n, 10 * n + 3, n, day=20_000 + n % 3) for n in range(1, 20)]
    assert advanced(inputs) == advanced(*([item] for item in inputs))


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
