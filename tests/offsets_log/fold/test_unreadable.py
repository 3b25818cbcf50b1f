"""Records that cannot be read: which of them are kept, which are only counted, and the reason of each."""

from __future__ import annotations

import hashlib

import pytest

from streaming.offsets_log import Compactor, partition_for
from streaming.records import (
    CommitWindow,
    CountedRecords,
    QuarantinedRecord,
    UnreadableModern,
)
from tests.offsets_log.compacting import compacted, numbered
from tests.offsets_log.one_by_one import Record
from tests.offsets_log.written import (
    group_epoch,
    member_metadata,
    offset_key,
    offset_value,
    other_key,
)

DAY = 86_400_000
COMMIT_KEY = offset_key("g", "t", 0)


def test_a_value_of_another_type_that_breaks_its_layout_is_quarantined_and_a_newer_version_counted() -> None:
    pairs = [
        (other_key(5, "g", "m"), member_metadata(["t"])[:-1]),
        (other_key(3, "g"), group_epoch(1) + b"\x00"),
        (other_key(3, "g"), b"\x00\x01" + group_epoch(1)[2:]),
        (other_key(18, "g"), b"\x00\x00"),
    ]
    groups, unreadable, _ = compacted(numbered(pairs))
    # (Nothing that is said of a group depends on type 18.)
    rows = [(item.record, item.key_type, item.part) for item in groups["g"] if isinstance(item, UnreadableModern)]
    assert rows == [(100, 5, "m"), (101, 3, None), (102, 3, None)]
    assert [item.reason for item in unreadable if isinstance(item, QuarantinedRecord)] == [
        "value: tag 0 needs 1 bytes at byte 33, but 0 are left",
        "value: 1 bytes follow the end of the value at byte 7",
        "value: no release has written type 18 (StreamsGroupPartitionMetadata), so no layout of it is known",
    ]
    assert [item.kind for item in unreadable if isinstance(item, CountedRecords)] == ["3/1"]


def test_a_group_on_a_foreign_partition_is_quarantined_with_both_partitions() -> None:
    home = partition_for("g", 50)
    found = (home + 1) % 50
    groups, unreadable, _ = compacted(numbered([(COMMIT_KEY, offset_value(3, 1))]), partition=found, partitions=50)
    assert not groups
    (record,) = unreadable
    assert isinstance(record, QuarantinedRecord)
    assert record.reason == f"group 'g' belongs to partition {home} of the offsets log, found on {found}"
    assert (record.key_type, record.value_version) == (1, 3)


def test_a_cluster_of_redpanda_has_its_groups_on_other_partitions() -> None:
    # 31 of 50, by Redpanda's own hash; Kafka's says 3.
    for found, cluster_id, is_read in ((31, "redpanda.5a1c", True), (3, "redpanda.5a1c", False), (31, "5a1c", False)):
        codec = Compactor(found, 50, [], lambda _: True, lambda _: True, cluster_id=cluster_id)
        codec.add(100, 1_000, COMMIT_KEY, offset_value(3, 1))
        assert ([name for name, _ in codec.groups()], len(codec.unreadable())) == (["g"] * is_read, 1 - is_read)


def test_a_newer_value_version_is_counted_by_boundary_with_its_first_record_as_sample() -> None:
    newer = offset_value(3, 1)[2:]
    records = [
        Record(10, DAY - 1, COMMIT_KEY, b"\x00\x05" + newer),
        Record(11, DAY, COMMIT_KEY, b"\x00\x05" + newer),
        Record(12, DAY + 1, COMMIT_KEY, b"\x00\x05" + newer),
        Record(13, DAY + 2, COMMIT_KEY, b"\x00\x05" + newer),
    ]
    groups, unreadable, _ = compacted(records, boundaries=[13])
    windows = [item for item in groups["g"] if isinstance(item, CommitWindow)]
    assert [(one.commits, one.tombstones, one.last_record, one.unreadable) for one in windows] == [
        (0, 0, 12, True),
        (0, 0, 13, True),
    ]
    found = [
        (item.kind, item.records, item.sample.offset, item.last_offset)
        for item in unreadable
        if isinstance(item, CountedRecords)
    ]
    assert found == [("1/5", 3, 10, 12), ("1/5", 1, 13, 13)]


def test_an_unknown_key_type_is_counted_even_without_a_value() -> None:
    _, unreadable, _ = compacted(numbered([(b"\x00\x18", None), (b"\xff\xff", b"\x00\x00")]))
    assert [item.kind for item in unreadable if isinstance(item, CountedRecords)] == ["24/None", "-1/0"]


@pytest.mark.parametrize(
    ("value", "named"), [(None, "type 24"), (b"\x00", "type 24"), (b"\x00\x07", "type 24, value version 7,")]
)
def test_the_reason_of_an_unknown_record_names_its_type_and_the_version_of_its_value_if_it_has_one(
    value: bytes | None, named: str
) -> None:
    _, unreadable, _ = compacted(numbered([(b"\x00\x18", value)]))
    assert [item.sample.reason for item in unreadable if isinstance(item, CountedRecords)] == [
        f"{named} is not known to this release; a newer broker may have written it"
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_of_many_unknown_kinds_in_a_day_the_first_thirty_two_keep_the_bytes_of_their_first_record(order: int) -> None:
    keys = [(1_000 + number).to_bytes(2, "big") for number in range(100)]
    _, unreadable, _ = compacted(numbered([(key, b"\x00\x00") for key in keys[::order]], start=0))
    found = [item.sample.key for item in unreadable if isinstance(item, CountedRecords)]
    assert found == [*keys[::order][:32], *[None] * 68]


@pytest.mark.parametrize(("keys", "values"), [(100_000, 70_000), (16_385, 5), (5, 16_385)])
def test_large_junk_is_cut_and_told_by_its_digest(keys: int, values: int) -> None:
    key, value = b"\x00\x01" + bytes(keys - 2), bytes(values)
    _, unreadable, _ = compacted(numbered([(key, value)]))
    (record,) = unreadable
    assert isinstance(record, QuarantinedRecord)
    assert (record.key, record.value) == (key[:16_384], value[:16_384])
    assert (record.key_size, record.value_size) == (keys, values)
    assert record.sha256 == hashlib.sha256(key + value).hexdigest()


def test_junk_of_16_kib_is_kept_whole() -> None:
    key, value = b"\x00\x01" + bytes(16_382), bytes(16_384)
    _, unreadable, _ = compacted(numbered([(key, value)]))
    (record,) = unreadable
    assert isinstance(record, QuarantinedRecord)
    assert (record.key, record.value, record.sha256) == (key, value, None)


def test_a_null_key_is_quarantined() -> None:
    _, unreadable, _ = compacted(numbered([(None, None)]))
    (record,) = unreadable
    assert isinstance(record, QuarantinedRecord)
    assert (record.key, record.value, record.key_type) == (None, None, None)


@pytest.mark.parametrize("boundaries", [(), (150, 700)])
def test_a_flood_of_junk_is_kept_up_to_a_number_and_counted(boundaries: tuple[int, ...]) -> None:
    flood = numbered([(None, None) if n % 3 else (COMMIT_KEY, b"\x00\x03") for n in range(1_000)], start=0)
    _, unreadable, _ = compacted(flood, boundaries=list(boundaries))
    kept = [item.offset for item in unreadable if isinstance(item, QuarantinedRecord)]
    # (Undecodable commits are found later than the others.)
    assert kept == list(range(101))
    counted_only = [item for item in unreadable if isinstance(item, CountedRecords)]
    assert {item.kind for item in counted_only} == {"undecodable"}
    found = [(item.sample.offset, item.records, item.last_offset) for item in counted_only]
    assert found == ([(101, 49, 149), (150, 550, 699), (700, 300, 999)] if boundaries else [(101, 899, 999)])


def test_a_commit_that_is_decoded_after_a_flood_of_junk_is_kept_at_its_place_among_the_first() -> None:
    # (It waits to be decoded while the 201 other records are cut to the first 101 of them.)
    flood = numbered([(COMMIT_KEY, b"\x00\x03") if n == 100 else (None, None) for n in range(202)], start=0)
    _, unreadable, _ = compacted(flood)
    assert [item.offset for item in unreadable if isinstance(item, QuarantinedRecord)] == list(range(101))


def test_a_commit_that_waits_to_be_decoded_is_found_unreadable_before_the_groups_are_asked_for() -> None:
    compactor = Compactor(0, 1, (), lambda _: True, lambda _: True)
    compactor.add(7, 1, COMMIT_KEY, b"\x00\x03")
    (record,) = compactor.unreadable()
    assert isinstance(record, QuarantinedRecord)
    assert record.offset == 7
