"""Group members that are Kafka's own Java consumers of one release, all in one JVM."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self

from streaming.jars import classpath
from streaming.java import find_java

__all__ = ["JavaMembers"]

_END_S = 20.0


class JavaMembers:
    """The JVM; a context manager, whose end is the crash of every member that is left.

    Attributes:
        failures: What members died of that nobody stopped.
    """

    def __init__(self, release: str) -> None:
        self.failures: list[str] = []
        self._command = [
            str(find_java()),
            "-Xmx512m",
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-cp",
            os.pathsep.join(map(str, classpath(f"clients-{release}"))),
            str(Path(__file__).with_name("GroupMembers.java")),
        ]
        self._names = count()
        self._closed: dict[str, Event] = {}
        self._writing = Lock()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()
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
        """Start a member with Kafka's settings; its name, for `stop` and `closed`."""
        name = f"m{next(self._names)}"
        self._closed[name] = Event()
        self._tell("start", name, ",".join(topics), *(part for setting in settings.items() for part in setting))
        return name

    def stop(self, name: str) -> None:
        """Close a member: a dynamic one leaves its group."""
        self._tell("stop", name)

    def closed(self, name: str) -> Event:
        """Set when the member's consumer is closed."""
        return self._closed[name]

    def _tell(self, *fields: str) -> None:
        assert self._process.stdin is not None
        with self._writing:
            self._process.stdin.write("\t".join(fields) + "\n")
            self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, name, *reason = line.rstrip("\n").split("\t")
            if word == "failed":
                self.failures.append(f"{name}: {' '.join(reason)}")
            elif word == "closed":
                self._closed[name].set()
        # The JVM is gone, and all members with it.
        for closed in self._closed.values():
            closed.set()
