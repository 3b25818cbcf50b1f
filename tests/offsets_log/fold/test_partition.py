"""Windows of a partition of the log: what is folded into one, what parts them, and what cannot be read."""

from __future__ import annotations

import hashlib

import pytest

from streaming.offsets_log import Compactor, partition_for
from streaming.offsets_log.fold import commits
from streaming.offsets_log.fold import partition as compact_module
from streaming.records import (
    CommitWindow,
    CountedRecords,
    QuarantinedRecord,
    merge_windows,
)
from tests.offsets_log.compacting import columns, compacted, counted, numbered
from tests.offsets_log.written import (
    group_key,
    group_value,
    member,
    offset_key,
    offset_value,
    subscription,
)

COMMIT_KEY = offset_key("g", "t", 0)


def test_offsets_at_both_ends_of_the_range_do_not_overflow() -> None:
    pairs = [(COMMIT_KEY, offset_value(3, 2**63 - 1)), (COMMIT_KEY, offset_value(3, -(2**63)))]
    groups, _, _ = compacted(numbered(pairs))
    (window,) = groups["g"]
    assert (window.first_offset, window.offset, window.step_back) == (2**63 - 1, -(2**63), 2**64 - 1)


@pytest.mark.parametrize(
    ("values", "offset", "commits", "unreadable"),
    [((1, None), 1, 1, True), ((None, 2), 2, 1, False), ((1, None, 3), 3, 2, False), ((None,), -1, 0, True)],
)
def test_a_window_says_whether_its_last_commit_is_one_that_cannot_be_read(
    values: tuple[int | None, ...], offset: int, commits: int, unreadable: bool
) -> None:
    newer = b"\x00\x05" + offset_value(3, 1)[2:]
    pairs = [(COMMIT_KEY, newer if value is None else offset_value(3, value)) for value in values]
    for cut in range(len(pairs) + 1):
        parts = [compacted(part)[0] for part in (numbered(pairs)[:cut], numbered(pairs)[cut:]) if part]
        windows = [item for part in parts for item in part["g"] if isinstance(item, CommitWindow)]
        window = windows[0] if len(windows) == 1 else merge_windows(*windows)
        assert (window.offset, window.commits, window.deleted, window.unreadable) == (
            offset,
            commits,
            False,
            unreadable,
        )


@pytest.mark.parametrize("value", [offset_value(3, 1), None])
def test_memory_grows_with_keys_and_not_with_records(value: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact_module, "_FOLDED_AT_ONCE", 100)
    monkeypatch.setattr(commits, "_LEAST_MERGED", 1_000)
    keys = [offset_key("g", "t", partition) for partition in range(60)]
    compactor = Compactor(0, 1, (), lambda _: True, lambda _: True)
    held = []
    for offset in range(50_000):
        compactor.add(offset, offset, keys[offset % 60], value)
        held.append(compactor._fold._rows + len(compactor._waiting))
    assert max(held) <= 1_000 + 2 * 100
    assert counted(dict(compactor.groups()), []) == 50_000


def test_what_is_held_of_junk_and_of_names_is_told() -> None:
    compactor = Compactor(0, 1, (), lambda name: not name.startswith("no"), lambda _: True)
    for n in range(500):
        compactor.add(n, 1, offset_key(f"{'no' if n % 2 else ''}{n}" + "x" * 10_000, "t", 0), offset_value(3, 1))
    assert compactor.held > 500 * 10_000
    compactor.fold()
    assert compactor.held > 500 * 10_000
    for offset, (key, value) in enumerate(((b"\x00", bytes(1_000_000)), (bytes(1_000_000), b"")), 500):
        before = compactor.held
        compactor.add(offset, 1, key, value)
        assert before + 16_384 < compactor.held < before + 20_000


@pytest.mark.parametrize("name", ["no", "no" + "x" * 300])
def test_names_of_groups_that_are_not_watched_are_held_once_however_many_records_they_have(name: str) -> None:
    records = columns(numbered([(offset_key(name, "t", 0), offset_value(3, 1))] * 1_000, start=0))
    once, often = (Compactor(0, 1, (), lambda name: not name.startswith("no"), lambda _: True) for _ in range(2))
    once.add_columns(records.part(0, 500))
    often.add_columns(records)
    assert often.held == once.held
    assert often.dropped == 1_000


def test_what_is_held_grows_with_each_member_and_each_topic_of_one() -> None:
    def held(members: int, topics: int) -> int:
        compactor = Compactor(0, 1, (), lambda _: True, lambda _: True)
        one = member(3, subscription=subscription(3, ["t"] * topics))
        compactor.add(0, 1, group_key("g"), group_value(3, [one] * members, protocol_type="consumer"))
        compactor.fold()
        return compactor.held

    assert held(20, 0) - held(10, 0) >= 10 * 400
    assert held(10, 9) - held(10, 0) >= 10 * 9 * 100


def test_commits_under_legacy_keys_are_folded_in_one_part_with_all_others() -> None:
    legacy = offset_key("g", "t", 0, 0)
    values = [
        (legacy, offset_value(0, 7)),
        (COMMIT_KEY, offset_value(4, 9)),
        (legacy, offset_value(0, 8, metadata="é")),
        (legacy, None),
        (legacy, offset_value(1, 8)),
        (legacy, b"\x00\x00"),
        (offset_key("g", "u", 0, 0), offset_value(0, 5)),
        (COMMIT_KEY, offset_value(3, 4)),
    ]
    compactor = Compactor(0, 1, (), lambda _: True, lambda _: True)
    compactor.add_columns(columns(numbered(values * 100, start=0)))
    # One part of windows, which has 2 KB, for all of them.
    assert len(compactor._fold._parts) == 1


def test_windows_in_many_parts_are_merged_however_few_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "_MOST_PARTS", 4)
    compactor = Compactor(0, 1, (), lambda _: True, lambda _: True)
    for n in range(30):
        compactor.add(n, 1, COMMIT_KEY, offset_value(4, 100 - n))
        compactor.fold()
        assert len(compactor._fold._parts) < 4
    ((window,),) = dict(compactor.groups()).values()
    assert (window.commits, window.first_offset, window.offset, window.step_back) == (30, 100, 71, 1)


def test_a_group_on_a_foreign_partition_is_quarantined_with_both_partitions() -> None:
    home = partition_for("g", 50)
    found = (home + 1) % 50
    groups, unreadable, _ = compacted(numbered([(COMMIT_KEY, offset_value(3, 1))]), partition=found, partitions=50)
    assert not groups
    (record,) = unreadable
    assert record.reason == f"group 'g' belongs to partition {home} of the offsets log, found on {found}"
    assert (record.key_type, record.value_version) == (1, 3)


def test_a_cluster_of_redpanda_has_its_groups_on_other_partitions() -> None:
    # 31 of 50, by Redpanda's own hash; Kafka's says 3.
    for found, cluster_id, is_read in ((31, "redpanda.5a1c", True), (3, "redpanda.5a1c", False), (31, "5a1c", False)):
        codec = Compactor(found, 50, [], lambda _: True, lambda _: True, cluster_id=cluster_id)
        codec.add(100, 1_000, COMMIT_KEY, offset_value(3, 1))
        assert ([name for name, _ in codec.groups()], len(codec.unreadable())) == (["g"] * is_read, 1 - is_read)


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
    assert (record.key, record.value) == (key[:16_384], value[:16_384])
    assert (record.key_size, record.value_size) == (keys, values)
    assert record.sha256 == hashlib.sha256(key + value).hexdigest()


def test_junk_of_16_kib_is_kept_whole() -> None:
    key, value = b"\x00\x01" + bytes(16_382), bytes(16_384)
    _, unreadable, _ = compacted(numbered([(key, value)]))
    (record,) = unreadable
    assert (record.key, record.value, record.sha256) == (key, value, None)


def test_a_null_key_is_quarantined() -> None:
    _, unreadable, _ = compacted(numbered([(None, None)]))
    (record,) = unreadable
    assert (record.key, record.value, record.key_type) == (None, None, None)


@pytest.mark.parametrize("boundaries", [(), (150, 700)])
def test_a_flood_of_junk_is_kept_up_to_a_number_and_counted(boundaries: tuple[int, ...]) -> None:
    flood = numbered([(None, None) if n % 3 else (COMMIT_KEY, b"\x00\x03") for n in range(1_000)], start=0)
    _, unreadable, _ = compacted(flood, boundaries=list(boundaries))
    kept = [item.offset for item in unreadable if isinstance(item, QuarantinedRecord)]
    # Undecodable commits are found later than the others.
    assert kept == list(range(101))
    counted_only = [item for item in unreadable if isinstance(item, CountedRecords)]
    assert {item.kind for item in counted_only} == {"undecodable"}
    found = [(item.sample.offset, item.records, item.last_offset) for item in counted_only]
    assert found == ([(101, 49, 149), (150, 550, 699), (700, 300, 999)] if boundaries else [(101, 899, 999)])


def test_a_commit_that_is_decoded_after_a_flood_of_junk_is_kept_at_its_place_among_the_first() -> None:
    # It waits to be decoded while the 201 other records are cut to the first 101 of them.
    flood = numbered([(COMMIT_KEY, b"\x00\x03") if n == 100 else (None, None) for n in range(202)], start=0)
    _, unreadable, _ = compacted(flood)
    assert [item.offset for item in unreadable if isinstance(item, QuarantinedRecord)] == list(range(101))


def test_a_commit_that_waits_to_be_decoded_is_found_unreadable_before_the_groups_are_asked_for() -> None:
    compactor = Compactor(0, 1, (), lambda _: True, lambda _: True)
    compactor.add(7, 1, COMMIT_KEY, b"\x00\x03")
    (record,) = compactor.unreadable()
    assert record.offset == 7
