"""What members of the sticky strategies put into their user data, byte by byte."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.clients.sticky.claims import (
    MemberData,
    read_generation,
    read_kafka_python,
    read_sticky,
    write_kafka_python,
    write_sticky,
)


def test_a_kafka_python_leader_reads_its_own_bytes_only() -> None:
    java = write_sticky((("t", (2,)),), 5)

    assert read_kafka_python(b"\0\1" + java) == MemberData((("t", (2,)),), 5)
    assert read_kafka_python(java) == read_kafka_python(b"") == MemberData((), -1)
    version_0 = b"\0\0" + write_sticky((("t", (2,)),), None)
    assert read_kafka_python(version_0) == MemberData((("t", (2,)),), -1)


def test_user_data_is_read_as_version_1_then_0_then_not_at_all() -> None:
    held = (("t", (0, 3)), ("\u65e5", (7,)))
    both = write_sticky(held, 9)

    assert read_sticky(both) == (MemberData(held, 9), len(both))
    assert read_sticky(both[:-4]) == (MemberData(held, None), len(both) - 4)
    assert read_sticky(both[:-6])[0] == MemberData((), -1)
    assert read_sticky(write_sticky((), None)) == (MemberData((), None), 4)
    assert read_sticky(None)[0] == read_sticky(b"")[0] == MemberData((), None)
    assert read_sticky(both, len(both))[0] == MemberData((), None)


def test_a_bare_generation_is_read_once() -> None:
    assert read_generation(struct.pack(">i", 7)) == (7, 4)
    assert read_generation(struct.pack(">i", 7), 4) == (-1, 4)
    assert read_generation(None) == (None, 0)
    assert read_generation(b"") == (-1, 0)


@given(st.binary(max_size=60), st.integers(0, 70))
def test_reading_never_raises(data: bytes, position: int) -> None:
    read_sticky(data, position)
    read_generation(data, position)
    read_kafka_python(data)


@pytest.mark.parametrize(
    ("data", "position"),
    [
        # One topic, "t", that claims five partitions: two whole numbers follow, and two bytes that are no third.
        (b"\0\0\0\1" + b"\0\1t" + b"\0\0\0\5" + bytes(10), 4 + 3 + 4 + 8),
        (b"\0\0\0\2" + b"\0\1t" + b"\0\0\0\1" + bytes(4) + b"\x00\x09t", 4 + 3 + 4 + 4 + 2),
        (b"\0\0\0\1" + b"\0", 4),
        (b"\0\0\0\1" + b"\0\1t", 4 + 3),  # nothing is left behind the topic
        (b"\0\0", 0),
    ],
)
def test_java_s_buffer_stays_where_a_read_failed(data: bytes, position: int) -> None:
    assert read_sticky(data) == (MemberData((), -1), position)
    assert read_sticky(b"???" + data, 3) == (MemberData((), -1), 3 + position)


def test_kafka_python_writes_the_version_1_in_front() -> None:
    written = b"\0\1" + b"\0\0\0\1" + b"\0\1t" + b"\0\0\0\2" + b"\0\0\0\0" + b"\0\0\0\3" + b"\0\0\0\7"
    assert write_kafka_python((("t", (0, 3)),), 7) == written
    assert read_kafka_python(written) == MemberData((("t", (0, 3)),), 7)
