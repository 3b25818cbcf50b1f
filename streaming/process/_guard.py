"""Run a program that must not outlive the process that started this one, once or for good.

    python _guard.py PROGRAM [ARGUMENT ...]
    python _guard.py --keep OPTIONS PROGRAM [ARGUMENT ...]

It stands between starter and program, on Linux and macOS alike, because nothing else survives a `kill -9` of the
starter: `PR_SET_PDEATHSIG` exists on Linux only, and fires when the starting *thread* ends. It imports the standard
library only and starts in 30 ms. Nothing that stops its starter for a while stops it: Ctrl-Z, or a terminal that
nobody reads.

The starter writes one byte to standard input to act: `T` passes SIGTERM on, `K` SIGKILL; no further run follows either.
When standard input ends (the starter is gone, however it ended), or when the parent's id changes (a fork of the starter
may hold the other end open), the program gets SIGTERM, and SIGKILL `GRACE_S` later. The exit code is the program's,
128 + n for signal n. The program leads a process group of its own, and anything left of that group when it has ended
(the JVM of a killed job) gets SIGKILL.

Standard output gets a line for each event: `start PID`, `end CODE`, and `well` once a run has lasted.

With `--keep` a program that ends is started again, after a pause that doubles from 1 s to `LONGEST_PAUSE_S` until a run
has lasted. OPTIONS is JSON: `grace_s`, the time from `T` to SIGKILL; `well_s`, how long a run lasts that is well;
`rest_code` and `rest_s`, an exit code after which a person must act first, and the pause after it; `log` and
`log_bytes`, a file for the program's output that is rotated at this size. Without `--keep` the output goes to standard
error, and `T` sets no limit.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import re
import select
import signal
import subprocess
import sys
import time

GRACE_S = 3.0
"""A broker needs this long at most to close its log cleanly; nobody waits for it, since the starter is gone."""

LONGEST_PAUSE_S = 60.0
"""Soon enough after an outage of hours, and rarely enough to leave the machine to others."""

_BACKUPS = 5
"""Of 10 MB each: weeks of a healthy job, and all of a bad night."""

_POLL_S = 0.5
"""The longest delay until the death of a starter is noticed whose pipe a fork holds open."""

_CHUNK = 1 << 16

_LONGEST_LINE = 1 << 20

_MOST_CHUNKS = 100
"""What is read of the output after the end: a process that left the group may write on for ever."""

_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")

_PR_SET_PDEATHSIG = 1
"""Linux's prctl(2) option, in case this very process is killed. It has one thread, so the option is safe here."""


class _Log:
    """A file that is rotated by size, in whole lines without escapes. What a full disk refuses is lost."""

    def __init__(self, path: str, most: int) -> None:
        self._path, self._most, self._rest = path, most, b""

    def write(self, data: bytes, *, is_end: bool = False) -> None:
        data = self._rest + data
        whole = len(data) if is_end or len(data) > _LONGEST_LINE else data.rfind(b"\n") + 1
        self._rest = data[whole:]
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileNotFoundError):
                if os.stat(self._path).st_size + whole > self._most:  # noqa: PTH116
                    self._rotate()
            with open(self._path, "ab", opener=_private) as file:
                file.write(_ESCAPES.sub(b"", data[:whole]))

    def _rotate(self) -> None:
        names = [self._path, *(f"{self._path}.{number}" for number in range(1, _BACKUPS + 1))]
        for older, newer in zip(reversed(names), reversed(names[:-1]), strict=False):
            with contextlib.suppress(FileNotFoundError):
                os.replace(newer, older)  # noqa: PTH105  (pathlib costs a third of the start)


class _Guard:
    """Runs the program, and listens to the starter meanwhile.

    Attributes:
        stops: No further run follows.
    """

    def __init__(self, command: list[str], grace_s: float, log: _Log | None) -> None:
        self.stops = False
        self._command, self._grace_s, self._log = command, grace_s, log
        self._starter, self._orders = os.getppid(), [0]
        self._program: subprocess.Popen[bytes] | None = None
        self._kill_at = math.inf
        self._woken, wake_up = os.pipe()
        for end in (self._woken, wake_up, 1):
            os.set_blocking(end, False)
        self._terminated = False
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.set_wakeup_fd(wake_up, warn_on_full_buffer=False)

    def run(self, well_s: float) -> tuple[int, bool]:
        """Run the program once; returns its exit code, and whether the run lasted."""
        self._program = program = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr if self._log is None else subprocess.PIPE,
            stderr=None if self._log is None else subprocess.STDOUT,
            process_group=0,
            preexec_fn=_die_with_this_process,  # noqa: PLW1509  (one thread)
        )
        write_event(f"start {program.pid}")
        well_at, is_well = time.monotonic() + well_s, False
        if program.stdout is not None:
            os.set_blocking(program.stdout.fileno(), False)
        while program.poll() is None:
            self.listen(_POLL_S)
            now = time.monotonic()
            if now > self._kill_at:
                _kill(program.pid)
            if now > well_at and not is_well:
                is_well = True
                write_event("well")
        _kill(program.pid)
        for _ in range(_MOST_CHUNKS):
            if not self._pass_on():
                break
        if self._log is not None:
            self._log.write(b"", is_end=True)
        self._program = None
        code = program.returncode if program.returncode >= 0 else 128 - program.returncode
        write_event(f"end {code}")
        return code, is_well

    def listen(self, seconds: float) -> None:
        """Wait for the end of the program, its output, or the starter's word; at most for so long."""
        output = [] if self._program is None or self._program.stdout is None else [self._program.stdout.fileno()]
        ready = select.select([self._woken, *self._orders, *output], [], [], seconds)[0]
        if self._woken in ready:
            os.read(self._woken, 4096)
        if output and output[0] in ready and not self._pass_on() and self._program is not None:
            self._program.stdout = None
        order = os.read(0, 1) if 0 in ready else None
        if order == b"K":
            self._stop(0.0)
        elif order == b"T" or self._terminated:
            self._terminated = False
            self._stop(self._grace_s)
        elif self._orders and (order == b"" or os.getppid() != self._starter):
            self._orders = []
            self._stop(GRACE_S)

    def _stop(self, grace_s: float) -> None:
        self.stops = True
        self._kill_at = min(self._kill_at, time.monotonic() + grace_s)
        if self._program is not None:
            if grace_s:
                self._program.terminate()
            else:
                _kill(self._program.pid)

    def _pass_on(self) -> bool:
        """Write to the log what the program has written; whether more may come."""
        if self._log is None or self._program is None or self._program.stdout is None:
            return False
        try:
            data = os.read(self._program.stdout.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        self._log.write(data)
        return bool(data)

    def _on_sigterm(self, *_: object) -> None:
        self._terminated = True


def main() -> int:
    """Run the program; returns its last exit code."""
    if sys.argv[1] != "--keep":
        return _Guard(sys.argv[1:], math.inf, None).run(math.inf)[0]
    options = json.loads(sys.argv[2])
    guard = _Guard(sys.argv[3:], options["grace_s"], _Log(options["log"], options["log_bytes"]))
    pause_s = 1.0
    while True:
        code, was_well = guard.run(options["well_s"])
        if guard.stops:
            return code
        pause_s = 1.0 if was_well else pause_s
        until = time.monotonic() + (options["rest_s"] if code == options["rest_code"] else pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        while time.monotonic() < until:
            guard.listen(min(_POLL_S, max(0.0, until - time.monotonic())))
            if guard.stops:
                return code


def write_event(event: str) -> None:
    """Write an event to the starter. One that does not read has 64 KB of them to come back to."""
    with contextlib.suppress(OSError):
        os.write(1, f"{event}\n".encode())


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # (macOS: PermissionError for a group of zombies)
        os.killpg(group, signal.SIGKILL)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _die_with_this_process() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
