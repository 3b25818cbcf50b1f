"""Every shape of record, as written and printed by Kafka's own classes.

`data/golden.jsonl` was written by `tests/oracle/offsets_log_records.py` with the record classes of Kafka 4.3.1
(kafka-group-coordinator, kafka-clients); regenerate it there, never edit it by hand.
"""

from __future__ import annotations

from typing import Any

import pytest

from streaming.offsets_log import decode_line, decode_membership
from streaming.records import MembershipRecord
from tests.offsets_log.real_records import GOLDEN
from tests.oracle.offsets_log_records import golden


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: row["what"])
def test_a_record_decodes_to_what_kafkas_classes_print(row: dict[str, Any]) -> None:
    decoded = decode_line({"key": row["key"], "value": row["value"]})
    assert decoded.pop("type") == row["what"].split(" ")[0]
    assert decoded == row["java"]


def test_the_golden_records_hold_every_version_and_type() -> None:
    seen = {(row["java"]["key_type"], row["java"]["value_version"]) for row in GOLDEN}
    assert {version for key_type, version in seen if key_type == 1} == {None, 0, 1, 2, 3, 4}
    assert {version for key_type, version in seen if key_type == 2} == {None, 0, 1, 2, 3, 4}
    # 9 and 18 have no class in 4.3.1: 9 was early access only, 18 was never released.
    assert {key_type for key_type, _ in seen} == {*range(24)} - {9, 18}


def golden_membership(what: str) -> MembershipRecord:
    (value,) = [row["value"] for row in GOLDEN if row["what"] == what]
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


def test_a_newer_subscription_is_read_as_the_newest_known_and_zero_bytes_assign_nothing() -> None:
    (member,) = golden_membership("GroupMetadata v3 newer subscription, zero-length assignment").members
    assert (member.subscription_version, member.generation, member.rack) == (9, 12, "rack-1")
    assert member.assigned == ()
    assert member.undecodable is None


def test_undecodable_parts_leave_the_record_standing_with_the_reason() -> None:
    first, second = golden_membership("GroupMetadata v3 undecodable parts").members
    assert first.topics is None
    assert first.assigned is None
    assert first.undecodable == (
        "subscription: topics needs 4 bytes at byte 2, but 1 are left; "
        "assignment: version needs 2 bytes at byte 0, but 1 are left"
    )
    assert second.undecodable is not None


def test_bytes_of_another_protocol_are_not_read_as_topics_and_partitions() -> None:
    (member,) = golden_membership("GroupMetadata v3 not topic partitions").members
    assert (member.topics, member.assigned) == (None, None)
    assert (member.undecodable or "").startswith("worker state: configOffset needs 8 bytes")


@pytest.mark.nightly
@pytest.mark.java
def test_the_golden_file_is_what_java_writes_today() -> None:
    assert golden() == GOLDEN
