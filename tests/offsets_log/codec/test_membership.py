"""Subscriptions and assignments: round trips of every version, and the known part of newer ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.offsets_log import (
    MemberAssignment,
    MemberSubscription,
    Rejected,
    decode_assignment,
    decode_membership,
    decode_subscription,
)
from streaming.offsets_log.codec import wire
from streaming.records import MembershipRecord
from tests.offsets_log.written import assignment, group_value, member, subscription

topics = st.text(max_size=20)
partitions = st.lists(st.tuples(topics, st.lists(st.integers(0, 2**31 - 1), max_size=5)), max_size=4)


@given(
    st.integers(0, 3),
    st.lists(topics, max_size=5),
    st.none() | st.binary(max_size=20),
    partitions,
    st.integers(-1, 2**31 - 1),
    st.none() | topics,
)
def test_subscriptions_come_back(
    version: int,
    names: list[str],
    user_data: bytes | None,
    owned: list[tuple[str, list[int]]],
    generation: int,
    rack: str | None,
) -> None:
    data = subscription(version, names, user_data=user_data, owned=owned, generation=generation, rack=rack)
    assert decode_subscription(data) == MemberSubscription(
        version=version,
        topics=tuple(names),
        user_data=user_data,
        owned=tuple((topic, tuple(ps)) for topic, ps in owned) if version >= 1 else (),
        generation=generation if version >= 2 else -1,
        rack=rack if version >= 3 else None,
    )


@given(st.integers(0, 32_767), partitions, st.none() | st.binary(max_size=20), st.binary(max_size=5))
def test_assignments_come_back_whatever_follows(
    version: int, assigned: list[tuple[str, list[int]]], user_data: bytes | None, more: bytes
) -> None:
    data = assignment(version, assigned, user_data) + more
    expected = tuple((topic, tuple(ps)) for topic, ps in assigned)
    assert decode_assignment(data) == MemberAssignment(version, expected, user_data)


def test_an_assignment_of_zero_bytes_is_an_empty_one() -> None:
    assert decode_assignment(b"") == MemberAssignment(None, (), None)


def test_a_newer_subscription_is_read_as_version_3() -> None:
    data = subscription(3, ["t"], generation=5, rack="r")
    decoded = decode_subscription(b"\x00\x09" + data[2:] + b"more")
    assert decoded == MemberSubscription(9, ("t",), None, (), 5, "r")


@given(
    st.integers(0, 3),
    st.integers(1, 32_767),
    st.lists(topics, max_size=3),
    st.none() | st.binary(max_size=9),
    partitions,
    st.integers(-1, 2**31 - 1),
    st.none() | topics,
)
def test_a_subscription_that_ends_where_a_lower_version_does_is_read_as_that_version(
    version: int,
    more: int,
    names: list[str],
    user_data: bytes | None,
    owned: list[tuple[str, list[int]]],
    generation: int,
    rack: str | None,
) -> None:
    data = subscription(version, names, user_data=user_data, owned=owned, generation=generation, rack=rack)
    claimed = min(version + more, 32_767)
    read = decode_subscription(claimed.to_bytes(2, "big") + data[2:])
    honest = decode_subscription(data)
    assert isinstance(honest, MemberSubscription)
    assert read == (honest if version < 3 else replace(honest, version=claimed))


def test_a_subscription_of_kafka_go_is_read_as_version_0() -> None:
    # As segmentio/kafka-go's `groupMetadata` writes it: version 1, a topic, no user data, and nothing behind that.
    assert decode_subscription(bytes.fromhex("00010000000100066f7264657273ffffffff")) == MemberSubscription(
        0, ("orders",), None, (), -1, None
    )


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_subscription_that_ends_within_a_field_is_refused(size: int) -> None:
    data = subscription(1, ["t"])
    assert isinstance(decode_subscription(data[:-size]), Rejected)
    assert isinstance(decode_subscription(b"\x00\x02" + data[2:] + bytes(size)), Rejected)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "subscription: version needs 2 bytes at byte 0, but 0 are left"),
        (b"\xff\xff\x00\x00\x00\x00", "subscription: version -1 is negative"),
        (
            subscription(1, [], owned=[("t", [-3])]),
            "subscription: -3 in partitions of ownedPartitions is below 0",
        ),
        (
            subscription(1, [])[:10] + (3).to_bytes(4, "big") + bytes(17),
            "subscription: ownedPartitions at byte 10 claims 3 elements, but 17 bytes are left",
        ),
    ],
)
def test_a_broken_subscription_says_what_is_wrong(data: bytes, reason: str) -> None:
    assert decode_subscription(data) == Rejected(reason)


def test_topics_without_a_name_and_without_partitions_take_six_bytes_each() -> None:
    many = [("", [])] * 10
    assert decode_assignment(assignment(0, many, None)) == MemberAssignment(0, (("", ()),) * 10, None)


@pytest.mark.parametrize(("topics", "reads"), [(2, True), (3, False)])
def test_a_record_with_more_elements_than_fit_is_refused_whichever_member_has_them(
    topics: int, reads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two members of 400 bytes, and topics of 100.
    monkeypatch.setattr(wire, "MOST_DECODED", 1_000)
    many = member(3, subscription=subscription(3, ["t"] * topics))
    for members in ([many, member(3)], [member(3), many]):
        found = decode_membership(1, 1, group_value(3, members, protocol_type="consumer"))
        assert isinstance(found, MembershipRecord if reads else Rejected)


def test_a_record_that_claims_too_many_tagged_fields_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_DECODED", 1_000)
    value = group_value(4, [], protocol_type="consumer")[:-1]
    # Tags that nobody knows, each without bytes.
    assert isinstance(decode_membership(1, 1, value + b"\x0a" + b"\x63\x00" * 10), MembershipRecord)
    found = decode_membership(1, 1, value + b"\x0b" + b"\x63\x00" * 11)
    assert isinstance(found, Rejected)
    assert "claims 11 elements" in found.reason


def test_members_of_a_protocol_type_that_nobody_knows_are_not_decoded() -> None:
    bytes_of = {"subscription": subscription(0, ["t"]), "assignment": assignment(0, [("t", [0])])}
    record = decode_membership(0, 0, group_value(3, [member(3, **bytes_of)], protocol_type="sr"))
    assert isinstance(record, MembershipRecord)
    (found,) = record.members
    assert (found.topics, found.assigned, found.undecodable) == (None, None, None)
