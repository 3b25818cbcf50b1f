"""Frames and bodies of RocketMQ's own classes, in the releases of both lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.rocketmq import MessageQueue
from streaming.rocketmq import JSON, ROCKETMQ, Frame, answers, decode_frame, read_text
from streaming.rocketmq.frames import LANGUAGES
from tests.examples import by_day
from tests.oracle.java_runner import JavaRunner, hexed, unhexed
from tests.rocketmq.frames import encoded, frames

pytestmark = pytest.mark.java


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


@pytest.mark.parametrize("release", by_day(RELEASES, ["5.5.0"]))
def test_the_classes_write_what_we_read_and_read_what_we_write(release: str) -> None:
    known = LANGUAGES if release == "5.5.0" else LANGUAGES[:12]  # (4.9.8 has neither RUST nor NODE_JS)
    cases = [frame for frame in _drawn(frames(), _CASES) if frame.language in known]
    with Remoting(release) as java:
        written = java.encode(cases)
        read = java.decode([encoded(frame) for frame in cases])
    for frame, data, back in zip(cases, written, read, strict=True):
        assert decode_frame(data) == frame, data
        assert back == frame


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
