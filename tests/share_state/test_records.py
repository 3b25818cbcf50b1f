"""Records of `__share_group_state`: those of a real broker, and any bytes.

`data/broker_4.3.1.jsonl` is the topic of a broker 4.3.1 (29 November 2026): a group g with one member and a topic of
two partitions. In partition 0 it accepted offsets 0, 1, 5 and 6 and later 7, released 2 once, rejected 3, and released
4 until it was given up. In partition 1 it accepted 0 to 4, and stalled with 5 until its lock ran out.
`kafka-share-groups --describe` then said start offset 7 and lag 0, and start offset 5 and lag 1.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.offsets_log import Rejected, UnknownKey, UnknownVersion
from streaming.share_state import PartitionDeliveries, ShareStates, StateBatch, StateRecord, decode_state
from tests.examples import examples

_LINES = (Path(__file__).parent / "data" / "broker_4.3.1.jsonl").read_text("utf-8").splitlines()
REAL = [(bytes.fromhex(line["key"]), bytes.fromhex(line["value"])) for line in map(json.loads, _LINES)]

TOPIC_ID = "2JghgT4TRIaxs2tQKpO2ww"


def update(first: int, last: int) -> bytes:
    """The value of an update with one range of released records."""
    return struct.pack(">hiiqBqqbhBB", 0, 0, 0, 0, 2, first, last, 0, 1, 0, 0)


def read(records: list[tuple[bytes, bytes | None]], counted_from: int = 0) -> ShareStates:
    states = ShareStates()
    for at, (key, value) in enumerate(records):
        decoded = decode_state(key, value)
        assert isinstance(decoded, StateRecord)
        states.apply(decoded, counts=at >= counted_from)
    return states


def test_the_topic_of_a_real_broker_says_what_its_member_did() -> None:
    states = read([*REAL])
    assert states.changed == {"g"}
    partitions = states.of("g")
    assert partitions.keys() == {(TOPIC_ID, 0), (TOPIC_ID, 1)}
    first, second = partitions[TOPIC_ID, 0], partitions[TOPIC_ID, 1]
    assert (first.start, first.done, first.first, dict(first.archived)) == (7, 1, 8, {1: 1, 5: 1})
    assert first.batches == [StateBatch(7, 7, 1, 2)]
    assert (second.start, second.done, second.first, second.deliveries) == (5, 0, 5, 1)
    assert second.batches == [StateBatch(5, 5, 1, 0)]


def test_what_was_archived_before_counting_began_does_not_count() -> None:
    assert dict(read([*REAL], counted_from=8).of("g")[TOPIC_ID, 0].archived) == {5: 1}
    assert dict(read([*REAL], counted_from=9).of("g")[TOPIC_ID, 0].archived) == {}


def test_a_record_that_is_told_as_archived_twice_counts_once() -> None:
    assert dict(read([*REAL[:9], REAL[8]]).of("g")[TOPIC_ID, 0].archived) == {1: 1, 5: 1}


def test_a_tombstone_ends_a_partition_and_the_last_one_the_group() -> None:
    states = read([*REAL, (REAL[1][0], None)])
    assert states.of("g").keys() == {(TOPIC_ID, 1)}
    assert read([*REAL, (REAL[1][0], None), (REAL[0][0], None)]).of("g") == {}


def test_nothing_was_delivered_before_there_is_a_start_offset() -> None:
    assert read(REAL[:2]).of("g")[TOPIC_ID, 0] == PartitionDeliveries()


@pytest.mark.parametrize(
    ("key", "value", "unread"),
    [
        (None, b"", Rejected("key is null; every record of this topic has a key")),
        (b"\0\2", b"", UnknownKey(2)),
        (REAL[0][0] + b"\0", REAL[0][1], None),
        (REAL[0][0][:-1], REAL[0][1], None),
        (REAL[0][0], b"\0\1", UnknownVersion(1)),
        (REAL[0][0], b"\xff\xff", Rejected("value: version -1 is negative")),
        (REAL[0][0], REAL[0][1] + b"\0", None),
        (REAL[2][0], update(129, 128), Rejected("value: there is no range of offsets from 129 to 128")),
        (REAL[2][0], update(-1, 128), Rejected("value: there is no range of offsets from -1 to 128")),
    ],
)
def test_what_is_no_record_is_a_value_with_a_reason(
    key: bytes | None, value: bytes, unread: Rejected | UnknownKey | UnknownVersion | None
) -> None:
    decoded = decode_state(key, value)
    if unread is None:
        assert isinstance(decoded, Rejected)
    else:
        assert decoded == unread


@settings(max_examples=examples(5_000), deadline=None)
@given(st.sampled_from(REAL), st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=6), st.booleans())
def test_any_bytes_are_read_or_refused(
    record: tuple[bytes, bytes], changes: list[tuple[int, int]], in_key: bool
) -> None:
    key, value = map(bytearray, record)
    for at, byte in changes:
        part = key if in_key else value
        part[at % len(part)] = byte
    decoded = decode_state(bytes(key), bytes(value))
    if isinstance(decoded, StateRecord):
        states = ShareStates()
        states.apply(decoded, counts=True)
        for known in states.of(decoded.key.group).values():
            assert known.done >= 0
            assert all(batch.first <= batch.last for batch in known.batches)
    else:
        assert isinstance(decoded, Rejected | UnknownKey | UnknownVersion)


@settings(max_examples=examples(5_000), deadline=None)
@given(st.binary(max_size=80), st.binary(max_size=120))
def test_bytes_of_anybody_never_raise(key: bytes, value: bytes) -> None:
    assert isinstance(decode_state(key, value), StateRecord | Rejected | UnknownKey | UnknownVersion)
