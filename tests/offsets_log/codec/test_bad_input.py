"""Arbitrary contents of the log: nothing stops the codec, nothing is lost, and nothing invalid is decoded."""

from __future__ import annotations

import base64
import json
import re
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.offsets_log import (
    RECORD_TYPES,
    Compactor,
    Rejected,
    decode_assignment,
    decode_key,
    decode_line,
    decode_membership,
    decode_record_value,
    decode_subscription,
)
from tests.examples import ends, examples
from tests.offsets_log.compacting import columns, counted
from tests.offsets_log.mutated import mutated_records
from tests.offsets_log.one_by_one import Record, as_folded, fold_one_by_one
from tests.offsets_log.real_records import REAL
from tests.oracle.offsets_log_records import ask_java

SEED = 20_261_121


# `make test-all` takes ten times a hundred thousand, below.
def test_four_thousand_mutated_records_are_each_decoded_alike_both_ways_or_kept_as_unread() -> None:
    _decode_both_ways(SEED, 4_000)


@pytest.mark.soak
@pytest.mark.turn(2)
@pytest.mark.parametrize("seed", range(10))
def test_a_million_mutated_records_are_each_decoded_alike_both_ways_or_kept_as_unread(seed: int) -> None:
    _decode_both_ways(seed, 100_000)


def _decode_both_ways(seed: int, mutated: int) -> None:
    records = [
        Record(2 * i, 1_700_000_000_000 + 10_000 * i, key, value)
        for i, (key, value) in enumerate(mutated_records(REAL, mutated, seed))
    ]
    boundaries = list(range(1_000, 2 * mutated, 7_001))
    compactor = Compactor(0, 1, boundaries, lambda name: name != "g", lambda _: True)
    for record in records:
        compactor.add(*record)
    groups, unreadable = dict(compactor.groups()), compactor.unreadable()
    assert as_folded(groups, unreadable, boundaries, compactor.dropped) == fold_one_by_one(
        records, boundaries=boundaries, watches=lambda name: name != "g"
    )
    assert counted(groups, unreadable) + compactor.dropped == mutated
    at_once = Compactor(0, 1, boundaries, lambda name: name != "g", lambda _: True)
    at_once.add_columns(columns(records))
    found = dict(at_once.groups()), at_once.unreadable(), at_once.dropped
    assert found == (groups, unreadable, compactor.dropped)


@pytest.mark.nightly
@pytest.mark.java
def test_mutated_records_decode_only_as_kafkas_classes_decode_them() -> None:
    lines = [
        {"key": key.hex(), "value": None if value is None else value.hex()}
        for key, value in mutated_records(REAL, 20_000, SEED + 1)
        if key is not None
    ]
    answers = ask_java([{"do": "read", **line} for line in lines])
    ours = [decode_line(line) for line in lines]
    both = sum("error" not in answer and "error" not in our for answer, our in zip(answers, ours, strict=True))
    assert both > 1_000
    assert {our["key_type"] for our in ours if our.get("value") is not None} == set(RECORD_TYPES) - {18}
    different = [
        (line, answer, our) for line, answer, our in zip(lines, answers, ours, strict=True) if not _agree(answer, our)
    ]
    assert different == []


# Cases that we refuse and Java accepts. Java reads any negative length as null, though only -1 is written; replaces
# invalid UTF-8 with U+FFFD; reads a known tagged field whatever its size says; accepts negative partitions, and any
# byte except -1 or 0 for a struct that is present; drops the bits of a varint beyond 32.
_STRICTER = re.compile(
    r"claims -\d+ (bytes|elements)"
    r"|is not valid UTF-8"
    r"|tag \d+ (at|needs)|tag \d+: |size of tag \d+"
    r"|is neither null nor there"
    r"|is a varint of more than 32 bits"
    r"|negative partition|\d+ in \w+ of \w+ is below"
)

# Types that no class of 4.3.1 reads; we know their keys.
_GONE = ("Unknown record id 9", "Unknown record id 18")


# Tags that 4.3.1 skips, because they are new in 4.4.
STREAMS_GROUP = 17
_NEWER_TAGS = ("storedDescriptionTopologyEpoch", "failedDescriptionTopologyEpoch")


def _agree(java: dict[str, Any], ours: dict[str, Any]) -> bool:
    if "error" in ours:
        return "error" in java or _STRICTER.search(ours["error"]) is not None
    if "error" in java:
        return java["error"].endswith(_GONE)
    if ours["key_type"] == STREAMS_GROUP and ours["value"] is not None:
        for name in _NEWER_TAGS:
            ours["value"].pop(name, None)
    for javas, member in zip(_members(java), _members(ours), strict=True):
        for part, decode in (("subscription", decode_subscription), ("assignment", decode_assignment)):
            if isinstance(member[part], str) and isinstance(javas[part], dict):
                rejected = decode(base64.b64decode(member[part]))
                if not _STRICTER.search(rejected.reason):
                    return False
                member[part] = javas[part]
    return java == {name: part for name, part in ours.items() if name != "type"}


def _members(record: dict[str, Any]) -> list[dict[str, Any]]:
    return (record["value"] or {}).get("members", [])


@settings(max_examples=examples(500))
@given(st.binary(max_size=200))
def test_no_decoder_raises_on_any_bytes(data: bytes) -> None:
    decode_key(data)
    decode_membership(0, 0, data)
    for key_type in RECORD_TYPES:
        decode_record_value(key_type, data)
        decode_record_value(key_type, b"\x00\x00" + data)
    decode_subscription(data)
    decode_assignment(data)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=examples(300))
@given(st.dictionaries(st.sampled_from(["key", "value", "x"]), _json))
def test_a_line_of_any_json_object_gets_an_answer(line: dict[str, Any]) -> None:
    assert json.dumps(decode_line(line))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "value: value version needs 2 bytes at byte 0, but 0 are left"),
        ("ffff", "value: version -1 is negative"),
        ("0003" + "00" * 12 + "0005" + "6162", "value: metadata at byte 14 claims 5 bytes, but 2 are left"),
        ("0003" + "00" * 12 + "ffff" + "00" * 8, "value: metadata at byte 14 is null, which its schema does not allow"),
        ("0003" + "00" * 12 + "fffe" + "00" * 8, "value: metadata at byte 14 claims -2 bytes, but 8 are left"),
        (
            "0003" + "00" * 12 + "0001ff" + "00" * 8,
            "value: metadata at byte 14 is not valid UTF-8 (invalid start byte at its byte 0)",
        ),
        ("0003" + "00" * 12 + "0000" + "00" * 9, "value: 1 bytes follow the end of the value at byte 24"),
        ("0004" + "00" * 12 + "ffffffffff01", "value: metadata at byte 14 is a varint of more than 32 bits"),
        ("0004" + "00" * 12 + "ffffffff10", "value: metadata at byte 14 is a varint of more than 32 bits"),
        (
            "0004" + "00" * 12 + "01" + "00" * 8 + "0100" + "0f" + "00" * 15,
            "value: tag 0: topicId needs 16 bytes at byte 26, but 15 are left",
        ),
    ],
)
def test_a_reason_says_what_is_wrong_and_where(value: str, reason: str) -> None:
    assert decode_record_value(1, bytes.fromhex(value)) == Rejected(reason)


@pytest.mark.parametrize(("key", "value"), REAL[:: len(REAL) // 60], ids=lambda data: (data or b"")[:8].hex())
def test_no_record_decodes_with_its_end_cut_off_or_with_more_behind_it(key: bytes, value: bytes | None) -> None:
    key_type = int.from_bytes(key[:2], "big")
    if value is None:
        return
    for size in range(len(value)):
        assert isinstance(decode_record_value(key_type, value[:size]), Rejected)
    assert isinstance(decode_record_value(key_type, value + b"\x00"), Rejected)


@pytest.mark.parametrize(
    ("key_type", "value"),
    ends(
        [
            (5, "0000 00 00 01 01 a18d06" + "01" * 100_000),
            (21, "0000 b68402" + "010100" * 33_333),
            (23, "0000 00000000 02 01 01 01 01 01 01 a9c301" + "01010100" * 25_000),
            (7, "0000 02" + "00" * 16 + "a9c301" + "00000000" * 25_000),
            (3, "0000 00000000 ffffffff0f" + "0500" * 50_000),
            (8, "0000 00000000 00000000 00 ffffffff0f"),
        ]
    ),
)
def test_a_value_of_the_smallest_elements_takes_a_bounded_multiple_of_its_size(key_type: int, value: str) -> None:
    data = bytes.fromhex(value.replace(" ", ""))
    tracemalloc.start()
    try:
        decode_record_value(key_type, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * len(data) + 65_536
