"""The programs of one machine: started, restarted when they die, stopped in order, and reported on.

Each program has a guard of its own (`_guard.py`), which restarts it and rotates its log, also while this process stands
still, and ends it when this process has gone. Here every event becomes one sentence, and a guard that was killed is
replaced.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from signal import SIGKILL, Signals

from streaming.exceptions import SETUP_EXIT_CODE
from streaming.lifecycle import SUPERVISOR
from streaming.places import open_private, private_folder
from streaming.process.guarded import last_line, start_guard

_REST_S = 300.0
"""A program that waits for a person is tried again after this time: soon enough for somebody who has fixed the cause
and forgotten about it, and rarely enough to cost nothing over a weekend."""

_WELL_S = 60.0
"""A program that has run this long is well: later pauses begin from 1 s again. A cold job's first batch takes 20 s."""

_LOG_BYTES = 10 * 2**20

_LATE_S = 10.0
"""A guard that has not ended so long after its program's grace is killed, and its program with it."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program.

    Attributes:
        name: Name, in messages and of its log file.
        arguments: Arguments of this Python interpreter.
        grace_s: How long it may take to stop after SIGTERM.
        without: Prefixes of environment variables that it does not get: secrets of others.
    """

    name: str
    arguments: tuple[str, ...]
    grace_s: float
    without: tuple[str, ...] = ()


class _Kept:
    """The state of one program.

    Attributes:
        guard: Its guard; None while none can be started.
        pid: Process id of its newest run; None when that has ended.
        said: What was reported of its troubles since it was last well, without numbers.
        trouble: The newest of them, reported again or not; None while it is well.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.guard: subprocess.Popen[bytes] | None = None
        self.pid: int | None = None
        self.said: set[str] = set()
        self.trouble: str | None = None
        self._rest = b""

    def events(self) -> Iterator[list[str]]:
        """The words of each event that its guard has written since the last call."""
        if self.guard is None or self.guard.stdout is None:
            return
        with suppress(BlockingIOError):
            self._rest += os.read(self.guard.stdout.fileno(), 1 << 16)
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            yield line.decode().split()


class Programs:
    """Running programs. Call `poll` now and then; a context manager that stops them all, last started first."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        say: Callable[[str], None],
        rest_s: float = _REST_S,
        well_s: float = _WELL_S,
    ) -> None:
        """Prepare.

        Args:
            folder: For the logs, this user's alone: one file per program, rotated by size, and `up.log` for what is
                reported.
            environment: Variables on top of this process's own; the programs inherit them.
            say: Called with one sentence when a program dies, cannot run, or runs again.
            rest_s: How long a program rests that waits for a person.
            well_s: How long a run lasts before the program counts as well.
        """
        private_folder(folder)
        self._folder, self._say, self._rest_s, self._well_s = folder, say, rest_s, well_s
        self._environment = dict(environment)
        self._kept: list[_Kept] = []

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, program: Program) -> None:
        """Start a program, and keep it running."""
        kept = _Kept(program)
        self._kept.append(kept)
        self._start(kept)

    def log_of(self, program: Program) -> Path:
        """A program's log file."""
        return self._folder / f"{program.name}.log"

    def pid_of(self, program: Program) -> int | None:
        """The pid of a program's newest run, as of the last `poll`; None when it has ended."""
        return next((kept.pid for kept in self._kept if kept.program == program), None)

    def poll(self) -> None:
        """Read what has happened to the programs; report each change once."""
        for kept in self._kept:
            for event in kept.events():
                match event:
                    case ["start", pid]:
                        kept.pid = int(pid)
                    case ["end", code]:
                        kept.pid = None
                        self._died(kept, int(code))
                    case _:
                        if kept.trouble is not None:
                            self._tell(logging.INFO, f"{kept.program.name} runs again")
                        kept.trouble = None
                        kept.said.clear()
            if kept.guard is None or kept.guard.poll() is not None:
                if kept.pid is not None:
                    # The program has died with its guard, on Linux. Its children have not, nor has it on macOS.
                    with suppress(ProcessLookupError, PermissionError):
                        os.killpg(kept.pid, SIGKILL)
                    kept.pid = None
                self._once(kept, f"the guard of {kept.program.name} has ended, and is restarted with its program")
                self._start(kept)

    def down(self) -> list[str]:
        """One sentence, the newest, for each program that is down now or was not up long enough since."""
        return [kept.trouble for kept in self._kept if kept.trouble is not None]

    def note(self, sentence: str) -> None:
        """Write a sentence to `up.log` only."""
        self._write(logging.WARNING, sentence)

    def stop(self, names: Sequence[str] | None = None) -> None:
        """Stop programs for good, the last started first: all of them, or those with these names."""
        for kept in [kept for kept in reversed(self._kept) if names is None or kept.program.name in names]:
            self._kept.remove(kept)
            if kept.guard is not None:
                _end(kept.guard, kept.program.grace_s + _LATE_S)

    def _start(self, kept: _Kept) -> None:
        program = kept.program
        # A probe knows by this name that its predecessor is dead. In a container that is started again, what starts
        # everything again has set it.
        named = {SUPERVISOR: os.environ.get(SUPERVISOR) or uuid.uuid4().hex}
        environment = {
            name: value
            for name, value in {**os.environ, **self._environment, **named}.items()
            if not name.startswith(program.without)
        }
        options = {
            "grace_s": program.grace_s,
            "well_s": self._well_s,
            "rest_code": SETUP_EXIT_CODE,
            "rest_s": self._rest_s,
            "log": str(self.log_of(program)),
            "log_bytes": _LOG_BYTES,
        }
        arguments = ["--keep", json.dumps(options), sys.executable, *program.arguments]
        try:
            kept.guard = start_guard(arguments, self.log_of(program), None, environment)
        except OSError as error:
            kept.guard = None
            self._once(kept, f"{program.name} cannot be started ({error})")
            return
        assert kept.guard.stdout is not None  # noqa: S101  (for the type checker: we asked for a pipe)
        os.set_blocking(kept.guard.stdout.fileno(), False)

    def _died(self, kept: _Kept, code: int) -> None:
        name, log = kept.program.name, self.log_of(kept.program)
        # A log that has just been rotated is empty.
        last = last_line(log) or last_line(log.with_name(f"{log.name}.1"))
        if code == SETUP_EXIT_CODE:
            why = last or f"see {log}"
            end = "" if why.endswith(".") else "."
            self._once(kept, f"{name} cannot run: {why}{end} It is tried again every {self._rest_s:.0f} s.")
        elif code > 128:
            self._once(kept, f"{name} was killed ({_signal(code - 128)}) and is being restarted; its log is {log}")
        else:
            self._once(kept, f"{name} ended with code {code} ({last or 'no output'}) and is being restarted")

    def _once(self, kept: _Kept, sentence: str) -> None:
        kept.trouble = sentence
        # The last line of a log may have a time, a process id or an offset, another one at each death.
        without_numbers = re.sub(r"\d+", "", sentence)
        if without_numbers not in kept.said:
            kept.said.add(without_numbers)
            self._tell(logging.WARNING, sentence)

    def _tell(self, level: int, sentence: str) -> None:
        self._write(level, sentence)
        self._say(sentence)

    def _write(self, level: int, sentence: str) -> None:
        # About one line a month, so it is not rotated. What a full disk refuses is on the screen.
        at = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        with suppress(OSError), open(self._folder / "up.log", "a", encoding="utf-8", opener=open_private) as file:
            file.write(f"{at} {logging.getLevelName(level)} up: {sentence}\n")


def _end(guard: subprocess.Popen[bytes], patience_s: float) -> None:
    # Orders stay open meanwhile: their end would say that nobody waits.
    with guard:
        try:
            with suppress(BrokenPipeError):
                os.write(guard.stdin.fileno(), b"T")  # type: ignore[union-attr]  # we asked for a pipe
            guard.wait(patience_s)
        except subprocess.TimeoutExpired:
            guard.kill()


def _signal(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"
