from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.records import (
    CONSUMER,
    ROUNDS_KEY,
    CommitWindow,
    GroupEpoch,
    decode_inputs,
    encode_inputs,
    group_key,
    group_of,
    in_order,
    merge_windows,
    partition_key,
)
from tests.groups.build import (
    LOG_PARTITION,
    SECOND,
    START,
    even,
    make_commit,
    make_commits,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
)


def epoch_at(record: int) -> GroupEpoch:
    return GroupEpoch(record, START + record * SECOND, CONSUMER, LOG_PARTITION, 1)


def test_a_merged_window_has_the_ends_and_sums_of_both() -> None:
    window = make_commits(5, 10, 40, 30, None, 35, topic="x", partition=2)
    assert window == CommitWindow(
        topic="x",
        partition=2,
        commits=4,
        tombstones=1,
        first_offset=10,
        first_commit_time=START + 5_000,
        first_record=5,
        offset=35,
        leader_epoch=-1,
        last_commit_time=START + 9_000,
        last_record=9,
        deleted=False,
        step_back=10,
        topic_id=None,
    )


def test_a_window_that_ends_with_a_tombstone_is_deleted_and_keeps_its_last_commit() -> None:
    window = make_commits(5, 10, None)
    assert (window.deleted, window.offset, window.commits, window.tombstones) == (True, 10, 1, 1)


def test_a_step_back_over_a_tombstone_counts() -> None:
    assert make_commits(5, 50, None, 20).step_back == 30


@given(st.lists(st.none() | st.integers(-5, 100), min_size=3, max_size=12), st.data())
def test_merging_is_associative(offsets: list[int | None], data: st.DataObject) -> None:
    windows = [make_commit(at, offset) for at, offset in enumerate(offsets)]
    whole = make_commits(0, *offsets)
    while len(windows) > 1:
        at = data.draw(st.integers(0, len(windows) - 2))
        windows[at : at + 2] = [merge_windows(windows[at], windows[at + 1])]
    assert windows == [whole]


def test_a_membership_that_was_only_seen_was_decided_after_the_last_round_that_did_not_show_it() -> None:
    # -1: none had looked before.
    seen = [make_record(5, time=9_000, seen=True, decided_after=after) for after in (-1, 0, 7_000)]
    assert [record.earliest for record in seen] == [9_000, 0, 7_000]


def test_inputs_are_ordered_by_the_log_and_an_observation_comes_before_the_record_at_its_position() -> None:
    record, commit, tombstone, other = make_record(12), make_commit(10, 1), make_tombstone(14), epoch_at(11)
    early, late = make_observation(12, round=3), make_observation(12, round=4)
    expected = [commit, other, early, late, record, tombstone]
    assert in_order([tombstone, late, record, early, other, commit]) == expected


def test_inputs_come_back_as_they_were_packed() -> None:
    inputs = [
        make_record(5, even("x", 2, "a", "b")),
        make_commits(6, 1, None, 2),
        make_tombstone(9),
        epoch_at(10),
        make_observation(12, make_topic("x", 2), make_topic("y", None)),
    ]
    assert decode_inputs(encode_inputs(inputs)) == inputs


def test_a_payload_that_is_none_of_ours_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_inputs(b"\x01")


def test_any_group_id_comes_back_from_its_key() -> None:
    for group in ("", "r:", "p:t/1", "g:x"):
        assert group_of(group_key(group)) == group
    assert group_of(ROUNDS_KEY) is None
    assert group_of(partition_key("__consumer_offsets", 7)) is None
    assert group_key("r:") != ROUNDS_KEY
