"""Our own supervisord: its configuration, its start, and the few calls that we make to it.

Supervisor (supervisord.org) starts the programs, restarts those that die after a pause that grows, stops them in
order with a grace each, and rotates their logs. It knows nothing of guards or of our exit codes: the guards are in the
commands it is given, the exit codes in `programs.py`.

It is controlled over a socket in a private folder, with a password made for this run. Its configuration has no secrets:
programs inherit the environment.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
import sys
import tempfile
import threading
import time
import xmlrpc.client
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from supervisor.states import ProcessStates
from supervisor.xmlrpc import SupervisorTransport

from streaming.exceptions import EvenkeelError
from streaming.places import open_private
from streaming.process.guarded import GuardedProcess

GIVEN_UP, RUNNING = int(ProcessStates.FATAL), int(ProcessStates.RUNNING)

_LOG_BYTES, _LOG_BACKUPS = 10 * 2**20, 5
"""Per program 60 MB at most: weeks of a healthy job, and all of a bad night."""

_START_S = 60
"""A program that has run this long is up: later pauses begin from 1 s again. A cold job's first batch takes 20 s."""

_RETRIES = 20
"""Deaths before `_START_S`, each followed by a pause one second longer (210 s in all), until supervisord gives up."""

_PATIENCE_S = 20.0
"""How long to wait for an answer: supervisord starts in half a second, but a machine may be swapping."""

_FRESH_S = 3600.0
"""Machines delete temporary files that nobody has touched for days: ours are touched once an hour."""

_FILES = 256
"""Descriptors that supervisord requests from the system; small containers refuse its default of 1,024."""


@dataclass(frozen=True, slots=True)
class Supervised:
    """One program as supervisord is configured for it.

    Attributes:
        name: Name.
        command: Program and arguments.
        grace_s: From SIGTERM to SIGKILL.
        log: Its log.
    """

    name: str
    command: tuple[str, ...]
    grace_s: float
    log: Path


class Supervisor:
    """A running supervisord, which ends with this process, however this process ends.

    Attributes:
        folder: A private folder, gone after `close`.
    """

    def __init__(self, log: Path, environment: Mapping[str, str]) -> None:
        """Prepare; supervisord starts with the first program.

        Args:
            log: Supervisord's own log: starts and ends of the programs.
            environment: Variables on top of ours.
        """
        self.folder = Path(tempfile.mkdtemp(prefix="evenkeel-"))
        self._log = log
        self._environment = dict(environment)
        self._password = secrets.token_hex(16)
        self._programs: list[Supervised] = []
        self._process: GuardedProcess | None = None
        self._server = self._connection()
        self._touched = time.monotonic()

    @property
    def is_gone(self) -> bool:
        """Whether it has ended without a request of ours."""
        return self._process is not None and self._process.poll() is not None

    def start(self, program: Supervised) -> None:
        """Start a program, and keep it running.

        Raises:
            EvenkeelError: supervisord does not start.
        """
        self._programs.append(program)
        self._write()
        if self._process is None:
            self.launch()
        else:
            self._server.supervisor.reloadConfig()
            self._server.supervisor.addProcessGroup(program.name)

    def launch(self) -> None:
        """Start supervisord, and all programs with it.

        Raises:
            EvenkeelError: It does not start.
        """
        command = [sys.executable, "-m", "supervisor.supervisord", "-n", "-c", str(self._configuration)]
        # Files that supervisord creates (logs, socket, pid file) are this user's alone; the programs keep our umask.
        self._process = GuardedProcess(command, log=self._log, environment=self._environment, umask=0o077)
        deadline = time.monotonic() + _PATIENCE_S
        pause = threading.Event()
        while self._process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError, HTTPException):
                self._server.supervisor.getState()
                return
            self._server = self._connection()
            pause.wait(0.05)
        message = f"The supervisor of the processes does not start: {self._process.last_line()} (see {self._log})."
        raise EvenkeelError(message)

    def states(self) -> dict[str, int]:
        """State by program, of `supervisor.states.ProcessStates`; empty when it does not answer."""
        if time.monotonic() > self._touched + _FRESH_S:
            self._touch()
        with contextlib.suppress(OSError, HTTPException, xmlrpc.client.Error):
            return {info["name"]: info["state"] for info in self._server.supervisor.getAllProcessInfo()}
        self._server = self._connection()
        return {}

    def rest(self, name: str) -> None:
        """Stop a program that is to stay down, without waiting; does nothing if it is not running."""
        with contextlib.suppress(OSError, HTTPException, xmlrpc.client.Error):
            self._server.supervisor.stopProcess(name, False)

    def wake(self, name: str) -> None:
        """Start a program that is down; does nothing if it is running."""
        with contextlib.suppress(OSError, HTTPException, xmlrpc.client.Error):
            self._server.supervisor.startProcess(name, False)

    def stop(self, names: Sequence[str]) -> None:
        """Stop programs for good, in this order, each with its grace."""
        for name in names:
            with contextlib.suppress(OSError, HTTPException, xmlrpc.client.Error):
                self._server.supervisor.stopProcess(name)
            with contextlib.suppress(OSError, HTTPException, xmlrpc.client.Error):
                self._server.supervisor.removeProcessGroup(name)
        self._programs = [program for program in self._programs if program.name not in names]
        self._write()

    def close(self) -> None:
        """Stop everything, last started first, each with its grace; then supervisord itself."""
        try:
            if self._process is not None:
                self._process.stop(sum(program.grace_s for program in self._programs) + _PATIENCE_S)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _touch(self) -> None:
        self._touched = time.monotonic()
        for path in (self.folder, *self.folder.iterdir()):
            with contextlib.suppress(OSError):
                os.utime(path)

    @property
    def _configuration(self) -> Path:
        return self.folder / "supervisord.conf"

    def _connection(self) -> Any:
        transport = SupervisorTransport("evenkeel", self._password, f"unix://{self.folder / 'control'}")
        # The host name is not used: the transport connects to the socket.
        return xmlrpc.client.ServerProxy("http://localhost", transport=transport)

    def _write(self) -> None:
        sections: dict[str, dict[str, object]] = {
            "supervisord": {
                "logfile": self._log,
                "logfile_maxbytes": _LOG_BYTES,
                "logfile_backups": 1,
                "pidfile": self.folder / "pid",
                "childlogdir": self.folder,
                "nodaemon": "true",
                "silent": "true",
                "strip_ansi": "true",
                "nocleanup": "true",
                "minfds": _FILES,
                "minprocs": 1,
            },
            "unix_http_server": {
                "file": self.folder / "control",
                "chmod": "0600",
                "username": "evenkeel",
                "password": self._password,
            },
            "rpcinterface:supervisor": {
                "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"
            },
        }
        if os.getuid() == 0:  # without this it warns that it runs as root
            sections["supervisord"]["user"] = 0
        for place, program in enumerate(self._programs):
            sections[f"program:{program.name}"] = {
                "command": shlex.join(program.command),
                "umask": f"{_umask():03o}",
                "priority": place,
                "startsecs": _START_S,
                "startretries": _RETRIES,
                "autorestart": "true",
                # The guard kills at the end of the grace; this is for a guard that cannot any more.
                "stopwaitsecs": int(program.grace_s) + 5,
                "killasgroup": "true",
                "redirect_stderr": "true",
                "stdout_logfile": program.log,
                "stdout_logfile_maxbytes": _LOG_BYTES,
                "stdout_logfile_backups": _LOG_BACKUPS,
            }
        lines = []
        for section, values in sections.items():
            # A single % would begin an expansion.
            lines += [f"[{section}]", *(f"{key}={str(value).replace('%', '%%')}" for key, value in values.items()), ""]
        with open(self._configuration, "w", encoding="utf-8", opener=open_private) as file:
            file.write("\n".join(lines))


def _umask() -> int:
    """This process's umask, which can only be read by setting it for a moment."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
