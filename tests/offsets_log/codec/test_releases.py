"""Every record type of every release and of Redpanda, against Kafka's own classes; the partition of a group.

`data/golden.jsonl` was written by `tests/oracle/offsets_log_records.py` with the record classes of Kafka 4.3.1
(kafka-group-coordinator, kafka-clients); regenerate it there, never edit it by hand.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable
from typing import Any

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
    partition_for,
)
from streaming.offsets_log.codec.placement import java_hash, xxh64
from streaming.offsets_log.codec.record_types import RecordValue
from streaming.records import MembershipRecord
from tests.offsets_log.mutated import mutated_records
from tests.offsets_log.real_records import GOLDEN as OF_NEWEST
from tests.offsets_log.real_records import REAL
from tests.offsets_log.real_records import RELEASES as GOLDEN
from tests.offsets_log.schema_fields import fields_of, only_tags_of
from tests.offsets_log.written import assignment, group_key, group_value, member, offset_key, other_key, subscription
from tests.oracle import record_releases
from tests.oracle.offsets_log_records import ask_java, golden
from tests.oracle.record_releases import EARLY_ACCESS, NEWEST, RELEASES, layouts, random_records

# The golden ones are among the first 6,000.
RECORDS = 6_000
RECORDS_OF_A_LONG_RUN = 20_000

# Types that no release's classes can write: 18 was never released.
UNRELEASED = {18}


@pytest.fixture(scope="module")
def written() -> list[dict[str, Any]]:
    return list(random_records(record_releases.SEED, RECORDS))


def printed(record: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": RECORD_TYPES[record["key_type"]].name,
        "key_type": record["key_type"],
        "value_version": record["value_version"],
        "key": record["key"],
        "value": record["value"],
    }


@pytest.mark.parametrize("release", RELEASES)
def test_golden_records_of_a_release_are_printed_as_its_classes_printed_them(release: str) -> None:
    records = [record for record in GOLDEN if record["release"] == release]
    assert records
    for record in records:
        assert decode_line({"key": record["hex_key"], "value": record["hex_value"]}) == printed(record)


def test_the_golden_records_hold_every_type_and_version_of_the_schemas() -> None:
    held = {(record["key_type"], record["value_version"]) for record in GOLDEN}
    assert held == {
        (key_type, version)
        for key_type, schema in RECORD_TYPES.items()
        if schema.versions is not None
        for version in range(schema.versions[0], schema.versions[1] + 1)
    }


@pytest.mark.nightly
@pytest.mark.java
def test_the_golden_records_are_what_the_classes_write_today(written: list[dict[str, Any]]) -> None:
    assert record_releases.golden(written) == GOLDEN


@pytest.mark.java
def test_random_records_of_every_release_are_printed_as_its_own_classes_print_them(
    written: list[dict[str, Any]],
) -> None:
    compared = compare(written)
    assert {key_type for _, key_type in compared} == set(RECORD_TYPES) - UNRELEASED
    assert {release for release, _ in compared} == set(RELEASES)


@pytest.mark.java
@pytest.mark.soak
@pytest.mark.turn(2)
@pytest.mark.parametrize("seed", range(50))
def test_a_million_random_records_are_printed_as_the_classes_of_their_release_print_them(seed: int) -> None:
    assert sum(compare(random_records(seed, RECORDS_OF_A_LONG_RUN)).values()) > RECORDS_OF_A_LONG_RUN * 0.9


def compare(records: Iterable[dict[str, Any]]) -> Counter[tuple[str, int]]:
    compared: Counter[tuple[str, int]] = Counter()
    for record in records:
        name = (record["release"], record["key_type"])
        if name not in EARLY_ACCESS:
            assert decode_line({"key": record["hex_key"], "value": record["hex_value"]}) == printed(record), record
            compared[name] += 1
    return compared


@pytest.mark.java
def test_layouts_of_early_access_are_refused_but_for_the_rare_one_that_reads_by_accident(
    written: list[dict[str, Any]],
) -> None:
    # The bytes do not distinguish the layouts. Real records are not ambiguous: their error codes are 0.
    early = [record for record in written if (record["release"], record["key_type"]) in EARLY_ACCESS]
    assert {(record["release"], record["key_type"]) for record in early} == EARLY_ACCESS
    answers = [decode_line({"key": record["hex_key"], "value": record["hex_value"]}) for record in early]
    read = [answer for answer in answers if "error" not in answer]
    assert len(read) <= len(early) / 200
    assert all(answer["error"].startswith("value: ") for answer in answers if "error" in answer)


@pytest.mark.java
def test_the_schema_files_say_what_the_classes_of_every_release_say() -> None:
    seen: dict[tuple[str, int], set[int]] = {}
    for layout in layouts():
        release, key_type, version = layout["release"], layout["key_type"], layout["version"]
        schema = RECORD_TYPES[key_type]
        if layout["message"].endswith("Key"):
            assert layout["fields"] == fields_of(schema, schema.key, 0), layout
            continue
        seen.setdefault((release, key_type), set()).add(version)
        if (release, key_type) in EARLY_ACCESS:
            assert layout["fields"] != fields_of(schema, schema.value, version)
            continue
        ours = fields_of(schema, schema.value, version)
        # Earlier releases may lack tagged fields; the newest may not.
        assert layout["fields"] == (ours if release == NEWEST else only_tags_of(layout["fields"], ours)), layout
    for (release, key_type), versions in seen.items():
        first, last = RECORD_TYPES[key_type].versions or (0, -1)
        if release == NEWEST:
            assert versions == set(range(first, last + 1))
    assert {key_type for _, key_type in seen} == set(RECORD_TYPES) - UNRELEASED


@pytest.mark.parametrize("row", OF_NEWEST, ids=lambda row: row["what"])
def test_a_record_decodes_to_what_kafkas_classes_print(row: dict[str, Any]) -> None:
    decoded = decode_line({"key": row["key"], "value": row["value"]})
    assert decoded.pop("type") == row["what"].split(" ")[0]
    assert decoded == row["java"]


def test_the_golden_records_hold_every_version_and_type() -> None:
    seen = {(row["java"]["key_type"], row["java"]["value_version"]) for row in OF_NEWEST}
    assert {version for key_type, version in seen if key_type == 1} == {None, 0, 1, 2, 3, 4}
    assert {version for key_type, version in seen if key_type == 2} == {None, 0, 1, 2, 3, 4}
    # 9 and 18 have no class in 4.3.1: 9 was early access only, 18 was never released.
    assert {key_type for key_type, _ in seen} == {*range(24)} - {9, 18}


def golden_membership(what: str) -> MembershipRecord:
    (value,) = [row["value"] for row in OF_NEWEST if row["what"] == what]
    record = decode_membership(7, 1_000, bytes.fromhex(value))
    assert isinstance(record, MembershipRecord)
    return record


def test_members_keep_the_order_and_the_subscriptions_of_the_record() -> None:
    record = golden_membership("GroupMetadata v3 subscription and assignment of every version")
    assert [member.member_id for member in record.members] == ["m-0", "m-1", "m-2", "m-3"]
    assert [member.subscription_version for member in record.members] == [0, 1, 2, 3]
    assert {member.topics for member in record.members} == {("b", "a", "ü")}
    assert [member.owned for member in record.members] == [(), *[(("b", (3, 1)), ("a", ()))] * 3]
    assert [member.generation for member in record.members] == [None, None, None, 12]
    assert [member.rack for member in record.members] == [None, None, None, "rack-1"]
    assert {member.assigned for member in record.members} == {(("b", (3, 1)), ("a", ()))}
    assert [member.group_instance_id for member in record.members] == [None, "host-1", None, "host-3"]
    assert {member.undecodable for member in record.members} == {None}


def test_undecodable_parts_leave_the_record_standing_with_the_reason() -> None:
    first, second = golden_membership("GroupMetadata v3 undecodable parts").members
    assert first.topics is None
    assert first.assigned is None
    assert first.undecodable == (
        "subscription: topics needs 4 bytes at byte 2, but 1 are left; "
        "assignment: version needs 2 bytes at byte 0, but 1 are left"
    )
    assert second.undecodable is not None


@pytest.mark.nightly
@pytest.mark.java
def test_the_golden_file_is_what_java_writes_today() -> None:
    assert golden() == OF_NEWEST


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
    assert theirs.fields == ours.fields
    # Without members there is no difference.
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


def test_the_hash_of_a_long_name_wraps_like_that_of_a_short_one() -> None:
    def by_definition(text: str) -> int:
        value = 0
        for unit in struct.unpack(f"<{len(text.encode('utf-16-le')) // 2}H", text.encode("utf-16-le")):
            value = (31 * value + unit) % 2**32
        return value - 2**32 if value >= 2**31 else value

    for size in (1, 31, 32, 33, 63, 64, 65, 66, 1_000, 32_767):
        name = ("group-\uffff🦊" * size)[:size]
        assert java_hash(name) == by_definition(name)


@pytest.mark.nightly
@pytest.mark.java
def test_java_puts_every_group_on_the_same_partition() -> None:
    names = ["", "polygenelubricants", "göt-🦊", "x" * 1_000, *(f"group-{n}" for n in range(500))]
    answers = ask_java([{"do": "partition", "group": name} for name in names])
    assert [(java_hash(name), partition_for(name, 50)) for name in names] == [
        (answer["hash"], answer["partition"]) for answer in answers
    ]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        # By the reference implementation (python-xxhash 3); the sizes reach every branch.
        (b"", 0xEF46_DB37_51D8_E999),
        (b"g", 0x03F4_1204_E12E_26AE),
        (b"orders-app", 0x0F94_9C5C_3F3C_2D49),
        ("göt-🦊".encode(), 0x6304_75BB_A386_9C77),
        (b"x" * 100, 0x92F0_DE5A_88A3_C094),
    ],
)
def test_the_hash_of_redpanda_is_xxh64(data: bytes, expected: int) -> None:
    assert xxh64(data) == expected


@pytest.mark.parametrize(
    ("group", "of_16", "of_50"), [("", 7, 40), ("g", 0, 31), ("orders-app", 10, 10), ("göt-🦊", 10, 43)]
)
def test_redpanda_puts_a_group_where_its_own_hash_says(group: str, of_16: int, of_50: int) -> None:
    # By the reference implementation of XXH64 and Redpanda's `jump_consistent_hash`, compiled.
    assert [partition_for(group, count, "redpanda.5a1c") for count in (16, 50)] == [of_16, of_50]
    assert partition_for(group, 50, "5a1c") == partition_for(group, 50)
