"""Run a program that must not outlive the process that started this one.

    python _guard.py LOG LOG_BYTES PROGRAM [ARGUMENT ...]

It stands between starter and program, on Linux and macOS alike, because nothing else survives a `kill -9` of the
starter: `PR_SET_PDEATHSIG` exists on Linux only, and fires when the starting *thread* ends. It imports the standard
library only and starts in 30 ms.

Standard output gets one line, the program's process id. The starter writes one byte to standard input to act: `T`
passes SIGTERM on, `K` SIGKILL. When standard input ends (the starter is gone, however it ended), or when the parent's
id changes (a fork of the starter may hold the other end open), the program gets SIGTERM, and SIGKILL `GRACE_S` later.
The exit code is the program's, 128 + n for signal n. The program leads a process group of its own, and anything left of
that group when it has ended (the JVM of a killed job) gets SIGKILL.

The program's output goes to the file LOG, which is rotated at LOG_BYTES; to standard error where LOG is empty.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time

TYPE_CHECKING = False  # (`typing` takes a third of the start)
if TYPE_CHECKING:
    from streaming.process._fork_server import Forked

GRACE_S = 3.0
"""A broker needs this long at most to close its log cleanly; nobody waits for it, since the starter is gone."""

_BACKUPS = 5
"""Of 10 MB each: weeks of a healthy job, and all of a bad night."""

_POLL_S = 0.5
"""The longest delay until the death of a starter is noticed whose pipe a fork holds open."""

_CHUNK = 1 << 16

_LONGEST_LINE = 1 << 20

_LAST_OUTPUT_S = 1.0
"""How long the output is read after the end: a process that left the group may hold it open, and write on for ever."""

_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")

_PR_SET_PDEATHSIG = 1
"""Linux's prctl(2) option, in case this very process is killed. The main thread starts the program and outlives it."""


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


def main() -> int:
    """Run the program; returns its exit code."""
    log, log_bytes, *command = sys.argv[1:]
    program = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if log else sys.stderr,
        stderr=subprocess.STDOUT if log else None,
        process_group=0,
        preexec_fn=die_with_the_guard,  # noqa: PLW1509  (no other thread has started yet)
    )
    return guard(program, log, int(log_bytes))


def guard(program: subprocess.Popen[bytes] | Forked, log: str, log_bytes: int) -> int:
    """Guard a program that this process has just started; returns the exit code to end with."""
    starter = os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: program.terminate())
    os.write(1, f"{program.pid}\n".encode())
    threading.Thread(target=_obey, args=(program, starter), daemon=True).start()
    writer = threading.Thread(target=_pass_on, args=(program, _Log(log, log_bytes)), daemon=True)
    if log:
        writer.start()
    code = program.wait()
    _kill(program.pid)
    if log:
        writer.join(_LAST_OUTPUT_S)
    if code >= 0:
        return code
    return 128 - code


def _obey(program: subprocess.Popen[bytes] | Forked, starter: int) -> None:
    """Do what the starter says, until it is gone."""
    while True:
        ready = select.select([0], [], [], _POLL_S)[0]
        order = os.read(0, 1) if ready else None
        if order == b"K":
            _kill(program.pid)
        elif order == b"T":
            program.terminate()
        elif order == b"" or os.getppid() != starter:
            program.terminate()
            time.sleep(GRACE_S)
            _kill(program.pid)
            return


def _pass_on(program: subprocess.Popen[bytes] | Forked, log: _Log) -> None:
    """Write to the log what the program prints."""
    assert program.stdout is not None  # noqa: S101  (for the type checker: there is a pipe where there is a log)
    while data := os.read(program.stdout.fileno(), _CHUNK):
        log.write(data)
    log.write(b"", is_end=True)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # (macOS: PermissionError for a group of zombies)
        os.killpg(group, signal.SIGKILL)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def die_with_the_guard() -> None:
    """Called in the program's process: on Linux it gets SIGKILL when the guard is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
