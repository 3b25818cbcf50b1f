"""Processes that hold real group members and are told by lines: Java's consumers in one JVM, librdkafka's by group.

librdkafka's members get a process because some of its leaders crash: its cooperative-sticky reads memory that it has
freed (assignors/sticky/librdkafka.py). What was in the process is gone then, as on any machine, and the group goes on.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self

from streaming.jars import classpath
from streaming.java import find_java

__all__ = ["MembersProcess", "java_command", "librdkafka_command"]

_END_S = 20.0


def java_command(release: str) -> list[str]:
    """Members of Kafka's own consumer of one release (tests/oracle/GroupMembers.java, which tells the lines)."""
    return [
        str(find_java()),
        "-Xmx512m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-cp",
        os.pathsep.join(map(str, classpath(f"clients-{release}"))),
        str(Path(__file__).parents[1] / "oracle" / "GroupMembers.java"),
    ]


def librdkafka_command() -> list[str]:
    """Members of confluent-kafka, told by the same lines."""
    return [sys.executable, str(Path(__file__).with_name("real_librdkafka.py"))]


class MembersProcess:
    """One such process, started anew when it has crashed; a context manager, whose end is the crash of all its members.

    Attributes:
        crashes: How often it ended by itself.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.crashes = 0
        self._command = command
        self._names = count()
        self._closed: dict[str, Event] = {}
        self._writing = Lock()

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()

    def start(self, topics: Sequence[str], settings: Mapping[str, str]) -> str:
        """Start a member with its client's settings; its name, for `stop` and `closed`."""
        name = f"m{next(self._names)}"
        closed = self._closed[name] = Event()
        line = "start", name, ",".join(topics), *(part for setting in settings.items() for part in setting)
        if not self._tell(*line):
            closed.clear()
            self._tell(*line)
        return name

    def stop(self, name: str) -> None:
        """Close a member: a dynamic one leaves its group."""
        self._tell("stop", name)

    def closed(self, name: str) -> Event:
        """Set when the member's client is closed, or gone."""
        return self._closed[name]

    def _open(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _tell(self, *fields: str) -> bool:
        """Whether there was somebody to tell; there is now."""
        with self._writing:
            assert self._process.stdin is not None
            try:
                self._process.stdin.write("\t".join(fields) + "\n")
                self._process.stdin.flush()
            except BrokenPipeError:
                self.crashes += 1
                self._process.wait()
                self._listener.join()
                self._open()
                return False
            return True

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._closed[line.rstrip("\n").partition("\t")[2]].set()
        for closed in list(self._closed.values()):
            closed.set()
