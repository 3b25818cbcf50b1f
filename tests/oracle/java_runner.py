"""Runs one of the Java sources in this folder with a set of jars, in its own JVM: lines in, lines out."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Thread, Timer
from types import TracebackType
from typing import Self

from streaming.jars import classpath
from tests.oracle.java_classes import java_command

_TIMEOUT_S = 280
"""Limit for one batch."""


@dataclass(frozen=True)
class Thrown:
    """The class threw an exception."""

    exception: str
    message: str


def thrown_in(answer: str) -> Thrown | None:
    """What an answer says was thrown; None for a result."""
    if not answer.startswith("!"):
        return None
    exception, _, message = answer[1:].partition(":")
    return Thrown(exception, unhexed(message))


class JavaRunner:
    """A runner that answers each line with a line, and an empty line with an empty one after flushing its output.

    A context manager; `ask` may be called any number of times inside.
    """

    def __init__(self, source: str, jars: str, *, against: str | None = None) -> None:
        self._command = java_command(Path(__file__).with_name(source), classpath(jars), "1g", against=against)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._process.kill()
        self._process.stdin.close()
        self._process.stdout.close()
        status = self._process.wait()
        assert kind is not None or status == 0

    def ask(self, lines: Sequence[str]) -> list[str]:
        """Send lines; returns the answers in order."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        # In a thread, because otherwise both sides might wait for the other to read.
        writer = Thread(target=self._write, args=(lines,))
        writer.start()
        hangs = Timer(_TIMEOUT_S, process.kill)
        hangs.start()
        answers = []
        for answer in process.stdout:
            text = answer.decode("ascii").rstrip("\r\n")
            if not text and len(answers) == len(lines):
                break
            answers.append(text)
        hangs.cancel()
        writer.join()
        assert len(answers) == len(lines), "the JVM ended: what it said stands above"
        return answers

    def _write(self, lines: Sequence[str]) -> None:
        self._process.stdin.write("".join(f"{line}\n" for line in (*lines, "")).encode("ascii"))
        self._process.stdin.flush()


@lru_cache(maxsize=1 << 14)
def hexed(text: str | None) -> str:
    """A text as "x" and the hex of its UTF-16 code units, so that no separator can occur in it; null as "-"."""
    return "-" if text is None else "x" + text.encode("utf-16-be", "surrogatepass").hex()


def unhexed(text: str) -> str:
    """The inverse of `hexed`."""
    return bytes.fromhex(text[1:]).decode("utf-16-be", "surrogatepass")


def joined(separator: str, texts: Iterable[str]) -> str:
    """Hexed texts with a separator between them."""
    return separator.join(map(hexed, texts))
