"""Frames of the remoting protocol: by hand, there and back, and from any bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.rocketmq import JSON, ROCKETMQ, Frame, Malformed, decode_frame, encode_frame
from tests.examples import examples
from tests.rocketmq.frames import encoded, frames

# Written by hand after the layout in RocketMQSerializable: 9 + 8 fixed bytes, remark, fields.
_BINARY = bytes.fromhex(
    "0000002e" "0100002a"  # 46 bytes follow; a ROCKETMQ header of 42
    "0026" "03" "0191" "00000007" "00000001"  # code 38, PYTHON, version 401, opaque 7, an answer
    "00000002" "6869"  # remark "hi"
    "00000013" "0001" "61" "00000002" "6263" "0001" "64" "00000003" "c3a965"  # {"a": "bc", "d": "ée"}
)  # fmt: skip


def _json(header: bytes, body: bytes = b"") -> bytes:
    return (4 + len(header) + len(body)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header + body


def test_a_binary_header_is_read_as_it_stands_in_their_layout() -> None:
    frame = Frame(38, 7, 1, "PYTHON", 401, "hi", {"a": "bc", "d": "ée"}, None, ROCKETMQ)
    assert decode_frame(_BINARY) == frame
    assert encoded(frame) == _BINARY


def test_a_json_header_is_read_whatever_the_order_of_its_fields() -> None:
    data = _json(b'{"version":401,"extFields":{"topic":"t"},"opaque":7,"language":"GO","code":105,"flag":0}', b"{0:1}")
    assert decode_frame(data) == Frame(105, 7, 0, "GO", 401, None, {"topic": "t"}, b"{0:1}", JSON)


def test_fields_that_are_no_text_are_read_by_their_text_as_java_does() -> None:
    data = _json(b'{"code":1,"opaque":2,"extFields":{"a":5,"b":true,"c":null,"d":"x"}}')
    assert decode_frame(data) == Frame(1, 2, 0, None, 0, None, {"a": "5", "b": "true", "d": "x"})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes are no frame: length prefix and header length alone take 8"),
        (b"\0\0\0\4\0\0\0\1", "a header of 1 bytes in a frame of 4"),
        (b"\0\0\0\5\0\0\0\0", "a length of 5, but 4 bytes follow"),
        (b"\xff\xff\xff\xff\0\0\0\0", "a length of -1; frames have 4 to 16,777,216 bytes after it"),
        (b"\0\0\0\4\2\0\0\0", "a header of type 2, which is neither JSON (0) nor ROCKETMQ (1)"),
        (_json(b"[]"), "header: Expected `object`, got `array`"),
        (_json(b'{"opaque":1}'), "header: Object missing required field `code`"),
        (
            _json(b'{"code":true,"opaque":1}'),
            "header: Expected `int`, got `bool` - at `$.code`",
        ),
        (
            _json(b'{"code":2147483648,"opaque":1}'),
            "header: Expected `int` <= 2147483647 - at `$.code`",
        ),
        (_BINARY[:4] + b"\1\0\0\7" + _BINARY[8:], "header: 7 bytes, where the fixed fields alone have 13"),
        (_BINARY[:21] + b"\xff" * 4 + _BINARY[25:], "header: a length of -1 at byte 13, but 25 bytes are left"),
    ],
)
def test_bytes_that_are_no_frame_give_a_reason(data: bytes, reason: str) -> None:
    found = decode_frame(data)
    assert isinstance(found, Malformed)
    assert found.reason == reason


def test_a_frame_that_servers_would_not_take_is_refused() -> None:
    with pytest.raises(ValueError, match="larger than the 16,777,216 that servers take"):
        encode_frame(Frame(1, 1, body=bytes(16 * 1024 * 1024)))


@settings(max_examples=examples(600), deadline=None)
@given(frames())
def test_a_frame_comes_back_as_it_was(frame: Frame) -> None:
    assert decode_frame(encoded(frame)) == frame


@settings(max_examples=examples(1_500), deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_are_a_frame_or_a_reason(data: bytes) -> None:
    assert isinstance(decode_frame(data), Frame | Malformed)
    whole = (len(data)).to_bytes(4, "big") + data
    assert isinstance(decode_frame(whole), Frame | Malformed)


@settings(max_examples=examples(900), deadline=None)
@given(frames(), st.data())
def test_a_frame_with_a_changed_byte_is_a_frame_or_a_reason(frame: Frame, data: st.DataObject) -> None:
    written = bytearray(encoded(frame))
    at = data.draw(st.integers(0, len(written) - 1))
    written[at] = data.draw(st.integers(0, 255))
    assert isinstance(decode_frame(bytes(written)), Frame | Malformed)
