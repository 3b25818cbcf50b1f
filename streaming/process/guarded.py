"""Start programs that end with us, however we end, and that only we stop: a Ctrl-C does not reach them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from streaming.places import open_private

SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""Keeps the working folder off the path of every Python below (Spark's workers among them): `python -m` would put it
first, and a `duckdb.py` in it would run in place of the library, with our secrets in its environment."""

_GUARD = Path(__file__).with_name("_guard.py")

_KILL_S = 10.0
"""A killed process is gone in milliseconds; longer than this means a machine in trouble, and we say so."""


class GuardedProcess:
    """One running program under a guard (`_guard.py`) that ends it when this process ends.

    Runs in a session of its own, so a terminal's Ctrl-C leaves it running until we stop it in our order.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path | None,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start it.

        Args:
            command: Program and arguments.
            log: File that its output is appended to, readable by this user only; None for our standard error.
            cwd: Its folder; None for ours.
            environment: Variables on top of ours; secrets are passed this way, because no process list shows them.

        Raises:
            OSError: The program or the log file cannot be opened.
        """
        self.log = log
        self._guard = start_guard(list(map(str, command)), log, cwd, {**os.environ, **(environment or {})})
        assert self._guard.stdout is not None  # noqa: S101  (for the type checker: we asked for a pipe)
        first_line = self._guard.stdout.readline()
        if not first_line:
            self._guard.wait()
            message = f"{command[0]} could not be started: {self.last_line()}"
            raise OSError(message)
        self.pid = int(first_line.split()[1])

    def poll(self) -> int | None:
        """Return the exit code (128 + n for signal n), or None while it runs."""
        return self._guard.poll()

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for its end and return the exit code.

        Raises:
            subprocess.TimeoutExpired: It still runs.
        """
        return self._guard.wait(timeout_s)

    def terminate(self) -> None:
        """Ask it to end (SIGTERM); does nothing if it has ended."""
        self._order(b"T")

    def kill(self) -> None:
        """End it at once (SIGKILL) and wait until it is gone; does nothing if it has ended."""
        self._order(b"K")
        self._guard.wait(_KILL_S)
        self._close()

    def stop(self, grace_s: float) -> int:
        """Ask it to end, wait up to `grace_s` seconds, then kill it; returns the exit code."""
        self.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._guard.wait(grace_s)
        self.kill()
        return self._guard.returncode

    def last_line(self) -> str:
        """Return the last informative line of its log, or "" for none."""
        return last_line(self.log) if self.log is not None else ""

    def _order(self, order: bytes) -> None:
        pipe = self._guard.stdin
        if pipe is not None and not pipe.closed and self._guard.poll() is None:
            with contextlib.suppress(BrokenPipeError):
                pipe.write(order)
                pipe.flush()

    def _close(self) -> None:
        for pipe in (self._guard.stdin, self._guard.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


def start_guard(
    arguments: Sequence[str], log: Path | None, cwd: Path | None, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start `_guard.py`, with pipes for orders and events; its standard error goes to the log, or to ours.

    Raises:
        OSError: Interpreter or log cannot be opened.
    """
    with contextlib.ExitStack() as files:
        output = None if log is None else files.enter_context(open(log, "ab", opener=open_private))
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(_GUARD), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            cwd=cwd,
            env={**environment, **SAFE_PATH},
            start_new_session=True,
        )


def last_line(log: Path) -> str:
    """Return the last informative line of a log, or "" for none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return ""
    # The last lines of a Java stack trace mean nothing to a person.
    telling = [line for line in map(str.strip, lines) if line and not line.startswith(("at ", "... "))]
    return telling[-1] if telling else ""
