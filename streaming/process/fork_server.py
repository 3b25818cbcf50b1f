"""The starter's side of `_fork_server.py`: programs that one process forks, each under a guard like any other's."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from signal import SIGKILL

from streaming.places import open_private

__all__ = ["ForkServer", "ForkedGuard"]

_NEEDED = ("HOME", "LANG", "LC_", "LD_", "PATH", "PYTHON", "TMPDIR", "TZ", "VIRTUAL_ENV")
"""Prefixes of the variables that an interpreter starts with. Its programs have theirs, with their secrets."""


class ForkServer:
    """A process that has imported a module and forks programs that run its `main`. It ends with this process."""

    def __init__(self, module: str, *, log: Path) -> None:
        """Start it.

        Args:
            module: The module.
            log: File that its own output is appended to, if it ever has any.

        Raises:
            OSError: It cannot be started.
        """
        environment = {name: value for name, value in os.environ.items() if name.startswith(_NEEDED)}
        self._asks, its = socket.socketpair()
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

    def fork(self, order: Mapping[str, object]) -> ForkedGuard:
        """Fork a guard with its program, of which the order says name, log, and environment.

        Raises:
            OSError: The process is gone.
        """
        return ForkedGuard(self._asks, order)

    def close(self) -> None:
        """Let it end, when its programs have ended."""
        self._asks.close()
        self._process.wait()


class ForkedGuard:
    """What `subprocess.Popen` is to a guard that this process has started; its parent is the fork server."""

    def __init__(self, server: socket.socket, order: Mapping[str, object]) -> None:
        its_input, orders = os.pipe()
        told, its_output = os.pipe()
        self.stdin, self.stdout = os.fdopen(orders, "wb"), os.fdopen(told, "rb", 0)
        self.returncode: int | None = None
        try:
            socket.send_fds(server, [b"f"], [its_input, its_output])
        finally:
            os.close(its_input)
            os.close(its_output)
        self.stdin.write(f"{json.dumps(order)}\n".encode())
        self.stdin.flush()

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code, which is its last line; without that line it was killed."""
        if self.returncode is None:
            if not select.select([self.stdout], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired((), timeout or 0)
            with self.stdout:
                self.returncode = int(self.stdout.readline() or -SIGKILL)
        return self.returncode
