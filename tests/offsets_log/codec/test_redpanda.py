"""Redpanda's layouts beside Kafka's: each is read as what it is, and none as the other."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.offsets_log import (
    RECORD_TYPES,
    GroupKey,
    OffsetKey,
    Rejected,
    UnknownKey,
    decode_key,
    decode_line,
    decode_membership,
    decode_record_value,
)
from streaming.offsets_log.codec.record_types import RecordValue
from tests.offsets_log.mutated import mutated_records
from tests.offsets_log.real_records import REAL
from tests.offsets_log.written import assignment, group_key, group_value, member, offset_key, other_key, subscription

GROUP_METADATA = 2

# What Redpanda writes before each member.
VERSION = b"\x00\x03"

texts = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=12)
names = texts | texts.map(lambda client: f"{client}-0c7d1b5e-b9a3-4b0e-8e0b-5f6c8f2f9d3a")
members = st.builds(
    lambda name, instance, client, topics, user_data, partitions: member(
        3,
        member_id=name,
        group_instance_id=instance,
        client_id=client,
        subscription=subscription(3, topics, user_data=user_data),
        assignment=assignment(0, [("t", partitions)]),
    ),
    names,
    st.none() | texts,
    texts,
    st.lists(texts, max_size=3),
    st.none() | st.binary(max_size=20),
    st.lists(st.integers(0, 1000), max_size=5),
)


@given(st.lists(members, max_size=8))
def test_a_group_of_redpanda_is_read_as_the_same_group_of_kafka(written: list[bytes]) -> None:
    kafkas, redpandas = group_value(3, written), group_value(3, [VERSION + one for one in written])
    ours, theirs = (decode_record_value(GROUP_METADATA, value) for value in (kafkas, redpandas))
    assert isinstance(ours, RecordValue)
    assert isinstance(theirs, RecordValue)
    assert theirs.fields == ours.fields
    # (Without members there is no difference.)
    assert (ours.dialect, theirs.dialect) == ("kafka", "redpanda" if written else "kafka")
    assert decode_membership(5, 6, redpandas) == decode_membership(5, 6, kafkas)


def test_no_record_of_any_release_of_kafka_is_read_as_redpandas_nor_a_damaged_one() -> None:
    damaged = [pair for pair in mutated_records(REAL, 20_000, seed=50) if pair[0] is not None]
    for key, value in [*REAL, *damaged]:
        key_type = int.from_bytes((key or b"")[:2], "big", signed=True)
        if value is not None and key_type in RECORD_TYPES:
            found = decode_record_value(key_type, value)
            assert not isinstance(found, RecordValue) or found.dialect == "kafka"


@pytest.mark.parametrize(
    "value",
    [
        group_value(3, [VERSION + member(3)]) + b"\x00",
        group_value(3, [VERSION + member(3)])[:-1],
        group_value(3, [VERSION + member(3, member_id="m-1"), member(3, member_id="m-2")]),
        group_value(3, [b"\x00\x02" + member(3, member_id="m-1")]),
        group_value(2, [b"\x00\x02" + member(2)]),
    ],
    ids=["more behind it", "cut off", "one member without", "another version", "another value's version"],
)
def test_what_does_not_follow_redpandas_layout_to_the_last_byte_is_refused(value: bytes) -> None:
    assert isinstance(decode_record_value(GROUP_METADATA, value), Rejected)


@given(st.text(max_size=300), st.text(max_size=300), st.integers(0, 2**31 - 1))
def test_a_key_that_redpanda_has_wrapped_is_that_key(group: str, topic: str, partition: int) -> None:
    for key in (group_key(group), offset_key(group, topic, partition), offset_key(group, topic, partition, 0)):
        wrapped = struct.pack("<i", len(key)) + key
        assert decode_key(wrapped) == decode_key(key)
        assert isinstance(decode_key(key), GroupKey | OffsetKey)


def test_what_is_wrapped_and_no_key_of_a_group_or_commit_stays_unknown() -> None:
    for key in (other_key(5, "g", "m"), b"\x00\x63", b"", b"\x00\x02\x00\x05g"):
        assert isinstance(decode_key(struct.pack("<i", len(key)) + key), UnknownKey | Rejected)
    assert isinstance(decode_key(struct.pack("<i", 9) + group_key("g")), UnknownKey)


def test_a_decoded_line_says_that_a_record_is_redpandas() -> None:
    value = group_value(3, [VERSION + member(3, member_id="m-1")])
    read = decode_line({"key": group_key("g").hex(), "value": value.hex()})
    assert (read["dialect"], read["value"]["members"][0]["memberId"]) == ("redpanda", "m-1")
    wrapped = struct.pack("<i", 5) + group_key("g")
    assert decode_line({"key": wrapped.hex(), "value": None})["dialect"] == "redpanda"
    assert "dialect" not in decode_line({"key": group_key("g").hex(), "value": group_value(3, [member(3)]).hex()})
