"""Frames and bodies of RocketMQ's own classes, in the releases of both lines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.rocketmq import MessageQueue
from streaming.rocketmq import Frame, answers, decode_frame, encode_frame, read_text
from streaming.rocketmq.frames import LANGUAGES
from tests.oracle.java_remoting import RELEASES, Remoting
from tests.rocketmq.frames import frames

pytestmark = pytest.mark.java

_CASES = 400


def _drawn(strategy: st.SearchStrategy[Frame], count: int) -> list[Frame]:
    found: list[Frame] = []

    @settings(max_examples=count, deadline=None, database=None, derandomize=True)
    @given(strategy)
    def draw(frame: Frame) -> None:
        found.append(frame)

    draw()
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_the_classes_write_what_we_read_and_read_what_we_write(release: str) -> None:
    known = LANGUAGES if release == "5.5.0" else LANGUAGES[:12]  # (4.9.8 has neither RUST nor NODE_JS)
    cases = [frame for frame in _drawn(frames(), _CASES) if frame.language in known]
    with Remoting(release) as java:
        written = java.encode(cases)
        read = java.decode([encode_frame(frame) for frame in cases])
    for frame, data, back in zip(cases, written, read, strict=True):
        assert decode_frame(data) == frame, data
        assert back == frame


@pytest.mark.parametrize("release", RELEASES)
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


@pytest.mark.parametrize("release", RELEASES)
def test_a_frame_that_the_classes_refuse_is_refused_or_read_more_strictly_by_us(release: str) -> None:
    frame = Frame(38, 7, 1, "JAVA", 401, "r", {"a": "b"}, b"{}", 1)
    data = encode_frame(frame)
    cut = [data[:4] + data[4:end] for end in range(8, len(data))]
    # With a length prefix of its own each is a frame of that many bytes.
    cut = [(len(one) - 4).to_bytes(4, "big") + one[4:] for one in cut]
    with Remoting(release) as java:
        theirs = java.decode(cut)
    for one, read in zip(cut, theirs, strict=True):
        ours = decode_frame(one)
        if isinstance(ours, Frame):
            assert read == ours, one.hex()
