"""Records of `__share_group_state`: those of a real broker, any bytes, and Kafka's own classes of all releases.

`data/broker_4.3.1.jsonl` is the topic of a broker 4.3.1 (29 November 2026): a group g with one member and a topic of
two partitions. In partition 0 it accepted offsets 0, 1, 5 and 6 and later 7, released 2 once, rejected 3, and released
4 until it was given up. In partition 1 it accepted 0 to 4, and stalled with 5 until its lock ran out.
`kafka-share-groups --describe` then said start offset 7 and lag 0, and start offset 5 and lag 1.
"""

from __future__ import annotations

import json
import random
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.offsets_log import DecodedRecord, Rejected, UnknownKey, UnknownVersion, decode_record
from streaming.offsets_log.codec.interpreter import key_layout, value_layout
from streaming.share_state import STATE_TYPES, PartitionDeliveries, ShareStates, StateBatch, StateRecord, decode_state
from tests.examples import examples
from tests.offsets_log.schema_fields import fields_of, only_tags_of
from tests.oracle.java_runner import JavaRunner
from tests.oracle.record_releases import NEWEST, SHARE_RELEASES, random_share_records, share_layouts

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


_KEYS = {
    kind: bytes((0, number)) + b"\0\1g" + bytes(range(16)) + (7).to_bytes(4, "big")
    for kind, number in (("S", 0), ("U", 1))
}


@pytest.fixture(scope="module")
def coordinator() -> Iterator[JavaRunner]:
    with JavaRunner("ShareStateRunner.java", "broker") as runner:
        yield runner


def history(chance: random.Random) -> str:
    """A partition's records as a leader writes them, and many that none would write."""
    records = []
    start = chance.choice((-1, 0, 5))
    for at in range(chance.randint(1, 6)):
        kind = "U" if at and chance.random() < 0.8 else chance.choice("SSSU")
        batches = []
        for _ in range(chance.randint(0, 5)):
            first = chance.randint(max(start, 0), max(start, 0) + 12)
            last = first + chance.choice((0, 0, 1, 3, 9))
            batches.append(f"{first},{last},{chance.choice((0, 2, 4))},{chance.randint(1, 3)}")
        start = chance.choice((-1, start, start, start + chance.randint(0, 6)))
        if kind == "S" or not at:
            # Taken as it is; coordinators write there what their combiner made, without overlaps.
            batches = batches[:1]
        records.append(f"{kind}|{start}|{chance.randint(-1, 9)}|{'/'.join(batches)}")
    return ";".join(records)


def by_offset(batches: str) -> dict[int, tuple[int, int]]:
    """State and deliveries of each offset, from the runner's answer."""
    found = {}
    for first, last, state, deliveries in (map(int, batch.split(",")) for batch in batches.split("/") if batch):
        found.update(dict.fromkeys(range(first, last + 1), (state, deliveries)))
    return found


def of_ours(known: PartitionDeliveries) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for batch in known.batches:
        offsets = range(batch.first, batch.last + 1)
        assert found.keys().isdisjoint(offsets)
        found.update(dict.fromkeys(offsets, (batch.state, batch.deliveries)))
    return found


@pytest.mark.java
def test_every_history_ends_in_the_state_that_the_coordinator_has(coordinator: JavaRunner) -> None:
    chance = random.Random(932)
    histories = [history(chance) for _ in range(examples(1_500))]
    for line, answer in zip(histories, coordinator.ask(histories), strict=True):
        written, _, after = answer.partition(" ")
        states = ShareStates()
        for record, value in zip(line.split(";"), written.split(","), strict=True):
            decoded = decode_state(_KEYS[record[0]], bytes.fromhex(value))
            assert isinstance(decoded, StateRecord)
            states.apply(decoded, counts=True)
        [known] = states.of("g").values()
        start, complete, batches = after.split("|")
        # What is below the start of a snapshot stays in the class until the next record.
        theirs = {offset: said for offset, said in by_offset(batches).items() if offset >= int(start)}
        assert (line, known.start, of_ours(known)) == (line, int(start), theirs)
        done = sum(state in {2, 4} for state, _ in of_ours(known).values())
        assert known.done == (done if complete == "-1" else int(complete)), line
        assert known.batches == sorted(known.batches)
        assert all(
            (one.last + 1, one[2:]) != (other.first, other[2:])
            for one, other in zip(known.batches, known.batches[1:], strict=False)
        )


@pytest.mark.java
def test_a_value_that_the_class_writes_has_its_fields(coordinator: JavaRunner) -> None:
    [answer] = coordinator.ask(["S|3|2|4,6,0,2/8,8,4,5;U|-1|-1|9,9,2,1"])
    snapshot, update = (bytes.fromhex(value) for value in answer.split(" ")[0].split(","))
    first = decode_state(_KEYS["S"], snapshot)
    assert (first.snapshot, first.start, first.done) == (True, 3, 2)
    assert first.batches == (StateBatch(4, 6, 2, 0), StateBatch(8, 8, 5, 4))
    second = decode_state(_KEYS["U"], update)
    assert (second.snapshot, second.start, second.done, second.batches) == (False, -1, -1, (StateBatch(9, 9, 1, 2),))


@pytest.mark.java
def test_the_schema_files_say_what_the_classes_of_every_release_say() -> None:
    seen = set()
    for layout in share_layouts():
        release, key_type, version = layout["release"], layout["key_type"], layout["version"]
        schema = STATE_TYPES[key_type]
        seen.add((release, key_type))
        if layout["message"].endswith("Key"):
            assert layout["fields"] == fields_of(schema, schema.key, 0), layout
        else:
            ours = fields_of(schema, schema.value, version)
            assert layout["fields"] == (ours if release == NEWEST else only_tags_of(layout["fields"], ours)), layout
            assert schema.versions == (0, 0)
    assert seen == {(release, key_type) for release in SHARE_RELEASES for key_type in (0, 1)}


@pytest.mark.java
@pytest.mark.nightly
def test_random_records_of_every_release_are_printed_as_its_own_classes_print_them() -> None:
    compared: Counter[str] = Counter()
    for record in random_share_records(932, examples(10_000)):
        schema = STATE_TYPES[record["key_type"]]
        decoded = decode_record(STATE_TYPES, bytes.fromhex(record["hex_key"]), bytes.fromhex(record["hex_value"]))
        assert isinstance(decoded, DecodedRecord), record
        assert decoded.name == schema.name
        assert key_layout(schema).printed(decoded.key) == record["key"], record
        assert value_layout(schema, 0).printed(decoded.value) == record["value"], record
        compared[record["release"]] += 1
    assert compared.keys() == set(SHARE_RELEASES)
