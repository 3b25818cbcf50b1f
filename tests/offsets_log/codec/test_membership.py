"""Subscriptions and assignments of consumers, and Connect's: round trips, newer versions, any bytes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.connect import CONNECTOR
from streaming.offsets_log import (
    MemberAssignment,
    MemberSubscription,
    Rejected,
    decode_assignment,
    decode_membership,
    decode_subscription,
)
from streaming.offsets_log.codec import wire
from streaming.offsets_log.codec.connect import (
    WorkerAssignment,
    WorkerState,
    decode_worker_assignment,
    decode_worker_state,
    unique_units,
)
from streaming.records import Member, MembershipRecord, worker_of
from tests.examples import examples
from tests.offsets_log.connect_bytes import worker_assignment, worker_state
from tests.offsets_log.written import assignment, group_value, member, subscription
from tests.oracle.java_connect import Connect, WrittenAssignment

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
    assert "claims 11 elements" in found.reason


def test_members_of_a_protocol_type_that_nobody_knows_are_not_decoded() -> None:
    bytes_of = {"subscription": subscription(0, ["t"]), "assignment": assignment(0, [("t", [0])])}
    record = decode_membership(0, 0, group_value(3, [member(3, **bytes_of)], protocol_type="sr"))
    (found,) = record.members
    assert (found.topics, found.assigned, found.undecodable) == (None, None, None)


LEADER, URL = "connect-1", "http://10.0.0.1:8083/"


def worker(state: bytes, assigned: bytes) -> Member:
    bytes_of = {"subscription": state, "assignment": assigned}
    value = group_value(3, [member(3, **bytes_of)], protocol_type="connect", protocol="sessioned")
    record = decode_membership(0, 0, value)
    return record.members[0]


def test_a_worker_of_the_incremental_protocol_goes_on_with_what_it_ran_and_was_not_told_to_stop() -> None:
    ran = worker_assignment(2, LEADER, URL, 5, [("files", [-1, 0, 1]), ("db", [0])])
    told = worker_assignment(2, LEADER, URL, 7, [("db", [1])], revoked=[("files", [0])], delay=300_000)
    found = worker(worker_state(2, URL, 6, ran), told)
    assert found.owned == (("files", (-1, 0, 1)), ("db", (0,)))
    assert found.assigned == (("files", (-1, 1)), ("db", (0, 1)))
    own = worker_of(found)
    assert (own.url, own.config_offset, own.last_offset, own.assigned_offset) == (URL, 6, 5, 7)
    assert (own.started, own.revoked, own.delay, own.error) == ((("db", (1,)),), (("files", (0,)),), 300_000, 0)


def test_a_worker_of_the_eager_protocol_runs_what_it_is_assigned() -> None:
    found = worker(worker_state(0, URL, 6), worker_assignment(0, LEADER, URL, 7, [("files", [-1, 0])]))
    assert (found.owned, found.assigned) == ((), (("files", (-1, 0)),))


def test_an_assignment_without_its_last_fields_has_their_defaults() -> None:
    whole = worker_assignment(1, LEADER, URL, 7, [], revoked=[], delay=0)
    expected = WorkerAssignment(1, 0, LEADER, URL, 7, ())
    assert [decode_worker_assignment(whole[:-cut]) for cut in (4, 8, 12)] == [expected] * 3
    assert decode_worker_state(worker_state(1, URL, 7)[:-4]) == WorkerState(1, URL, 7, None)


def test_what_a_worker_may_not_have_makes_it_undecodable_and_not_the_record() -> None:
    for state, told, reason in (
        (worker_state(1, URL, 7), b"", "assignment: version needs 2 bytes"),
        (worker_state(1, URL, 7), worker_assignment(1, LEADER, URL, 7, [("files", [-2])]), "-2 in tasks of assignment"),
        (worker_state(1, URL, 7, b""), worker_assignment(1, LEADER, URL, 7, []), "worker state: version needs 2 bytes"),
    ):
        found = worker(state, told)
        assert (found.topics, found.assigned) == (None, None)
        assert reason in (found.undecodable or "")


def test_a_record_that_claims_more_units_than_any_coordinator_writes_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = worker_assignment(1, LEADER, URL, 7, [(f"c{number}", [0]) for number in range(100)])
    monkeypatch.setattr(wire, "MOST_DECODED", 100 * wire.ELEMENT_BYTES)
    members = [member(3, subscription=worker_state(1, URL, 7), assignment=told)]
    assert isinstance(decode_membership(0, 0, group_value(3, members, protocol_type="connect")), Rejected)


@settings(max_examples=examples(500))
@given(st.binary(max_size=120), st.integers(0, 200), st.integers(0, 255))
def test_no_bytes_make_the_decoder_raise(data: bytes, at: int, byte: int) -> None:
    decode_worker_state(data)
    decode_worker_assignment(data)
    whole = bytearray(worker_state(2, URL, 6, worker_assignment(2, LEADER, URL, 5, [("files", [-1, 0])])))
    whole[at % len(whole)] = byte
    found = decode_worker_state(bytes(whole))
    assert isinstance(found, WorkerState | Rejected)


@pytest.mark.java
def test_what_connects_own_classes_write_is_read_as_it_was_meant() -> None:
    random = Random(415)
    lasts = [None, *(_written(random, 1) for _ in range(200))]
    states = [(version, f"http://ü{at}/", at - 1, last) for at, last in enumerate(lasts) for version in (0, 1, 2)]
    made = [_written(random, version) for _ in range(200) for version in (0, 1, 2)]
    with Connect("4.3.1") as java:
        bytes_of_states, bytes_of_assignments = java.worker_states(states), java.assignments(made)
    for (version, url, offset, last), data in zip(states, bytes_of_states, strict=True):
        found = decode_worker_state(data + b"more")
        assert (found.version, found.url, found.config_offset) == (version, url, offset)
        # Java gives the last assignment the version of the state that it is in.
        expected = None if last is None or not version else _plain(last, version)
        assert (None if found.allocation is None else _plain(found.allocation, version)) == expected
    for dealt, data in zip(made, bytes_of_assignments, strict=True):
        read = decode_worker_assignment(data + b"more")
        assert _plain(read, read.version) == _plain(dealt, dealt.version)


def _written(random: Random, version: int) -> WrittenAssignment:
    units = [(f"c{name}é", number) for name in range(3) for number in range(CONNECTOR, 4)]
    given = random.sample(units, random.randrange(len(units)))
    revoked = tuple(random.sample(units, random.randrange(5))) if version else ()
    delay = random.choice((0, 300_000)) if version else 0
    offset = random.randrange(-1, 2**40)
    return WrittenAssignment(version, random.randrange(2), LEADER, URL, offset, tuple(given), revoked, delay)


def _plain(of: WrittenAssignment | WorkerAssignment, version: int) -> tuple[object, ...]:
    """An assignment with its tasks in their order and its connectors in any: Java walks those in that of a HashMap."""
    units, revoked = (
        unique_units([(name, (number,)) for name, number in part] if isinstance(of, WrittenAssignment) else part)
        for part in (of.units, of.revoked)
    )
    tasks = [{name: [n for n in numbers if n >= 0] for name, numbers in part} for part in (units, revoked)]
    connectors = [{name for name, numbers in part if CONNECTOR in numbers} for part in (units, revoked)]
    return version, of.error, of.leader, of.leader_url, of.config_offset, tasks, connectors, of.delay
