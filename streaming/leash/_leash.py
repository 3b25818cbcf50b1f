"""Run a program that must not outlive the process that started this one.

    python _leash.py PROGRAM [ARGUMENT ...]

Stands between starter and program, on Linux and macOS alike, because nothing else survives a `kill -9` of the
starter: `PR_SET_PDEATHSIG` is Linux's alone, and fires when the starting *thread* ends. Imports the standard
library only and starts in 30 ms.

Standard input is the leash. The starter writes one byte to act: `T` passes SIGTERM on, `K` SIGKILL. At its end
(the starter is gone, however it went), or when the parent's id changes (a fork of the starter may hold the
other end open), the program gets SIGTERM, and SIGKILL `GRACE_S` later. The first line of standard output is the
program's pid; the exit code is the program's, 128 + n for signal n. What the program prints goes to standard
error.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time

GRACE_S = 3.0
"""What a broker needs at most to close its log cleanly; nobody waits for it, the starter being gone."""

_POLL_S = 0.5
"""How late the death of a starter whose pipe a fork holds open is noticed."""

_PR_SET_PDEATHSIG = 1
"""Linux's prctl(2) option, for the case that this very process is killed. It has one thread: safe here."""


def main() -> int:
    """Start the program, pass signals on, return its exit code."""
    starter = os.getppid()
    child_ended, wake_up = os.pipe()
    os.set_blocking(wake_up, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_up, warn_on_full_buffer=False)
    program = subprocess.Popen(
        sys.argv[1:],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        preexec_fn=_die_with_this_process,  # noqa: PLW1509  (one thread)
    )
    os.write(1, f"{program.pid}\n".encode())
    leash: list[int] = [0]
    kill_at: float | None = None
    while program.poll() is None:
        ready = select.select([child_ended, *leash], [], [], _POLL_S)[0]
        order = os.read(0, 1) if 0 in ready else None
        if order == b"T":
            program.terminate()
        elif order == b"K":
            program.kill()
        elif (order == b"" or os.getppid() != starter) and kill_at is None:
            leash = []
            program.terminate()
            kill_at = time.monotonic() + GRACE_S
        if kill_at is not None and time.monotonic() > kill_at:
            program.kill()
    code = program.returncode
    return code if code >= 0 else 128 - code


def _die_with_this_process() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
