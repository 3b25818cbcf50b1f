"""The reader: written values come back, and no length or count can mislead it."""

from __future__ import annotations

import pytest

from streaming.offsets_log.codec.wire import MalformedError, Reader
from tests.offsets_log.written import compact


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff\x10", b"\x80\x80\x80\x80\x80\x01", b"\xff" * 6])
def test_a_varint_beyond_32_bits_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedError, match="more than 32 bits"):
        Reader(data).uvarint("x")


def test_null_is_told_from_empty() -> None:
    assert Reader(b"\xff\xff").nullable_string("x") is None
    assert Reader(b"\x00\x00").nullable_string("x") == ""
    assert Reader(b"\x00", flexible=True).nullable_bytes("x") is None
    assert Reader(b"\x01", flexible=True).nullable_bytes("x") == b""


@pytest.mark.parametrize(
    ("data", "flexible"),
    [
        (b"\xff\xfe", False),
        (b"\x7f\xff", False),
        (b"\x00\x03ab", False),
        (b"\x04ab", True),
        (b"\xff\xff\xff\xff\x0f", True),
    ],
)
def test_a_length_that_cannot_be_is_refused(data: bytes, flexible: bool) -> None:
    with pytest.raises(MalformedError, match="claims"):
        Reader(data, flexible=flexible).string("x")


def test_a_string_of_32768_bytes_is_refused_and_one_of_32767_is_not() -> None:
    assert len(Reader(compact("x" * 32_767), flexible=True).string("x")) == 32_767
    with pytest.raises(MalformedError, match="more than any string of Kafka"):
        Reader(compact("x" * 32_768), flexible=True).string("x")


@pytest.mark.parametrize("data", [b"\x80", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82"])
def test_invalid_utf8_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedError, match="not valid UTF-8"):
        Reader(len(data).to_bytes(2, "big") + data).string("x")


def test_a_count_that_the_rest_cannot_hold_is_refused_before_anything_is_made() -> None:
    with pytest.raises(MalformedError, match="claims 2147483647 elements, but 8 bytes are left"):
        Reader(b"\x7f\xff\xff\xff" + bytes(8)).int32_array("x")
    assert Reader(b"\x00\x00\x00\x03" + bytes(12)).int32_array("x") == (0, 0, 0)
    with pytest.raises(MalformedError, match="claims 3 elements, but 11 bytes are left"):
        Reader(b"\x00\x00\x00\x03" + bytes(11)).int32_array("x")


def test_tagged_fields_are_passed_over_by_their_size() -> None:
    reader = Reader(b"\x02" + b"\x05\x03abc" + b"\x00\x02hi" + b"!", flexible=True)
    assert reader.tagged_fields({0: greeting}) == {0: b"hi"}
    assert reader.remaining == 1


def test_a_known_tagged_field_of_another_size_is_refused() -> None:
    with pytest.raises(MalformedError, match="tag 0 at byte 3 has 3 bytes, of which its field takes 2"):
        Reader(b"\x01\x00\x03abc!", flexible=True).tagged_fields({0: greeting})
    with pytest.raises(MalformedError, match="tag 0: greeting needs 2 bytes at byte 3, but 1 are left"):
        Reader(b"\x01\x00\x01abc", flexible=True).tagged_fields({0: greeting})


def greeting(reader: Reader) -> bytes:
    return reader.raw(2, "greeting")
