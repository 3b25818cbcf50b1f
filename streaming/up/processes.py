"""The processes of one machine: started, restarted when they die, stopped in order.

Each runs on a leash, so that nothing of ours outlives the command, however that ends.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streaming.exceptions import SETUP_EXIT_CODE, SetupError
from streaming.leash import LeashedProcess

__all__ = ["Program", "Programs"]

# A program that dies at once is tried again soon, then ever more rarely: a broker's restart takes seconds, a wrong
# setting lasts until somebody mends it.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0

# A program that has run this long was well: its next death starts from the short pause again.
_WELL_AFTER_S = 60.0


@dataclass(frozen=True, slots=True)
class Program:
    """One program.

    Attributes:
        name: Name, in messages and of its log file.
        arguments: Arguments of this Python interpreter.
        grace_s: How long it may take to stop after SIGTERM.
    """

    name: str
    arguments: tuple[str, ...]
    grace_s: float


class _Running:
    def __init__(self, program: Program, process: LeashedProcess) -> None:
        self.program = program
        self.process: LeashedProcess | None = process
        self.began = time.monotonic()
        self.pause_s = _FIRST_PAUSE_S
        self.due = 0.0


class Programs:
    """Running programs. Call `look` now and then; a context manager that stops them all, last started first."""

    def __init__(self, folder: Path, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
        """Prepare.

        Args:
            folder: Where the logs go, one file a program.
            environment: Variables on top of this process's own; they reach the programs by inheritance.
            say: Told one sentence when a program dies and when it is started again.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._environment = dict(environment)
        self._say = say
        self._running: list[_Running] = []

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, program: Program) -> LeashedProcess:
        """Start a program."""
        process = self._launch(program)
        self._running.append(_Running(program, process))
        return process

    def log_of(self, program: Program) -> Path:
        """A program's log file."""
        return self._folder / f"{program.name}.log"

    def look(self) -> None:
        """Start what has died again, after a pause that grows.

        Raises:
            SetupError: A program says that a person must do something first; its own sentence.
        """
        now = time.monotonic()
        for running in self._running:
            if running.process is None:
                if now >= running.due:
                    running.process = self._launch(running.program)
                    running.began = now
                    self._say(f"{running.program.name} was started again")
                continue
            code = running.process.poll()
            if code is None:
                continue
            last = running.process.last_line()
            if code == SETUP_EXIT_CODE:
                raise SetupError(last or f"{running.program.name} could not start: see {running.process.log}")
            if now - running.began > _WELL_AFTER_S:
                running.pause_s = _FIRST_PAUSE_S
            self._say(
                f"{running.program.name} ended with code {code} ({last or 'it said nothing'}); "
                f"again in {running.pause_s:.0f} s, its log is {running.process.log}"
            )
            running.process = None
            running.due = now + running.pause_s
            running.pause_s = min(2 * running.pause_s, _LONGEST_PAUSE_S)

    def stop(self, names: Sequence[str] | None = None) -> None:
        """Stop programs, the last started first; all of them, or those of these names."""
        for running in reversed(list(self._running)):
            if names is not None and running.program.name not in names:
                continue
            self._running.remove(running)
            if running.process is not None:
                running.process.stop(running.program.grace_s)

    def _launch(self, program: Program) -> LeashedProcess:
        with _environment(self._environment):
            return LeashedProcess([sys.executable, *program.arguments], log=self.log_of(program))


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for a child that inherits them; secrets go this way, which no process list shows."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
