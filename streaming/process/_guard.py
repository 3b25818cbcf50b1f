"""Run a program that must not outlive the process that started this one.

    python _guard.py PROGRAM [ARGUMENT ...]
    python _guard.py --order FILE

It stands between starter and program, on Linux and macOS alike, because nothing else survives a `kill -9` of the
starter: `PR_SET_PDEATHSIG` exists on Linux only, and fires when the starting *thread* ends. It imports the standard
library only and starts in 30 ms.

The starter writes one byte to standard input to act: `T` passes SIGTERM on, `K` SIGKILL. When standard input ends
(the starter is gone, however it ended), or when the parent's id changes (a fork of the starter may hold the other end
open), the program gets SIGTERM, and SIGKILL `GRACE_S` later. The exit code is the program's, 128 + n for signal n. The
program's output goes to standard error. The program leads a process group of its own, and anything left of that group
when it has ended (the JVM of a killed job) gets SIGKILL.

In the first form the first line of standard output is the program's pid.

The second form is for a supervisor that knows signals and no pipe. FILE is JSON: `command`; `grace_s`, the time from
the supervisor's SIGTERM, which is passed on, to SIGKILL; `without`, prefixes of environment variables that the program
does not get; `runs`, a file to which each run appends two lines, `start PID` and `end PID CODE`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time

GRACE_S = 3.0
"""A broker needs this long at most to close its log cleanly; nobody waits for it, since the starter is gone."""

_POLL_S = 0.5
"""The longest delay until the death of a starter is noticed whose pipe a fork holds open."""

_PR_SET_PDEATHSIG = 1
"""Linux's prctl(2) option, in case this very process is killed. It has one thread, so the option is safe here."""


def main() -> int:
    """Start the program, pass signals on, return its exit code."""
    if sys.argv[1] == "--order":
        with open(sys.argv[2], encoding="utf-8") as file:  # noqa: PTH123  (pathlib costs a third of the start)
            order = json.load(file)
        for name in list(os.environ):
            if name.startswith(tuple(order["without"])):
                del os.environ[name]
        return _run(order["command"], order["grace_s"], order["runs"])
    return _run(sys.argv[1:], GRACE_S, None)


def _run(command: list[str], grace_s: float, runs: str | None) -> int:
    starter = os.getppid()
    woken, wake_up = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake_up, False)
    asked: list[int] = []
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    signal.set_wakeup_fd(wake_up, warn_on_full_buffer=False)
    program = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        process_group=0,
        preexec_fn=_die_with_this_process,  # noqa: PLW1509  (one thread)
    )
    if runs is None:
        os.write(1, f"{program.pid}\n".encode())
    else:
        _note(runs, f"start {program.pid}")
    guard: list[int] = [0]
    kill_at: float | None = None
    while program.poll() is None:
        ready = select.select([woken, *guard], [], [], _POLL_S)[0]
        if woken in ready:
            os.read(woken, 4096)
        order = os.read(0, 1) if 0 in ready else None
        if order == b"T":
            program.terminate()
        elif order == b"K":
            _kill(program.pid)
        elif (order == b"" or os.getppid() != starter) and guard:
            guard = []
            program.terminate()
            kill_at = time.monotonic() + GRACE_S
        if asked:
            asked.clear()
            program.terminate()
            kill_at = kill_at or time.monotonic() + grace_s
        if kill_at is not None and time.monotonic() > kill_at:
            _kill(program.pid)
    _kill(program.pid)
    code = program.returncode if program.returncode >= 0 else 128 - program.returncode
    if runs is not None:
        _note(runs, f"end {program.pid} {code}")
    return code


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # (macOS: PermissionError for a group of zombies)
        os.killpg(group, signal.SIGKILL)


def _note(runs: str, line: str) -> None:
    # A run that cannot be noted costs one line in the terminal, not the program.
    with contextlib.suppress(OSError), open(runs, "a", encoding="utf-8", opener=_private) as file:
        file.write(line + "\n")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _die_with_this_process() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
