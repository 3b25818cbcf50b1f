"""The partition of a group's records: as Java's class says, and for Redpanda the reference implementation of XXH64."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest

from streaming.offsets_log import partition_for
from streaming.offsets_log.codec import placement
from streaming.offsets_log.codec.placement import java_hash, jump_hash, xxh64
from tests.oracle.offsets_log_records import ask_java


def test_the_hash_of_a_long_name_wraps_like_that_of_a_short_one() -> None:
    def by_definition(text: str) -> int:
        value = 0
        for unit in struct.unpack(f"<{len(text.encode('utf-16-le')) // 2}H", text.encode("utf-16-le")):
            value = (31 * value + unit) % 2**32
        return value - 2**32 if value >= 2**31 else value

    for size in (1, 31, 32, 33, 63, 64, 65, 66, 1_000, 32_767):
        name = ("group-\uffff🦊" * size)[:size]
        assert java_hash(name) == by_definition(name)


def test_only_names_of_everyday_length_are_remembered() -> None:
    placement._kept.cache_clear()
    for n in range(10):
        assert partition_for(f"{n}".ljust(257, "x"), 50) == partition_for(f"{n}".ljust(257, "x"), 50)
    assert placement._kept.cache_info().currsize == 0
    assert partition_for("consumers".ljust(256), 50) == partition_for("consumers".ljust(256), 50)
    assert placement._kept.cache_info().currsize == 1


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


def test_more_buckets_move_a_key_only_into_a_new_one() -> None:
    for key in (0, 1, 2**64 - 1, *(xxh64(bytes([n])) for n in range(50))):
        places = [jump_hash(key, buckets) for buckets in range(1, 200)]
        assert places[0] == 0
        assert all(new in {old, buckets} for buckets, (old, new) in enumerate(pairwise(places), start=1))


@pytest.mark.parametrize(
    ("group", "of_16", "of_50"), [("", 7, 40), ("g", 0, 31), ("orders-app", 10, 10), ("göt-🦊", 10, 43)]
)
def test_redpanda_puts_a_group_where_its_own_hash_says(group: str, of_16: int, of_50: int) -> None:
    # By the reference implementation of XXH64 and Redpanda's `jump_consistent_hash`, compiled.
    assert [partition_for(group, count, "redpanda.5a1c") for count in (16, 50)] == [of_16, of_50]
    assert partition_for(group, 50, "5a1c") == partition_for(group, 50)
