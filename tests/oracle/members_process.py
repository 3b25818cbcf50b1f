"""A process with many group members, which starts and stops them on command (GroupMembers.java)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from threading import Event, Lock, Thread
from typing import NamedTuple, Self

_END_S = 20.0
_ROOT = Path(__file__).resolve().parents[2]


class Told(NamedTuple):
    """What a client said of its partitions.

    Attributes:
        member: Name of the member.
        word: "assigned", "revoked" or "lost".
        at: Time of the machine's steady clock, ns.
        places: The partitions, as "topic:number".
    """

    member: str
    word: str
    at: int
    places: tuple[str, ...]


class MembersProcess:
    """One such process, restarted when it has crashed; a context manager, at whose end all its members crash.

    Attributes:
        crashes: How often it ended by itself.
        failures: Errors of members that ended without being stopped, as far as they reported one.
        told: What the members' clients said of their partitions, in the order of its arrival.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.crashes = 0
        self.failures: list[str] = []
        self.told: list[Told] = []
        self._command = command
        self._names = count()
        self._closed: dict[str, Event] = {}
        self._writing = Lock()

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()

    def start(self, topics: Sequence[str], settings: Mapping[str, str]) -> str:
        """Start a member with its client's settings; returns its name, for `stop` and `closed`."""
        name = f"m{next(self._names)}"
        closed = self._closed[name] = Event()
        line = "start", name, ",".join(topics), *(part for setting in settings.items() for part in setting)
        if not self._tell(*line):
            closed.clear()
            self._tell(*line)
        return name

    def subscribe(self, name: str, topics: Sequence[str]) -> None:
        """Change a member's subscription."""
        self._tell("subscribe", name, ",".join(topics))

    def stop(self, name: str) -> None:
        """Close a member: a dynamic one leaves its group."""
        self._tell("stop", name)

    def pause(self) -> None:
        """Stop the whole process as a long pause would: no heartbeat of any member until `resume`."""
        self._process.send_signal(SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._process.send_signal(SIGCONT)

    def kill(self) -> None:
        """Let all members crash; later ones start in another process."""
        with self._writing:
            self._process.kill()
            self._process.wait()
            self._listener.join()
            self._open()

    def closed(self, name: str) -> Event:
        """An event that is set when the member's client is closed or gone."""
        return self._closed[name]

    def _open(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # Programs in Python import `tests`.
            env=os.environ | {"PYTHONPATH": str(_ROOT)},
        )
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _tell(self, *fields: str) -> bool:
        """Write a line; returns whether a process was there to read it. Afterwards one is there."""
        with self._writing:
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
            word, name, *reason = line.rstrip("\n").split("\t")
            if word in {"assigned", "revoked", "lost"}:
                self.told.append(Told(name, word, int(reason[0]), tuple(filter(None, reason[1].split(",")))))
            elif word == "failed":
                self.failures.append(f"{name}: {' '.join(reason)}")
            else:
                self._closed[name].set()
        for closed in list(self._closed.values()):
            closed.set()
