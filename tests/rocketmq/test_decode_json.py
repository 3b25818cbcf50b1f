"""`evenkeel rocketmq-decode`: a line in, a line out."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.rocketmq import ROCKETMQ, Frame, decode_line, encode_frame
from tests.examples import examples
from tests.rocketmq.frames import encoded


def test_a_body_of_theirs_is_printed_as_json() -> None:
    frame = Frame(0, 7, 1, "JAVA", 513, None, None, b'{"offsetTable":{"t@g":{0:12}}}')
    assert decode_line({"bytes": encode_frame(frame).hex()}) == {
        "code": 0,
        "language": "JAVA",
        "version": 513,
        "opaque": 7,
        "flag": 1,
        "remark": None,
        "extFields": None,
        "body": {"offsetTable": {"t@g": {"0": 12}}},
    }


@pytest.mark.parametrize(
    ("body", "printed"),
    [(b"123", "MTIz"), (b"\xff", "/w=="), (b"[1]", [1]), (b'"a"', "ImEi"), (b"{1:}", "ezE6fQ=="), (None, None)],
)
def test_any_other_body_is_printed_as_base64(body: bytes | None, printed: object) -> None:
    frame = Frame(10, 1, fields={"topic": "t"}, body=body, header=ROCKETMQ)
    assert decode_line({"bytes": encoded(frame).hex()})["body"] == printed


@pytest.mark.parametrize("line", [{}, {"bytes": None}, {"bytes": "0"}, {"bytes": "zz"}, {"bytes": 5}])
def test_a_line_of_another_kind_is_an_error(line: dict[str, object]) -> None:
    assert decode_line(line) == {"error": 'the line is not {"bytes": hex}'}


@settings(max_examples=examples(900), deadline=None)
@given(st.binary(max_size=60), st.binary(max_size=30))
def test_every_answer_can_be_written(data: bytes, body: bytes) -> None:
    for frame in (data, encode_frame(Frame(0, 1, body=body))):
        found = decode_line({"bytes": frame.hex()})
        assert msgspec.json.decode(msgspec.json.encode(found)) == found
        assert found.keys() == {"error"} or "body" in found
