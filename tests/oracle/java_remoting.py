"""RocketMQ's own remoting classes: frames written and read, bodies written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from assignors.rocketmq import MessageQueue
from streaming.rocketmq import JSON, ROCKETMQ, Frame
from tests.oracle.java_runner import JavaRunner, hexed, unhexed

__all__ = ["RELEASES", "Remoting"]

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
