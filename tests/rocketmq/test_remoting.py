"""RocketMQ's remoting protocol: bodies as fastjson and its own classes write them, frames, keys of answers."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.rocketmq import MessageQueue
from streaming.rocketmq import (
    JSON,
    ROCKETMQ,
    Frame,
    Malformed,
    answers,
    decode_frame,
    decode_line,
    encode_frame,
    read_text,
)
from streaming.rocketmq.answers import Unreadable, as_json
from streaming.rocketmq.frames import LANGUAGES
from tests.examples import by_day, examples
from tests.oracle.java_runner import JavaRunner, hexed, unhexed
from tests.rocketmq.frames import encoded, frames

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def test_bare_integers_and_objects_as_keys_become_texts() -> None:
    body = b'{"offsetTable":{{"brokerName":"b}:{0:","queueId":3,"topic":"t"}:{"maxOffset":7}},"addrs":{0:"x", -1 :"y"}}'
    assert read_text(body) == {
        "offsetTable": {'{"brokerName":"b}:{0:","queueId":3,"topic":"t"}': {"maxOffset": 7}},
        "addrs": {"0": "x", "-1": "y"},
    }


def test_what_looks_like_such_a_key_inside_a_text_stays() -> None:
    body = b'{"a":"{0:1}","b":"\\"{{\\"x\\":1}:","c":[{"d":1},{"e":{1:2}}]}'
    assert read_text(body) == {"a": "{0:1}", "b": '"{{"x":1}:', "c": [{"d": 1}, {"e": {"1": 2}}]}


def test_the_last_of_equal_keys_counts() -> None:
    assert read_text(b'{"a":1,"a":2}') == {"a": 2}


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"{0:}", b"{{}:1", b'{"a":NaN}', b'{"a":1e999}', b"[" * 100_000, b'"\\ud800"', b"{'a':1}", b"{0:1}}"],
)
def test_what_is_no_json_of_their_kind_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises(Unreadable):
        read_text(body)


@settings(max_examples=examples(900), deadline=None)
@given(_VALUES, st.booleans())
def test_json_of_everybody_means_what_it_meant(value: object, spaces: bool) -> None:
    text = json.dumps(value, ensure_ascii=spaces, separators=None if spaces else (",", ":")).encode("utf-8")
    assert json.loads(as_json(text)) == json.loads(text)


@settings(max_examples=examples(1_500), deadline=None)
@given(st.text('{}[]",:\\ 01-a', max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_text(text.encode())
    except Unreadable:
        return


@settings(max_examples=examples(600), deadline=None)
@given(st.text('{}[]",:\\ 01-a', max_size=30))
def test_what_json_reads_is_left_alone(text: str) -> None:
    try:
        value = json.loads(text)
    except ValueError:
        return
    assert as_json(text.encode()) == text.encode()
    assert read_text(text.encode()) == value


@pytest.mark.parametrize("piece", [b"{", b'{"', b'\\"', b"{1:", b"{{", b',{"a"', b'{"a":"', b',{"\\"', b"{ ", b'"\\\\'])
def test_a_hostile_body_takes_no_longer_than_its_bytes(piece: bytes) -> None:
    """(A search that started again at each byte would need an hour for these.)"""
    assert as_json(b"{1:" + piece * 200_000).endswith(piece[-1:])


# Frames of the remoting protocol: by hand, there and back, and from any bytes.


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


# Bodies of answers, and the keys in them.


def _key(topic: str, queue: int) -> str:
    return json.dumps({"brokerName": "broker-a", "queueId": queue, "topic": topic}, ensure_ascii=False)


def test_a_key_is_the_queue_that_it_names_however_long_it_is() -> None:
    for topic in ("orders", "x" * 20_000, "\U0001f600"):
        assert answers.queue_of(_key(topic, 3)) == answers.MessageQueue(topic, "broker-a", 3)
    for wrong in ("", "{", "[" * 20_000):
        with pytest.raises(answers.Unreadable):
            answers.queue_of(wrong)


@pytest.mark.parametrize("name", ["x" * 10_000, "\U0001f600" * 500], ids=["long", "wide"])
def test_keys_that_a_client_makes_up_to_be_large_stay_in_no_memory(name: str) -> None:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(500):
            answers.queue_of(_key(f"{name}{number}", number))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 100_000  # all of them have a million bytes or more


# `evenkeel rocketmq-decode`: a line in, a line out.


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


RELEASES = ("5.5.0", "4.9.8")

_TYPES = {JSON: "JSON", ROCKETMQ: "ROCKETMQ"}


class Remoting(JavaRunner):
    """The real classes of one release; a context manager."""

    def __init__(self, release: str) -> None:
        jars = {"5.5.0": "rocketmq-server-5.5.0", "4.9.8": "rocketmq-remoting-4.9.8"}
        super().__init__("RemotingRunner.java", jars[release], against=jars["4.9.8"])

    def encode(self, frames: Sequence[Frame]) -> list[bytes]:
        """The bytes of each frame."""
        return [bytes.fromhex(answer) for answer in self.ask([_line(frame) for frame in frames])]

    def decode(self, frames: Sequence[bytes]) -> list[Frame | None]:
        """The frames that they are; None where the class throws, or cannot tell a language."""
        return [_read(answer) for answer in self.ask([f"D\t{frame.hex()}" for frame in frames])]

    def bodies(self, cases: Sequence[tuple[Iterable[MessageQueue], Iterable[int]]]) -> list[bytes]:
        """Bodies with a map keyed by queues (`offsetTable`) and one keyed by numbers (`brokerAddrs`)."""
        lines = []
        for queues, numbers in cases:
            told = ";".join(f"{hexed(queue.topic)}:{hexed(queue.broker)}:{queue.queue}" for queue in queues)
            lines.append(f"B\t{told}\t{';'.join(map(str, numbers))}")
        return [bytes.fromhex(answer) for answer in self.ask(lines)]


def _line(frame: Frame) -> str:
    fields = frame.fields
    return "\t".join(
        (
            "E",
            _TYPES[frame.header],
            str(frame.code),
            str(frame.language),
            str(frame.version),
            str(frame.opaque),
            str(frame.flag),
            hexed(frame.remark),
            "-" if fields is None else ";".join(f"{hexed(name)}:{hexed(value)}" for name, value in fields.items()),
            "-" if frame.body is None else frame.body.hex(),
        )
    )


def _read(answer: str) -> Frame | None:
    if answer.startswith("!"):
        return None
    kind, code, language, version, opaque, flag, remark, fields, body = answer.split("\t")
    pairs = (pair.split(":") for pair in fields.split(";") if pair)
    found = Frame(
        int(code),
        int(opaque),
        int(flag),
        language,
        int(version),
        None if remark == "-" else unhexed(remark),
        None if fields == "-" else {unhexed(name): unhexed(value) for name, value in pairs},
        None if body == "-" else bytes.fromhex(body),
        {"JSON": JSON, "ROCKETMQ": ROCKETMQ}[kind],
    )
    return replace(found, language=None) if language == "null" else found


_CASES = 400


def _drawn(strategy: st.SearchStrategy[Frame], count: int) -> list[Frame]:
    found: list[Frame] = []

    @settings(max_examples=count, deadline=None, database=None, derandomize=True)
    @given(strategy)
    def draw(frame: Frame) -> None:
        found.append(frame)

    draw()
    return found


@pytest.mark.nightly
@pytest.mark.java
@pytest.mark.parametrize("release", by_day(RELEASES, ["5.5.0"]))
def test_the_classes_write_what_we_read_and_read_what_we_write(release: str) -> None:
    known = LANGUAGES if release == "5.5.0" else LANGUAGES[:12]  # 4.9.8 has neither RUST nor NODE_JS
    cases = [frame for frame in _drawn(frames(), _CASES) if frame.language in known]
    with Remoting(release) as java:
        written = java.encode(cases)
        read = java.decode([encoded(frame) for frame in cases])
    for frame, data, back in zip(cases, written, read, strict=True):
        assert decode_frame(data) == frame, data
        assert back == frame


@pytest.mark.java
@pytest.mark.parametrize("release", by_day(RELEASES, ["5.5.0"]))
def test_bodies_of_the_classes_are_read_with_all_their_keys(release: str) -> None:
    queues = [MessageQueue("%RETRY%g", "broker-a", 0), MessageQueue("t", 'b"}:{,\\', 3), MessageQueue("é😀", "{0:", -1)]
    cases = [(queues, [0, -1, 2**31 - 1]), ([], []), (queues[:1], [5])]
    with Remoting(release) as java:
        bodies = java.bodies(cases)
    for (keys, numbers), body in zip(cases, bodies, strict=True):
        found = read_text(body)
        read = [answers.queue_of(key) for key in found["offsetTable"]]
        assert {(one.topic, one.brokerName, one.queueId) for one in read} == {tuple(key) for key in keys}
        assert found["brokerAddrs"] == {str(number): f'a:{{{number}:"' for number in numbers}
        assert all(value == {"maxOffset": 7} for value in found["offsetTable"].values())


@pytest.mark.java
@pytest.mark.parametrize("release", by_day(RELEASES, ["5.5.0"]))
def test_a_frame_that_the_classes_refuse_is_refused_or_read_more_strictly_by_us(release: str) -> None:
    frame = Frame(38, 7, 1, "JAVA", 401, "r", {"a": "b"}, b"{}", 1)
    data = encoded(frame)
    cut = [data[:4] + data[4:end] for end in range(8, len(data))]
    # With a length prefix of its own each is a frame of that many bytes.
    cut = [(len(one) - 4).to_bytes(4, "big") + one[4:] for one in cut]
    with Remoting(release) as java:
        theirs = java.decode(cut)
    for one, read in zip(cut, theirs, strict=True):
        ours = decode_frame(one)
        if isinstance(ours, Frame):
            assert read == ours, one.hex()
