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
from collections.abc import Callable

GRACE_S = 3.0
"""A broker needs this long at most to close its log cleanly; nobody waits for it, since the starter is gone."""

_BACKUPS = 5
"""Each has up to 10 MB: weeks of a healthy job, and all of a bad night."""

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
                os.replace(newer, older)  # noqa: PTH105 - pathlib costs a third of the start


def main() -> int:
    """Run the program; returns its exit code."""
    log, log_bytes, *command = sys.argv[1:]
    program = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if log else sys.stderr,
        stderr=subprocess.STDOUT if log else None,
        process_group=0,
        preexec_fn=die_with_the_guard,  # noqa: PLW1509 - no other thread has started yet
    )
    output = program.stdout.fileno() if program.stdout is not None else None
    return guard(program.pid, program.terminate, program.wait, output, log, int(log_bytes))


def guard(
    pid: int, terminate: Callable[[], object], wait: Callable[[], int], output: int | None, log: str, log_bytes: int
) -> int:
    """Guard a program that this process has just started; returns the exit code to end with.

    Args:
        pid: Its process id.
        terminate: Sends it SIGTERM.
        wait: Waits for its end; returns its exit code, -n for signal n.
        output: What it prints comes out here; None where that goes to standard error.
        log: File for its output.
        log_bytes: At which size that is rotated.
    """
    starter = os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: terminate())
    os.write(1, f"{pid}\n".encode())
    threading.Thread(target=_obey, args=(pid, terminate, starter), daemon=True).start()
    writer = threading.Thread(target=_pass_on, args=(output, _Log(log, log_bytes)), daemon=True)
    if output is not None:
        writer.start()
    code = wait()
    _kill(pid)
    if output is not None:
        writer.join(_LAST_OUTPUT_S)
    if code >= 0:
        return code
    return 128 - code


def _obey(pid: int, terminate: Callable[[], object], starter: int) -> None:
    """Do what the starter says, until it is gone."""
    while True:
        ready = select.select([0], [], [], _POLL_S)[0]
        order = os.read(0, 1) if ready else None
        if order == b"K":
            _kill(pid)
        elif order == b"T":
            terminate()
        elif order == b"" or os.getppid() != starter:
            terminate()
            time.sleep(GRACE_S)
            _kill(pid)
            return


def _pass_on(output: int, log: _Log) -> None:
    """Write to the log what the program prints."""
    while data := os.read(output, _CHUNK):
        log.write(data)
    log.write(b"", is_end=True)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: PermissionError for a group of zombies
        os.killpg(group, signal.SIGKILL)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def die_with_the_guard() -> None:
    """Called in the program's process: on Linux it gets SIGKILL when the guard is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
