"""The partition of the offsets log that holds a group: Java's arithmetic, exactly."""

from __future__ import annotations

import pytest

from streaming.offsets_log import partition_for
from streaming.offsets_log.codec.partitioner import java_hash
from tests.oracle.offsets_log_records import ask_java


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("ab", 97 * 31 + 98),
        ("hello", 99_162_322),
        ("polygenelubricants", -(2**31)),
        # U+1F98A is two code units, D83E and DD8A.
        ("🦊", 0xD83E * 31 + 0xDD8A),
    ],
)
def test_the_hash_is_javas(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_the_smallest_hash_goes_to_partition_0() -> None:
    assert partition_for("polygenelubricants", 50) == 0


def test_a_negative_hash_counts_by_its_amount() -> None:
    # The hash is -421004483; Python's own % 50 would give 17.
    assert partition_for("consumers", 50) == 33


@pytest.mark.java
def test_java_puts_every_group_on_the_same_partition() -> None:
    names = ["", "polygenelubricants", "göt-🦊", "x" * 1_000, *(f"group-{n}" for n in range(500))]
    answers = ask_java([{"do": "partition", "group": name} for name in names])
    assert [(java_hash(name), partition_for(name, 50)) for name in names] == [
        (answer["hash"], answer["partition"]) for answer in answers
    ]
