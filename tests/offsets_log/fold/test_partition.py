"""Windows of a partition of the log: what is folded into one, what parts them, and how much memory is held."""

from __future__ import annotations

import pytest

from streaming.offsets_log import Compactor
from streaming.offsets_log.fold import commit_fold
from streaming.offsets_log.fold import partition as compact_module
from streaming.records import (
    CommitWindow,
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
    assert isinstance(window, CommitWindow)
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


def test_what_is_not_watched_is_dropped_and_counted() -> None:
    pairs = [
        (offset_key("g", "t", 0), offset_value(3, 1)),
        (offset_key("g", "hidden", 0), offset_value(3, 1)),
        (offset_key("hidden", "t", 0), offset_value(3, 1)),
        (group_key("hidden"), b"junk"),
    ]
    groups, unreadable, dropped = compacted(
        numbered(pairs), watches=lambda name: name != "hidden", watches_topic=lambda name: name != "hidden"
    )
    assert list(groups) == ["g"]
    assert len(groups["g"]) == 1
    assert not unreadable
    assert dropped == 3


@pytest.mark.parametrize("value", [offset_value(3, 1), None])
def test_memory_grows_with_keys_and_not_with_records(value: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact_module, "_FOLDED_AT_ONCE", 100)
    monkeypatch.setattr(commit_fold, "_LEAST_MERGED", 1_000)
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


def test_commits_under_legacy_keys_are_folded_together_with_all_others() -> None:
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
    records = numbered(values * 100, start=0)
    together, alone = (Compactor(0, 1, (), lambda _: True, lambda _: True) for _ in range(2))
    together.add_columns(columns(records))
    for record in records:
        alone.add(*record)
    # One part of windows, which has 2 KB, for all of them.
    assert len(together._fold._parts) == 1
    assert dict(together.groups()) == dict(alone.groups())
    assert together.unreadable() == alone.unreadable()
    ((other, window),) = dict(together.groups()).values()
    assert isinstance(window, CommitWindow)
    assert isinstance(other, CommitWindow)
    assert (window.topic, window.commits, window.tombstones, window.offset) == ("t", 500, 100, 4)
    assert (other.topic, other.commits, other.tombstones, other.offset) == ("u", 100, 0, 5)


def test_windows_in_many_parts_are_merged_however_few_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_fold, "_MOST_PARTS", 4)
    compactor = Compactor(0, 1, (), lambda _: True, lambda _: True)
    for n in range(30):
        compactor.add(n, 1, COMMIT_KEY, offset_value(4, 100 - n))
        compactor.fold()
        assert len(compactor._fold._parts) < 4
    ((window,),) = dict(compactor.groups()).values()
    assert isinstance(window, CommitWindow)
    assert (window.commits, window.first_offset, window.offset, window.step_back) == (30, 100, 71, 1)
