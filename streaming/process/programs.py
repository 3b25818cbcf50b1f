"""The programs of one machine: started, restarted when they die, stopped in order, and reported on.

Each program has a guard of its own (`_guard.py`), which ends it when this process has gone. A thread here restarts what
has ended, whatever the caller waits for.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from signal import Signals

from streaming.exceptions import SETUP_EXIT_CODE
from streaming.lifecycle import SUPERVISOR
from streaming.places import open_private, private_folder
from streaming.process.guarded import ForkServer, GuardedProcess

_REST_S = 300.0
"""The longest pause of a program that waits for a person: soon enough for somebody who has fixed the cause and
forgotten about it, and rarely enough to cost nothing over a weekend. The first pauses are short, because what needs a
person at a start, such as brokers that cannot be reached, may also pass by itself."""

_WELL_S = 60.0
"""A program that has run this long is well: it is started again at once, and later pauses begin from 1 s again. A cold
job's first batch takes 20 s."""

_LONGEST_PAUSE_S = 60.0
"""Soon enough after an outage of hours, and rarely enough to leave the machine to others."""

_POLL_S = 0.25
"""The longest delay until the end of a program is noticed."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program.

    Attributes:
        name: Name, in messages and of its log file.
        arguments: Arguments of this Python interpreter.
        grace_s: How long it may take to stop after SIGTERM.
        without: Prefixes of environment variables that it does not get: secrets of others.
        environment: Variables of its own, on top of those of all.
        is_forked: Whether one process imports its module (`-m MODULE`) for all that have the same, and forks them.
    """

    name: str
    arguments: tuple[str, ...]
    grace_s: float
    without: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    is_forked: bool = False


@dataclass(slots=True)
class _Kept:
    """The state of one program.

    Attributes:
        program: The program.
        process: Its newest run; None while it waits for the next.
        at: When that run began, or when the next one does.
        pause_s: How long it waits after its next end.
        said: What was reported of its troubles since it was last well, without numbers.
    """

    program: Program
    process: GuardedProcess | None = None
    at: float = 0.0
    pause_s: float = 1.0
    said: set[str] = field(default_factory=set)


class Programs:
    """Running programs; a context manager that stops them all, last started first."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        say: Callable[[str], object] = lambda _: None,
        rest_s: float = _REST_S,
        well_s: float = _WELL_S,
    ) -> None:
        """Prepare.

        Args:
            folder: For the logs, this user's alone: one file per program, rotated by size, and `up.log` for what is
                reported.
            environment: Variables on top of this process's own; the programs inherit them.
            say: Called in a thread with one sentence when a program dies, cannot run, or runs again.
            rest_s: The longest pause of a program that waits for a person.
            well_s: How long a run lasts before the program counts as well.
        """
        private_folder(folder)
        self._folder, self._say, self._rest_s, self._well_s = folder, say, rest_s, well_s
        # A probe knows by this name that its predecessor is dead. In a container that is started again, what starts
        # everything again has set it.
        supervisor = os.environ.get(SUPERVISOR) or uuid.uuid4().hex
        self._environment = {**environment, SUPERVISOR: supervisor}
        self._kept: list[_Kept] = []
        self._servers: dict[str, ForkServer] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="programs", daemon=True)

    def __enter__(self) -> Programs:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.stop()
        for server in self._servers.values():
            server.close()

    def start(self, program: Program) -> None:
        """Start a program, and keep it running."""
        with self._lock:
            kept = _Kept(program)
            self._kept.append(kept)
            self._start(kept)

    def log_of(self, program: Program) -> Path:
        """A program's log file."""
        return self._folder / f"{program.name}.log"

    def stop(self, names: Sequence[str] | None = None) -> None:
        """Stop programs for good, the last started first: all of them, or those with these names."""
        with self._lock:
            stopped = [kept for kept in self._kept if names is None or kept.program.name in names]
            self._kept = [kept for kept in self._kept if kept not in stopped]
        for kept in reversed(stopped):
            if kept.process is not None:
                kept.process.stop(kept.program.grace_s)

    def _keep(self) -> None:
        while not self._ended.wait(_POLL_S):
            with self._lock:
                for kept in self._kept:
                    self._poll(kept, time.monotonic())

    def _poll(self, kept: _Kept, now: float) -> None:
        if kept.process is None:
            if now >= kept.at:
                self._start(kept)
            return
        code, is_well = kept.process.poll(), now >= kept.at + self._well_s
        if code is None and is_well:
            if kept.said:
                self._tell(logging.INFO, f"{kept.program.name} runs again")
            kept.said.clear()
        elif code is not None:
            trouble = self._trouble(kept.program, kept.process, code)
            kept.process.kill()
            self._wait(kept, trouble, 0.0 if is_well else kept.pause_s, rests=code == SETUP_EXIT_CODE)

    def _start(self, kept: _Kept) -> None:
        program = kept.program
        try:
            kept.process = GuardedProcess(
                [sys.executable, *program.arguments],
                log=self.log_of(program),
                environment={**self._environment, **program.environment},
                without=program.without,
                server=self._server(program.arguments[-1]) if program.is_forked else None,
            )
            kept.at = time.monotonic()
        except OSError as error:
            self._wait(kept, f"{program.name} cannot be started ({error})", kept.pause_s)

    def _server(self, module: str) -> ForkServer:
        """What forks programs of this module; a new one when the last was killed, and its programs with it."""
        server = self._servers.get(module)
        if server is None or not server.lives:
            if server is not None:
                server.close()
            server = self._servers[module] = ForkServer(module, self._folder / "fork-server.log")
        return server

    def _wait(self, kept: _Kept, trouble: str, pause_s: float, *, rests: bool = False) -> None:
        """Report why a program has ended, and let it wait for its next run."""
        kept.process, kept.at = None, time.monotonic() + pause_s
        kept.pause_s = min(max(2 * pause_s, 1.0), self._rest_s if rests else _LONGEST_PAUSE_S)
        # The last line of a log may have a time, a process id or an offset, another one at each death.
        without_numbers = re.sub(r"\d+", "", trouble)
        if without_numbers not in kept.said:
            kept.said.add(without_numbers)
            self._tell(logging.WARNING, trouble)

    def _trouble(self, program: Program, process: GuardedProcess, code: int) -> str:
        last = process.last_line()
        if code == SETUP_EXIT_CODE:
            why = last or f"see {process.log}"
            end = "" if why.endswith(".") else "."
            again = f"It is tried again after longer and longer pauses, up to {self._rest_s:.0f} s."
            return f"{program.name} cannot run: {why}{end} {again}"
        if code < 0:
            return f"the guard of {program.name} has ended, and is restarted with its program"
        if code > 128:
            killed = _signal(code - 128)
            return f"{program.name} was killed ({killed}) and is being restarted; its log is {process.log}"
        return f"{program.name} ended with code {code} ({last or 'no output'}) and is being restarted"

    def _tell(self, level: int, sentence: str) -> None:
        # About one line a month, so it is not rotated. What a full disk refuses is on the screen.
        at = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        with suppress(OSError), open(self._folder / "up.log", "a", encoding="utf-8", opener=open_private) as file:
            file.write(f"{at} {logging.getLevelName(level)} up: {sentence}\n")
        self._say(sentence)


def _signal(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"
