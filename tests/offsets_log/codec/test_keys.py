"""Keys, and the reader below them: every type gives its group, and no length or count misleads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.offsets_log import GroupKey, OffsetKey, OtherKey, Rejected, UnknownKey, decode_key
from streaming.offsets_log.codec.offset_commit import CommitColumns, decode_offset_commits
from streaming.offsets_log.codec.record_types import offset_commit_key, offset_commit_parts
from streaming.offsets_log.codec.wire import MalformedError, Reader
from tests.offsets_log.compacting import columns, numbered
from tests.offsets_log.written import compact, group_key, offset_key, offset_value, other_key

names = st.text(max_size=40)


@given(st.sampled_from([0, 1]), names, names, st.integers(0, 2**31 - 1))
def test_keys_of_offset_commits_come_back(key_type: int, group: str, topic: str, partition: int) -> None:
    data = offset_key(group, topic, partition, key_type)
    key = OffsetKey(key_type, group, topic, partition)
    assert decode_key(data) == key
    assert offset_commit_key(key) == b"\x00\x01" + data[2:]


@given(names, names)
def test_keys_of_groups_come_back(group: str, member: str) -> None:
    assert decode_key(group_key(group)) == GroupKey(group)
    assert decode_key(other_key(3, group)) == OtherKey(3, group, None)
    assert decode_key(other_key(8, group, member)) == OtherKey(8, group, member)
    assert decode_key(other_key(16, group, member)) == OtherKey(16, group, member)


@given(st.binary(max_size=30), st.integers(0, 30), st.binary(max_size=3))
def test_the_quick_way_takes_a_key_only_as_the_plain_one_would(junk: bytes, cut: int, more: bytes) -> None:
    for data in (b"\x00\x01" + junk, offset_key("g", "tü", 3)[:cut] + more, offset_key("g", "t", 3) + junk):
        parts = offset_commit_parts(data)
        legacy = decode_key(b"\x00\x00" + data[2:])
        if parts is None:
            assert isinstance(legacy, Rejected) or data[:2] != b"\x00\x01"
        else:
            assert legacy == OffsetKey(0, *parts)


def test_names_of_up_to_32767_bytes_are_taken_in_one_step_and_longer_ones_by_no_way() -> None:
    # An int16 in front of each text.
    for size in (300, 32_767):
        for group, topic in (("g" * size, "t"), ("g", "t" * size), ("g" * size, "t" * size)):
            assert offset_commit_parts(offset_key(group, topic, 70_000)) == (group, topic, 70_000)
    long = 32_768
    for before, after in ((b"", b"\x00\x01t"), (b"\x00\x01g", b"")):
        key = b"\x00\x01" + before + long.to_bytes(2, "big") + b"n" * long + after + bytes(4)
        assert offset_commit_parts(key) is None
        assert isinstance(decode_key(key), Rejected)


@pytest.mark.parametrize("key_type", [24, 25, 32_767, -1, -32_768])
def test_a_type_from_the_future_is_unknown_and_not_broken(key_type: int) -> None:
    assert decode_key(key_type.to_bytes(2, "big", signed=True) + b"whatever") == UnknownKey(key_type)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "key is null; every record of the offsets log has a key"),
        (b"", "key: key type needs 2 bytes at byte 0, but 0 are left"),
        (b"\x00\x02\x00\x05ab", "key: group at byte 2 claims 5 bytes, but 2 are left"),
        (group_key("g") + b"\x00", "key: 1 bytes follow the end of the key at byte 5"),
        (offset_key("g", "t", -1), "key: partition is -1, and no topic has a negative partition"),
        (b"\x00\x01\xff\xff\x00\x01t\x00\x00\x00\x00", "key: group at byte 2 is null, which its schema does not allow"),
    ],
)
def test_a_broken_key_says_what_is_wrong(data: bytes | None, reason: str) -> None:
    assert decode_key(data) == Rejected(reason)


TOPIC_ID = bytes(range(16))


def decoded(values: list[bytes]) -> CommitColumns:
    records = columns(numbered([(None, value) for value in values]))
    return decode_offset_commits(records.data, records.value_start, records.value_size)


@pytest.mark.parametrize("metadata", ["", "m", "of a word's length or of several"])
@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_values_of_every_version_are_decoded_together(version: int, metadata: str) -> None:
    values = [offset_value(version, offset, leader_epoch=7, metadata=metadata) for offset in (5, 2**40)]
    found = decoded(values)
    assert found.decoded.tolist() == [True, True]
    assert found.offset.tolist() == [5, 2**40]
    assert found.leader_epoch.tolist() == [7 if version >= 3 else -1] * 2
    assert bytes(found.topic_id[0]) == bytes(16)


def test_metadata_whose_length_needs_a_second_byte_is_left_to_the_plain_decoder() -> None:
    # Version 4 writes the length and one more as a varint: 127 is the first length that needs two bytes. Without its
    # last byte such a value is as long as one with a length of a single byte would be.
    values = [offset_value(4, 5, metadata="m" * size) for size in (125, 126, 127, 128, 200)]
    values.append(values[2][:-1])
    assert decoded(values).decoded.tolist() == [True, True, False, False, False, False]


@pytest.mark.parametrize(
    "value",
    [
        offset_value(3, 5, metadata="é"),  # whether it is UTF-8 is looked at elsewhere
        offset_value(3, 5) + b"\x00",
        offset_value(3, 5)[:-1],
        offset_value(5, 5),
        b"",
    ],
)
def test_everything_else_is_left_to_the_plain_decoder(value: bytes) -> None:
    assert decoded([offset_value(3, 5), value]).decoded.tolist() == [True, False]


def test_a_string_of_32768_bytes_is_refused_and_one_of_32767_is_not() -> None:
    assert len(Reader(compact("x" * 32_767), flexible=True).string("x")) == 32_767
    with pytest.raises(MalformedError, match="more than any string of Kafka"):
        Reader(compact("x" * 32_768), flexible=True).string("x")
