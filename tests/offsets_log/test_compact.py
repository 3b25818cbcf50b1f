"""The compactor: nothing lost, nothing different from folding record by record, whatever comes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.groups.inputs import (
    CommitWindow,
    GroupInput,
    MembershipRecord,
    MembershipTombstone,
    OtherRecords,
    decode_inputs,
    encode_inputs,
    merge_windows,
)
from streaming.groups.quarantine import PartitionInput, QuarantinedRecord, UnknownRecords
from streaming.offsets_log import Compactor, commit_fold, partition_for
from streaming.offsets_log import compact as compact_module

from .one_by_one import Folded, Record, as_folded, fold_one_by_one
from .written import (
    assignment,
    group_key,
    group_value,
    member,
    offset_key,
    offset_value,
    other_key,
    string,
    subscription,
)

DAY = 86_400_000


def compacted(
    records: Sequence[Record],
    *,
    partition: int = 0,
    partitions: int = 1,
    boundaries: Sequence[int] = (),
    watches: Callable[[str], bool] = lambda _: True,
    watches_topic: Callable[[str], bool] = lambda _: True,
) -> tuple[dict[str, list[GroupInput]], list[PartitionInput], int]:
    compactor = Compactor(partition, partitions, boundaries, watches, watches_topic)
    for record in records:
        compactor.add(*record)
    groups = dict(compactor.groups())
    return groups, compactor.unread(), compactor.dropped


def numbered(pairs: Sequence[tuple[bytes | None, bytes | None]], start: int = 100) -> list[Record]:
    return [Record(start + i, 1_000 + i, key, value) for i, (key, value) in enumerate(pairs)]


COMMIT_KEY = offset_key("g", "t", 0)


def test_commits_of_a_partition_fold_into_one_window() -> None:
    topic_id = bytes(range(16))
    values = [
        offset_value(3, 50, leader_epoch=1),
        offset_value(4, 40, leader_epoch=2),
        offset_value(4, 70, leader_epoch=3, topic_id=topic_id, metadata="x"),
    ]
    groups, unread, dropped = compacted(numbered([(COMMIT_KEY, value) for value in values]))
    assert groups == {
        "g": [
            CommitWindow(
                topic="t",
                partition=0,
                commits=3,
                tombstones=0,
                first_offset=50,
                first_commit_time=1_000,
                first_record=100,
                offset=70,
                leader_epoch=3,
                last_commit_time=1_002,
                last_record=102,
                deleted=False,
                step_back=10,
                topic_id="AAECAwQFBgcICQoLDA0ODw",
            )
        ]
    }
    assert not unread
    assert not dropped


def test_a_step_back_is_seen_across_a_tombstone() -> None:
    pairs = [(COMMIT_KEY, offset_value(3, 50)), (COMMIT_KEY, None), (COMMIT_KEY, offset_value(3, 20))]
    groups, _, _ = compacted(numbered(pairs))
    (window,) = groups["g"]
    assert isinstance(window, CommitWindow)
    assert (window.step_back, window.tombstones, window.deleted) == (30, 1, False)


def test_a_window_of_tombstones_says_that_nothing_is_committed() -> None:
    groups, _, _ = compacted(numbered([(COMMIT_KEY, None), (COMMIT_KEY, None)]))
    (window,) = groups["g"]
    assert isinstance(window, CommitWindow)
    assert (window.commits, window.tombstones, window.deleted) == (0, 2, True)
    assert (window.offset, window.first_offset, window.last_commit_time, window.topic_id) == (-1, -1, -1, None)


def test_offsets_at_both_ends_of_the_range_do_not_overflow() -> None:
    pairs = [(COMMIT_KEY, offset_value(3, 2**63 - 1)), (COMMIT_KEY, offset_value(3, -(2**63)))]
    groups, _, _ = compacted(numbered(pairs))
    (window,) = groups["g"]
    assert isinstance(window, CommitWindow)
    assert (window.first_offset, window.offset, window.step_back) == (2**63 - 1, -(2**63), 2**64 - 1)


def test_a_boundary_parts_the_records_below_it_from_the_others() -> None:
    records = numbered([(COMMIT_KEY, offset_value(3, n)) for n in range(4)])
    groups, _, _ = compacted(records, boundaries=[102])
    assert [(w.first_record, w.position) for w in groups["g"] if isinstance(w, CommitWindow)] == [
        (100, 101),
        (102, 103),
    ]


def test_boundaries_without_records_between_them_leave_no_windows() -> None:
    records = numbered([(COMMIT_KEY, offset_value(3, n)) for n in range(2)])
    groups, _, _ = compacted(records, boundaries=[500, 10, 101, 100, 101, 400])
    assert len(groups["g"]) == 2


def test_a_membership_record_parts_the_windows_of_its_own_group_only() -> None:
    other = offset_key("h", "t", 0)
    metadata = group_value(3, [])
    pairs = [
        (COMMIT_KEY, offset_value(3, 1)),
        (other, offset_value(3, 1)),
        (group_key("g"), metadata),
        (COMMIT_KEY, offset_value(3, 2)),
        (other, offset_value(3, 2)),
        (group_key("g"), None),
        (COMMIT_KEY, offset_value(3, 3)),
    ]
    groups, _, _ = compacted(numbered(pairs))
    kinds = [type(item).__name__ for item in groups["g"]]
    assert kinds == [
        "CommitWindow",
        "MembershipRecord",
        "CommitWindow",
        "MembershipTombstone",
        "CommitWindow",
    ]
    assert [item.commits for item in groups["h"] if isinstance(item, CommitWindow)] == [2]


def test_an_undecodable_membership_record_parts_nothing() -> None:
    pairs = [
        (COMMIT_KEY, offset_value(3, 1)),
        (group_key("g"), group_value(3, [])[:-1]),
        (COMMIT_KEY, offset_value(3, 2)),
    ]
    groups, unread, _ = compacted(numbered(pairs))
    assert len(groups["g"]) == 1
    assert [type(item) for item in unread] == [QuarantinedRecord]


def test_other_types_are_counted_per_type_between_membership_records() -> None:
    pairs = [
        (other_key(5, "g", "m1"), b"\x00\x00rest"),
        (other_key(5, "g", "m2"), None),
        (other_key(3, "g"), b"\x00\x00rest"),
        (group_key("g"), None),
        (other_key(5, "g", "m1"), b"\x00\x00rest"),
    ]
    groups, _, _ = compacted(numbered(pairs))
    assert groups["g"] == [
        OtherRecords(5, 1, 1, 100, 101, 1_001, deleted=True, log_partition=0),
        OtherRecords(3, 1, 0, 102, 102, 1_002, deleted=False, log_partition=0),
        MembershipTombstone(103, 1_003),
        OtherRecords(5, 1, 0, 104, 104, 1_004, deleted=False, log_partition=0),
    ]


def test_what_is_not_watched_is_dropped_and_counted() -> None:
    pairs = [
        (offset_key("g", "t", 0), offset_value(3, 1)),
        (offset_key("g", "hidden", 0), offset_value(3, 1)),
        (offset_key("hidden", "t", 0), offset_value(3, 1)),
        (group_key("hidden"), b"junk"),
    ]
    groups, unread, dropped = compacted(
        numbered(pairs), watches=lambda name: name != "hidden", watches_topic=lambda name: name != "hidden"
    )
    assert list(groups) == ["g"]
    assert len(groups["g"]) == 1
    assert not unread
    assert dropped == 3


def test_a_group_on_a_foreign_partition_is_quarantined_with_both_partitions() -> None:
    home = partition_for("g", 50)
    found = (home + 1) % 50
    groups, unread, _ = compacted(numbered([(COMMIT_KEY, offset_value(3, 1))]), partition=found, partitions=50)
    assert not groups
    (record,) = unread
    assert isinstance(record, QuarantinedRecord)
    assert record.reason == f"group 'g' belongs to partition {home} of the offsets log, found on {found}"
    assert (record.key_type, record.value_version) == (1, 3)


def test_a_newer_value_version_is_counted_per_day_and_boundary_with_its_first_record_as_sample() -> None:
    newer = offset_value(3, 1)[2:]
    records = [
        Record(10, DAY - 1, COMMIT_KEY, b"\x00\x05" + newer),
        Record(11, DAY, COMMIT_KEY, b"\x00\x05" + newer),
        Record(12, DAY + 1, COMMIT_KEY, b"\x00\x05" + newer),
        Record(13, DAY + 2, COMMIT_KEY, b"\x00\x05" + newer),
    ]
    groups, unread, _ = compacted(records, boundaries=[13])
    assert not groups
    found = [
        (item.key_type, item.value_version, item.day, item.records, item.sample.offset, item.last_offset)
        for item in unread
        if isinstance(item, UnknownRecords)
    ]
    assert found == [(1, 5, 0, 1, 10, 10), (1, 5, 1, 2, 11, 12), (1, 5, 1, 1, 13, 13)]


def test_an_unknown_key_type_is_counted_even_without_a_value() -> None:
    _, unread, _ = compacted(numbered([(b"\x00\x18", None), (b"\xff\xff", b"\x00\x00")]))
    assert [(item.key_type, item.value_version) for item in unread if isinstance(item, UnknownRecords)] == [
        (24, None),
        (-1, 0),
    ]


def test_large_junk_is_cut_and_told_by_its_digest() -> None:
    key, value = b"\x00\x01" + bytes(100_000), bytes(70_000)
    _, unread, _ = compacted(numbered([(key, value)]))
    (record,) = unread
    assert isinstance(record, QuarantinedRecord)
    assert record.key is not None
    assert record.value is not None
    assert (len(record.key), len(record.value)) == (65_536, 65_536)
    assert (record.key_size, record.value_size) == (100_002, 70_000)
    assert record.sha256 == hashlib.sha256(key + value).hexdigest()


def test_a_null_key_is_quarantined() -> None:
    _, unread, _ = compacted(numbered([(None, None)]))
    (record,) = unread
    assert isinstance(record, QuarantinedRecord)
    assert (record.key, record.value, record.key_type) == (None, None, None)


# A small world, so that records meet: few groups and partitions, every version, and damage.
_keys = st.sampled_from(
    [offset_key(group, topic, p, t) for group in "gh" for topic in ("t", "ü") for p in (0, 1) for t in (1, 1, 0)]
    + [group_key("g"), group_key("h"), other_key(3, "g"), other_key(5, "g", "m"), other_key(16, "h", "a.*")]
    + [other_key(17, "h"), b"\x00\x18\x00", b"\xff\xfe", b"\x00", None, offset_key("g", "t", 0) + b"\x00"]
    + [offset_key("unwatched", "t", 0), offset_key("g", "unwatched", 0)]
)
_offset_values = st.builds(
    offset_value,
    st.integers(0, 6),
    st.one_of(st.integers(0, 100), st.integers(-(2**63), 2**63 - 1)),
    leader_epoch=st.integers(-1, 5),
    metadata=st.sampled_from(["", "", "m", "é", "x" * 200]),
    commit_timestamp=st.integers(0, 100),
    topic_id=st.sampled_from([bytes(16), bytes(range(16))]),
)
_group_values = st.builds(
    lambda version, topic, rack: group_value(
        version,
        [
            member(
                version,
                subscription=subscription(3, [topic], rack=rack),
                assignment=assignment(3, [(topic, [0, 1])]),
            )
        ],
    ),
    st.integers(0, 5),
    st.sampled_from(["t", "ü"]),
    st.sampled_from([None, "r"]),
)
_values = st.one_of(
    _offset_values,
    _offset_values,
    _group_values,
    st.none(),
    st.binary(max_size=60),
    st.builds(lambda data, cut: data[:cut], _offset_values, st.integers(0, 45)),
    st.builds(lambda data: data + b"\x00", _offset_values),
)
_logs = st.lists(st.tuples(st.integers(1, 3), st.integers(-1, 3 * DAY), _keys, _values), max_size=60)
_boundaries = st.lists(st.integers(0, 150), max_size=6)


def _log(steps: list[tuple[int, int, bytes | None, bytes | None]]) -> list[Record]:
    records = []
    offset = 0
    for step, timestamp, key, value in steps:
        offset += step
        records.append(Record(offset, timestamp, key, value))
    return records


def _watches(name: str) -> bool:
    return name != "unwatched"


def _folded(records: list[Record], boundaries: list[int]) -> Folded:
    groups, unread, dropped = compacted(records, boundaries=boundaries, watches=_watches, watches_topic=_watches)
    return as_folded(groups, unread, boundaries, dropped)


@settings(max_examples=400)
@given(_logs, _boundaries, st.sampled_from([1, 3, 7, 16_384]))
def test_the_fold_equals_folding_record_by_record(
    steps: list[tuple[int, int, bytes | None, bytes | None]], boundaries: list[int], at_once: int
) -> None:
    records = _log(steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compact_module, "_FOLDED_AT_ONCE", at_once)
        patch.setattr(commit_fold, "_LEAST_MERGED", at_once)
        patch.setattr(commit_fold, "_BUILT_AT_ONCE", at_once)
        assert _folded(records, boundaries) == fold_one_by_one(
            records, boundaries=boundaries, watches=_watches, watches_topic=_watches
        )


@settings(max_examples=200)
@given(_logs, _boundaries, st.lists(st.integers(0, 60), max_size=4))
def test_parts_of_a_log_merge_into_the_fold_of_the_whole(
    steps: list[tuple[int, int, bytes | None, bytes | None]], boundaries: list[int], cuts: list[int]
) -> None:
    records = _log(steps)
    whole = _folded(records, boundaries)
    edges = [0, *sorted(cuts), len(records)]
    parts = [_folded(records[a:b], boundaries) for a, b in pairwise(edges)]
    merged: dict[str, list[GroupInput]] = {}
    for part in parts:
        for name, items in part.groups.items():
            merged.setdefault(name, []).extend(items)
    assert {name: _merged(items, boundaries) for name, items in merged.items()} == {
        name: _merged(items, boundaries) for name, items in whole.groups.items()
    }
    assert [q for part in parts for q in part.quarantined] == whole.quarantined
    assert sum(part.dropped for part in parts) == whole.dropped


def _merged(items: list[GroupInput], boundaries: list[int]) -> list[GroupInput]:
    """Merge adjacent windows of the same partition (and counts of a type) that no boundary parts."""
    out: list[GroupInput] = []
    open_at: dict[object, int] = {}
    for item in items:
        if isinstance(item, MembershipRecord | MembershipTombstone):
            open_at.clear()
            out.append(item)
            continue
        assert isinstance(item, CommitWindow | OtherRecords)
        name = (item.topic, item.partition) if isinstance(item, CommitWindow) else item.key_type
        at = open_at.get(name)
        before = None if at is None else out[at]
        if before is not None and not any(before.last_record < b <= item.first_record for b in boundaries):  # type: ignore[union-attr]
            assert at is not None
            if isinstance(item, CommitWindow):
                assert isinstance(before, CommitWindow)
                out[at] = merge_windows(before, item)
            else:
                assert isinstance(before, OtherRecords)
                out[at] = OtherRecords(
                    key_type=item.key_type,
                    records=before.records + item.records,
                    tombstones=before.tombstones + item.tombstones,
                    first_record=before.first_record,
                    last_record=item.last_record,
                    last_time=item.last_time,
                    deleted=item.deleted,
                    log_partition=item.log_partition,
                )
            continue
        open_at[name] = len(out)
        out.append(item)
    return sorted(out, key=lambda item: getattr(item, "position"))  # noqa: B009


@settings(max_examples=200)
@given(_logs, _boundaries)
def test_every_record_is_found_again_and_every_input_can_be_packed(
    steps: list[tuple[int, int, bytes | None, bytes | None]], boundaries: list[int]
) -> None:
    records = _log(steps)
    groups, unread, dropped = compacted(records, boundaries=boundaries, watches=_watches, watches_topic=_watches)
    assert counted(groups, unread) + dropped == len(records)
    for inputs in groups.values():
        assert decode_inputs(encode_inputs(inputs)) == inputs


def counted(groups: dict[str, list[GroupInput]], unread: list[PartitionInput]) -> int:
    total = 0
    for inputs in groups.values():
        for item in inputs:
            if isinstance(item, CommitWindow):
                total += item.commits + item.tombstones
            elif isinstance(item, OtherRecords):
                total += item.records + item.tombstones
            else:
                total += 1
    return total + sum(item.records if isinstance(item, UnknownRecords) else 1 for item in unread)


@settings(max_examples=200)
@given(_logs, _boundaries, st.lists(st.integers(1, 20), min_size=60, max_size=60))
def test_many_records_at_once_are_taken_as_one_by_one(
    steps: list[tuple[int, int, bytes | None, bytes | None]], boundaries: list[int], sizes: list[int]
) -> None:
    records = _log(steps)
    compactor = Compactor(0, 1, boundaries, _watches, _watches)
    rest = records
    for size in sizes:
        batch, rest = rest[:size], rest[size:]
        columns = [[record[i] for record in batch] for i in range(4)]
        compactor.add_many(*columns)  # type: ignore[arg-type]
    groups = dict(compactor.groups())
    assert as_folded(groups, compactor.unread(), boundaries, compactor.dropped) == _folded(records, boundaries)


def test_memory_grows_with_keys_and_not_with_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact_module, "_FOLDED_AT_ONCE", 100)
    monkeypatch.setattr(commit_fold, "_LEAST_MERGED", 1_000)
    keys = [offset_key("g", "t", partition) for partition in range(60)]
    compactor = Compactor(0, 1, (), lambda _: True, lambda _: True)
    held = []
    for offset in range(50_000):
        compactor.add(offset, offset, keys[offset % 60], offset_value(3, offset))
        held.append(compactor._fold._rows + len(compactor._slots))
    assert max(held) <= 1_000 + 2 * 100
    assert counted(dict(compactor.groups()), []) == 50_000


def test_the_names_of_groups_come_through_as_they_are() -> None:
    name = "a'b\"<script>\n../é🦊"
    groups, _, _ = compacted(numbered([(b"\x00\x01" + string(name) + string("t") + bytes(4), offset_value(4, 7))]))
    assert list(groups) == [name]
