"""The programs of one machine: started, restarted when they die, stopped in order, and reported on.

Supervisor does the work (`supervisor.py`); each program has a parent guard, so that no process of ours outlives the
command, however that ends. This module adds two things: the meaning of our exit codes (after code 2 a person must act
first, so the program rests and is only tried again rarely), and that every event is reported once.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from signal import Signals
from typing import cast

from streaming.exceptions import SETUP_EXIT_CODE, EvenkeelError
from streaming.lifecycle import SUPERVISOR
from streaming.places import open_private, private_folder
from streaming.process.guarded import guarded_command, last_line
from streaming.process.supervisor import EXITED, GIVEN_UP, RUNNING, STOPPED, Supervised, Supervisor, new_folder

_REST_S = 300.0
"""A program that waits for a person is tried again after this time: soon enough for somebody who has fixed the cause
and forgotten about it, and rarely enough to cost nothing over a weekend."""

_OWN_LOG_BYTES = 2**20
"""Enough: `up.log` gets about one line a month."""

_NOTICED_S = 5.0
"""By this time after a death that a guard has noted, the supervisor has noticed it, too."""

_LEFTOVERS_S = 10.0
"""A guard whose supervisor was killed needs its grace of 3 s; the next run waits for that."""

_UNWELL_S = 30.0
"""A supervisor that has not answered for so long is reported, and replaced if it has lost its files. A machine that
swaps answers sooner, and for so long nobody misses a program that has died."""

_UNATTENDED = "a program that dies is not started again. If this lasts, stop evenkeel up and start it again."

_NOT_AGAIN = "The supervisor of the processes cannot be started again: {}"


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
        pid: Process id of its newest run.
        ended: Exit codes of runs that have ended and were not looked at yet.
        rests_until: When it is tried again; None while the supervisor keeps it running.
        said: What was reported of its troubles since it was last well.
        trouble: The newest of them, reported again or not; None while it is well.
        refused: Why the supervisor did not wake it, "" where it did not say; None before the first time.
        down_since: Clock of its last death, if it has not been well since.
    """

    def __init__(self, program: Program, log: Path, runs: Path) -> None:
        self.program = program
        self.log = log
        self.pid: int | None = None
        self.ended: list[int] = []
        self.rests_until: float | None = None
        self.said: set[str] = set()
        self.trouble: str | None = None
        self.refused: str | None = None
        self.down_since: float | None = None
        self._runs = runs
        self._read = 0

    @property
    def lives(self) -> bool:
        """Whether its newest run goes on: by its guard's notes, or by its pid where these were deleted."""
        return self.pid is not None and (self._runs.exists() or _is_alive(self.pid))

    def restart(self, runs: Path) -> None:
        """Forget its runs: it is started by another supervisor, whose guard has other notes."""
        self.pid, self.ended, self.rests_until, self.refused = None, [], None, None
        self._runs, self._read = runs, 0

    def read(self) -> None:
        """Read what its guard has written down since the last call."""
        try:
            with self._runs.open("rb") as file:
                file.seek(self._read)
                new = file.read()
        except FileNotFoundError:
            return
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.decode().splitlines():
            word, pid, *code = line.split()
            self.pid = int(pid) if word == "start" else None
            self.ended += map(int, code)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What another supervisor starts with.

    Attributes:
        folder: Its folder.
        programs: All programs in starting order, each with the file of its runs; their guards' orders are written.
    """

    folder: Path
    programs: list[tuple[Supervised, Path]]


class Programs:
    """Running programs. Call `look` now and then; a context manager that stops them all, last started first."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], say: Callable[[str], None], rest_s: float = _REST_S
    ) -> None:
        """Prepare.

        Args:
            folder: For the logs, this user's alone: one file per program, `up.log` for what is reported,
                `supervisor.log` for each start and end; all rotated by size.
            environment: Variables on top of this process's own; the programs inherit them.
            say: Called with one sentence when a program dies, cannot run, or runs again.
            rest_s: How long a program rests that waits for a person.
        """
        private_folder(folder)
        self._folder = folder
        self._say = say
        self._rest_s = rest_s
        # (In a container that is started again, what starts it is the supervisor.)
        supervisor = os.environ.get(SUPERVISOR) or uuid.uuid4().hex
        self._supervisor = Supervisor(folder / "supervisor.log", {**environment, SUPERVISOR: supervisor})
        self._kept: list[_Kept] = []
        self._unwell_since: float | None = None
        self._unwell_said = False
        self._own_log = _own_log(folder / "up.log")

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, program: Program) -> None:
        """Start a program, and keep it running.

        Raises:
            EvenkeelError: The supervisor does not start.
        """
        supervised, runs = self._supervised(program, self._supervisor.folder)
        self._kept.append(_Kept(program, self.log_of(program), runs))
        self._supervisor.start(supervised)

    def log_of(self, program: Program) -> Path:
        """A program's log file."""
        return self._folder / f"{program.name}.log"

    def pid_of(self, program: Program) -> int | None:
        """The pid of a program's newest run, as of the last `look`; None when it has ended."""
        return next((kept.pid for kept in self._kept if kept.program == program), None)

    def look(self) -> None:
        """Check the programs; report each change once.

        Raises:
            EvenkeelError: The supervisor was killed, or lost its files, and does not start again.
        """
        if self._supervisor.is_gone:
            try:
                prepared = self._prepare()
            except OSError as error:
                raise EvenkeelError(_NOT_AGAIN.format(error)) from error
            self._restart("the supervisor was killed; restarting everything", prepared)
        # Before the supervisor is asked: the output of what had ended is in its log when the answer comes.
        for kept in self._kept:
            kept.read()
        states = self._supervisor.states()
        if not states or self._supervisor.lost_its_files:
            # (If it was killed, so were all programs, and the next look reports that.)
            if self._handle_trouble() or not states:
                return
        else:
            self._is_well()
        for kept in self._kept:
            codes, kept.ended = kept.ended, []
            if kept.rests_until is not None:
                if time.monotonic() >= kept.rests_until:
                    kept.rests_until = None
                    kept.refused = self._supervisor.wake(kept.program.name)
                continue
            for code in codes:
                self._died(kept, code)
            state = states.get(kept.program.name)
            if kept.rests_until is not None:
                continue
            if state == GIVEN_UP:
                self._let_rest(kept, f"{kept.program.name} does not start: see {kept.log}")
            elif state == EXITED and not kept.refused:
                # Its guard could not write that down: the disk is full, say.
                self._died(kept, SETUP_EXIT_CODE)
            elif state in (STOPPED, EXITED) and kept.refused is not None:
                # Waking it has failed: its interpreter is being replaced, say. (One that was never woken, and is just
                # being started, is in this state for a moment, too.)
                self._let_rest(kept, f"{kept.program.name} was not started again ({kept.refused or 'no reason given'})")
            elif state == RUNNING and kept.down_since is not None and time.monotonic() > kept.down_since + _NOTICED_S:
                self._tell(logging.INFO, f"{kept.program.name} runs again")
                kept.down_since = kept.trouble = None
                kept.said.clear()

    def down(self) -> list[str]:
        """One sentence, the newest, for each program that is down now or was not up long enough since."""
        return [kept.trouble for kept in self._kept if kept.trouble is not None]

    def note(self, sentence: str) -> None:
        """Write a sentence to `up.log` only."""
        self._own_log.warning(sentence)

    def stop(self, names: Sequence[str] | None = None) -> None:
        """Stop programs, the last started first: all of them, or those with these names."""
        if names is None:
            self._kept.clear()
            self._supervisor.close()
            self._own_log.handlers[0].close()
            return
        chosen = [kept for kept in reversed(self._kept) if kept.program.name in names]
        self._supervisor.stop([kept.program.name for kept in chosen])
        self._kept = [kept for kept in self._kept if kept not in chosen]

    def _supervised(self, program: Program, folder: Path) -> tuple[Supervised, Path]:
        """A program as the supervisor gets it, and the file of its runs; writes its guard's order."""
        command = [sys.executable, *program.arguments]
        guarded, runs = guarded_command(command, program.grace_s, folder, program.name, program.without)
        return Supervised(program.name, tuple(guarded), program.grace_s, self.log_of(program)), runs

    def _is_well(self) -> None:
        """The supervisor has answered, and has its files."""
        self._unwell_since = None
        if self._unwell_said:
            self._unwell_said = False
            self._tell(logging.INFO, "the supervisor answers again")

    def _handle_trouble(self) -> bool:
        """The supervisor gives no answer, or has lost its files: after a while say so, once, or replace it.

        Returns:
            Whether it was replaced.

        Raises:
            EvenkeelError: It was ended, and another one does not start.
        """
        now = time.monotonic()
        if self._unwell_since is None:
            self._unwell_since = now
        if not self._kept or self._unwell_said or now < self._unwell_since + _UNWELL_S:
            return False
        self._unwell_said = True
        if not self._supervisor.lost_its_files:
            # (It may stand still, with the machine. No second one beside it: that would start every program twice.)
            self._tell(logging.ERROR, f"the supervisor does not answer: {_UNATTENDED}")
            return False
        # Its programs go on, but one that dies is not started again: the guards' orders were deleted with the socket.
        lost = f"the supervisor has lost its files: somebody has deleted {self._supervisor.folder} or what was in it"
        try:
            prepared = self._prepare()
        except OSError as error:
            self._tell(logging.ERROR, f"{lost}. There is no place for others ({error}): {_UNATTENDED}")
            return False
        self._restart(f"{lost}; restarting everything", prepared)
        return True

    def _prepare(self) -> _Prepared:
        """Write what another supervisor needs, in a folder of its own.

        Raises:
            OSError: The folder cannot be written.
        """
        folder = new_folder()
        return _Prepared(folder, [self._supervised(kept.program, folder) for kept in self._kept])

    def _restart(self, why: str, prepared: _Prepared) -> None:
        """Start another supervisor with all programs, once the old one and everything of it have ended.

        Should a program of the old one live on for all that, its lock refuses the new copy with code 2, which rests.

        Raises:
            EvenkeelError: It does not start.
        """
        self._tell(logging.ERROR, why)
        try:
            self._supervisor.end_at_once()
            self._wait_for_leftovers()
            for kept, (_, runs) in zip(self._kept, prepared.programs, strict=True):
                kept.restart(runs)
            self._supervisor.relaunch(prepared.folder, [supervised for supervised, _ in prepared.programs])
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EvenkeelError(_NOT_AGAIN.format(error)) from error
        self._unwell_since, self._unwell_said = None, False

    def _died(self, kept: _Kept, code: int) -> None:
        name = kept.program.name
        # (A log that has just been rotated is empty.)
        last = last_line(kept.log) or last_line(kept.log.with_name(f"{kept.log.name}.1"))
        kept.down_since = time.monotonic()
        if code == SETUP_EXIT_CODE:
            self._let_rest(kept, f"{name} cannot run: {last or f'see {kept.log}'}")
        elif code > 128:
            self._once(kept, f"{name} was killed ({_signal(code - 128)}) and is being restarted; its log is {kept.log}")
        else:
            self._once(kept, f"{name} ended with code {code} ({last or 'no output'}) and is being restarted")

    def _let_rest(self, kept: _Kept, why: str) -> None:
        kept.down_since = time.monotonic()
        kept.rests_until = time.monotonic() + self._rest_s
        self._supervisor.rest(kept.program.name)
        self._once(kept, f"{why}{'' if why.endswith('.') else '.'} It is tried again every {self._rest_s:.0f} s.")

    def _once(self, kept: _Kept, sentence: str) -> None:
        kept.trouble = sentence
        if sentence not in kept.said:
            kept.said.add(sentence)
            self._tell(logging.WARNING, sentence)

    def _tell(self, level: int, sentence: str) -> None:
        self._own_log.log(level, sentence)
        self._say(sentence)

    def _wait_for_leftovers(self) -> None:
        """Wait until the guards have ended what a killed supervisor left behind; they are not reported one by one."""
        deadline = time.monotonic() + _LEFTOVERS_S
        pause = threading.Event()
        while time.monotonic() < deadline:
            for kept in self._kept:
                kept.read()
                kept.ended.clear()
            if not any(kept.lives for kept in self._kept):
                return
            pause.wait(0.1)


class _PrivateLog(RotatingFileHandler):
    def _open(self) -> TextIOWrapper:
        file = open(self.baseFilename, self.mode, encoding=self.encoding, opener=open_private)  # noqa: SIM115
        return cast("TextIOWrapper", file)


def _own_log(path: Path) -> logging.Logger:
    handler = _PrivateLog(path, maxBytes=_OWN_LOG_BYTES, backupCount=1, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s up: %(message)s"))
    # Outside the tree of loggers, whose handlers would print it: `say` reports to the terminal.
    logger = logging.Logger("up")
    logger.addHandler(handler)
    return logger


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):  # (the latter: another user's, so ours is gone)
        return False
    return True


def _signal(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"
