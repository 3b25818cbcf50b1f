"""The compactor loses nothing and agrees with folding record by record, for any input and any cuts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.offsets_log import Compactor
from streaming.offsets_log.fold import commits
from streaming.offsets_log.fold import partition as compact_module
from streaming.records import (
    CommitWindow,
    GroupInput,
    MembershipRecord,
    MembershipTombstone,
    decode_inputs,
    encode_inputs,
    merge_windows,
)
from tests.examples import examples
from tests.offsets_log.compacting import columns, compacted, counted
from tests.offsets_log.one_by_one import Folded, Record, as_folded, fold_one_by_one
from tests.offsets_log.written import (
    assignment,
    current_assignment,
    group_epoch,
    group_key,
    group_value,
    member,
    member_metadata,
    offset_key,
    offset_value,
    other_key,
    subscription,
)

DAY = 86_400_000

# A small world, so that records interact: few groups and partitions, every version, and damage.
_keys = st.sampled_from(
    [offset_key(group, topic, p, t) for group in "gh" for topic in ("t", "ü") for p in (0, 1) for t in (1, 1, 0)]
    + [group_key("g"), group_key("h"), other_key(3, "g"), other_key(5, "g", "m"), other_key(16, "h", "a.*")]
    + [
        other_key(17, "h"),
        other_key(18, "h"),
        b"\x00\x18\x00",
        b"\xff\xfe",
        b"\x00",
        None,
        offset_key("g", "t", 0) + b"\x00",
    ]
    + [offset_key("unwatched", "t", 0), offset_key("g", "unwatched", 0), group_key("unwatched")]
    # As Redpanda has wrapped the keys of tombstones.
    + [len(key).to_bytes(4, "little") + key for key in (offset_key("g", "t", 0), group_key("g"))]
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
_other_values = st.sampled_from([group_epoch(1), member_metadata(["t"]), current_assignment(1), b"\x00\x01new"])
_values = st.one_of(
    _offset_values,
    _offset_values,
    _group_values,
    _other_values,
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
    groups, unreadable, dropped = compacted(records, boundaries=boundaries, watches=_watches, watches_topic=_watches)
    return as_folded(groups, unreadable, boundaries, dropped)


@settings(max_examples=examples(400))
@given(_logs, _boundaries, st.sampled_from([1, 3, 7, 16_384]))
def test_the_fold_equals_folding_record_by_record(
    steps: list[tuple[int, int, bytes | None, bytes | None]], boundaries: list[int], at_once: int
) -> None:
    records = _log(steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compact_module, "_FOLDED_AT_ONCE", at_once)
        patch.setattr(commits, "_LEAST_MERGED", at_once)
        patch.setattr(commits, "_BUILT_AT_ONCE", at_once)
        assert _folded(records, boundaries) == fold_one_by_one(
            records, boundaries=boundaries, watches=_watches, watches_topic=_watches
        )


@settings(max_examples=examples(200))
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
    """Merge adjacent windows of the same partition without a boundary in between."""
    out: list[GroupInput] = []
    open_at: dict[tuple[str, int], int] = {}
    for item in items:
        if isinstance(item, MembershipRecord | MembershipTombstone):
            open_at.clear()
        if not isinstance(item, CommitWindow):
            out.append(item)
            continue
        at = open_at.get((item.topic, item.partition))
        before = None if at is None else out[at]
        if isinstance(before, CommitWindow) and not any(
            before.last_record < b <= item.first_record for b in boundaries
        ):
            assert at is not None
            out[at] = merge_windows(before, item)
            continue
        open_at[item.topic, item.partition] = len(out)
        out.append(item)
    return sorted(out, key=lambda item: getattr(item, "position"))  # noqa: B009


@settings(max_examples=examples(200))
@given(_logs, _boundaries)
def test_every_record_is_found_again_and_every_input_can_be_packed(
    steps: list[tuple[int, int, bytes | None, bytes | None]], boundaries: list[int]
) -> None:
    records = _log(steps)
    groups, unreadable, dropped = compacted(records, boundaries=boundaries, watches=_watches, watches_topic=_watches)
    assert counted(groups, unreadable) + dropped == len(records)
    for inputs in groups.values():
        assert decode_inputs(encode_inputs(inputs)) == inputs


@settings(max_examples=examples(400))
@given(
    _logs,
    _boundaries,
    st.lists(st.integers(1, 20), min_size=60, max_size=60),
    st.sampled_from([1, 3, 7, 16_384]),
    st.data(),
)
def test_columns_are_taken_as_record_by_record(
    steps: list[tuple[int, int, bytes | None, bytes | None]],
    boundaries: list[int],
    sizes: list[int],
    at_once: int,
    data: st.DataObject,
) -> None:
    records = _log(steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compact_module, "_FOLDED_AT_ONCE", at_once)
        patch.setattr(commits, "_LEAST_MERGED", at_once)
        compactor = Compactor(0, 1, boundaries, _watches, _watches)
        rest = records
        for size in sizes:
            some, rest = rest[:size], rest[size:]
            if data.draw(st.booleans()):
                compactor.add_columns(columns(some))
            else:
                for record in some:
                    compactor.add(*record)
        groups = dict(compactor.groups())
        assert list(groups) == list(
            compacted(records, boundaries=boundaries, watches=_watches, watches_topic=_watches)[0]
        )
        assert as_folded(groups, compactor.unreadable(), boundaries, compactor.dropped) == fold_one_by_one(
            records, boundaries=boundaries, watches=_watches, watches_topic=_watches
        )
