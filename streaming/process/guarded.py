"""Start programs that end with us, however we end, and that only we stop: a Ctrl-C does not reach them."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from streaming.places import open_private

SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""Keeps the working folder off the path of every Python below (Spark's workers among them): `python -m` would put it
first, and a `duckdb.py` in it would run in place of the library, with our secrets in its environment."""

_GUARD = Path(__file__).with_name("_guard.py")

_LOG_BYTES = 10 * 2**20

_NEEDED = ("HOME", "LANG", "LC_", "LD_", "PATH", "PYTHON", "TMPDIR", "TZ", "VIRTUAL_ENV")
"""Prefixes of the variables with which a fork server starts. Its programs have theirs, with their secrets."""

_NOISE = ("at ", "... ", "nanobind: ", "- leaked ", "- ... skipped ", "See https://nanobind.")
"""How lines begin that mean nothing to a person: of a Java stack trace, and what DuckDB writes when Python ends."""

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
        without: tuple[str, ...] = (),
        server: ForkServer | None = None,
    ) -> None:
        """Start it.

        Args:
            command: Program and arguments.
            log: File that its output is appended to, readable by this user only, rotated by size; None for our
                standard error.
            cwd: Its folder; None for ours.
            environment: Variables on top of ours; secrets are passed this way, because no process list shows them.
            without: Prefixes of variables that it does not get: secrets of others.
            server: Forks it in place of starting `command`; None to start that. It needs a log.

        Raises:
            OSError: The program or the log file cannot be opened.
        """
        self.log = log
        variables = {**os.environ, **(environment or {})}
        kept = {name: value for name, value in variables.items() if not name.startswith(without)} | SAFE_PATH
        self._guard: subprocess.Popen[bytes] | _ForkedGuard
        with contextlib.ExitStack() as files:
            output = None if log is None else files.enter_context(open(log, "ab", opener=open_private))
            if server is not None:
                self._guard = _ForkedGuard(server, [Path(str(log)).stem, str(log), _LOG_BYTES, kept])
                pid = self._guard.stdout.readline()
            else:
                guard = [sys.executable, "-I", "-S", _GUARD, "" if log is None else log, _LOG_BYTES]
                self._guard = subprocess.Popen(
                    [*map(str, guard), *map(str, command)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=output,
                    cwd=cwd,
                    env=kept,
                    start_new_session=True,
                )
                assert self._guard.stdout is not None  # noqa: S101 - for the type checker: we asked for a pipe
                with self._guard.stdout as told:
                    pid = told.readline()
        if not pid:
            self._guard.wait()
            message = f"{command[0]} could not be started: {self.last_line()}"
            raise OSError(message)
        self.pid = int(pid)

    def poll(self) -> int | None:
        """Return the exit code (128 + n for signal n), or None while it runs; negative if its guard was killed."""
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
        if self._guard.wait(_KILL_S) < 0:
            # The guard was killed: on Linux its program has died with it, but not the program's children.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        if self._guard.stdin is not None:
            with contextlib.suppress(ConnectionError):
                self._guard.stdin.close()

    def stop(self, grace_s: float) -> int:
        """Ask it to end, wait up to `grace_s` seconds, then kill it; returns the exit code."""
        self.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._guard.wait(grace_s)
        self.kill()
        return self._guard.wait()

    def last_line(self) -> str:
        """Return the last informative line of its log, or "" for none."""
        if self.log is None:
            return ""
        # A log that has just been rotated is empty.
        return _last_line(self.log) or _last_line(self.log.with_name(f"{self.log.name}.1"))

    def _order(self, order: bytes) -> None:
        pipe = self._guard.stdin
        if pipe is not None and not pipe.closed and self._guard.poll() is None:
            with contextlib.suppress(ConnectionError):
                pipe.write(order)
                pipe.flush()


class ForkServer:
    """A process that has imported a module and forks programs that run its `main` (`_fork_server.py`)."""

    def __init__(self, module: str, log: Path) -> None:
        """Start it; its own output, if it ever has any, goes to the log. Raises OSError."""
        environment = {name: value for name, value in os.environ.items() if name.startswith(_NEEDED)}
        self.asks, its = socket.socketpair()
        with its, open(log, "ab", opener=open_private) as output:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "streaming.process._fork_server", module],
                stdin=its.fileno(),
                stdout=output,
                stderr=output,
                # NumPy's library would start threads, and a fork would be without them.
                env=environment | {"OPENBLAS_NUM_THREADS": "1"},
                start_new_session=True,
            )

    @property
    def lives(self) -> bool:
        """Whether it can fork."""
        return self._process.poll() is None

    def close(self) -> None:
        """Let it end, when its programs have ended, and wait for that."""
        self.asks.close()
        self._process.wait()


class _ForkedGuard:
    """What `subprocess.Popen` is to a guard that this process has started; the parent of this one is a fork server."""

    def __init__(self, server: ForkServer, order: list[object]) -> None:
        ours, its = socket.socketpair()
        with ours, its:
            socket.send_fds(server.asks, [b"f"], [its.fileno()])
            self.stdin, self.stdout = ours.makefile("wb"), ours.makefile("rb", 0)
        self.stdin.write(f"{json.dumps(order)}\n".encode())
        self.stdin.flush()
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code, which is its last line: a guard that was killed says none."""
        if self.returncode is None:
            if not select.select([self.stdout], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired((), timeout or 0)
            self.returncode = -signal.SIGKILL
            with self.stdout, contextlib.suppress(ConnectionError):
                self.returncode = int(self.stdout.readline() or -signal.SIGKILL)
        return self.returncode


def _last_line(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return ""
    telling = [line for line in map(str.strip, lines) if line and not line.startswith(_NOISE)]
    if telling:
        return telling[-1]
    return ""
