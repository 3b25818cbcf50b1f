"""Our own supervisord: its configuration, its start, and the few calls that we make to it.

Supervisor (supervisord.org) starts the programs, restarts those that die after a pause that grows, stops them in
order with a grace each, and rotates their logs. It knows nothing of guards, which are in the commands it is given, and
of our exit codes only that it leaves a program down that ended with code 2; `programs.py` has the rest.

It is controlled over a socket in a private folder, with a password made for this run. Its configuration has no secrets:
programs inherit the environment.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
import socket
import sys
import tempfile
import threading
import time
import xmlrpc.client
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from supervisor.states import ProcessStates
from supervisor.xmlrpc import Faults, SupervisorTransport

from streaming.exceptions import SETUP_EXIT_CODE, EvenkeelError
from streaming.places import open_private
from streaming.process.guarded import GuardedProcess

GIVEN_UP, RUNNING, STOPPED = int(ProcessStates.FATAL), int(ProcessStates.RUNNING), int(ProcessStates.STOPPED)
EXITED: int = int(ProcessStates.EXITED)
"""It ended with code 2 after it was up, and stays down."""

_BACKOFF = int(ProcessStates.BACKOFF)

_LOG_BYTES, _LOG_BACKUPS = 10 * 2**20, 5
"""Per program 60 MB at most: weeks of a healthy job, and all of a bad night."""

_START_S = 60
"""A program that has run this long is up: later pauses begin from 1 s again. A cold job's first batch takes 20 s."""

_RETRIES = 20
"""Deaths before `_START_S`, each followed by a pause one second longer (210 s in all), until supervisord gives up."""

_PATIENCE_S = 20.0
"""How long to wait for an answer: supervisord starts in half a second, but a machine may be swapping."""

_ANSWER_S = 10.0
"""How long one answer may take. Without a limit, a supervisord that stands still would hold up who asks it for ever."""

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
        folder: A private folder, gone after `close`; another one after `relaunch`.
    """

    def __init__(self, log: Path, environment: Mapping[str, str]) -> None:
        """Prepare; supervisord starts with the first program.

        Args:
            log: Supervisord's own log: starts and ends of the programs.
            environment: Variables on top of ours.
        """
        self.folder = new_folder()
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

    @property
    def lost_its_files(self) -> bool:
        """Whether its socket was deleted. Until its connection ends it still answers, but guards miss their orders."""
        if self._process is None:
            return False
        try:
            return not self._socket.exists()
        except OSError:
            return False  # (a folder that we may not look into)

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

    def end_at_once(self) -> None:
        """Kill it. Guards end its programs: SIGTERM, and SIGKILL a few seconds later.

        Raises:
            subprocess.TimeoutExpired: The machine does not end it.
        """
        if self._process is not None:
            self._process.kill()

    def relaunch(self, folder: Path, programs: Sequence[Supervised]) -> None:
        """Start another supervisord in place of one that has ended, with these programs.

        Args:
            folder: Its folder, from `new_folder`. The old one is deleted.
            programs: What it runs; in starting order.

        Raises:
            EvenkeelError: It does not start.
            OSError: The folder cannot be written.
        """
        old, self.folder = self.folder, folder
        shutil.rmtree(old, ignore_errors=True)
        self._programs = list(programs)
        self._write()
        self._server = self._connection()
        self.launch()

    def states(self) -> dict[str, int]:
        """State by program, of `supervisor.states.ProcessStates`; empty when it does not answer.

        A program that has ended and is started again within the second counts as one that waits for its next start.
        """
        if time.monotonic() > self._touched + _FRESH_S:
            self._touch()
        with contextlib.suppress(OSError, HTTPException, xmlrpc.client.Error):
            return {info["name"]: _state(info) for info in self._server.supervisor.getAllProcessInfo()}
        self._server = self._connection()
        return {}

    def rest(self, name: str) -> None:
        """Stop a program that is to stay down, without waiting; does nothing if it is not running."""
        with contextlib.suppress(OSError, HTTPException, xmlrpc.client.Error):
            self._server.supervisor.stopProcess(name, False)

    def wake(self, name: str) -> str:
        """Start a program that is down; does nothing if it is running.

        Returns:
            Why supervisord refused, as it says it; "" where it did not, which is no proof that the program runs.
        """
        try:
            self._server.supervisor.startProcess(name, False)
        except xmlrpc.client.Fault as fault:
            return "" if fault.faultCode == Faults.ALREADY_STARTED else fault.faultString
        except (OSError, HTTPException, xmlrpc.client.Error) as error:
            return str(error) or type(error).__name__
        return ""

    def stop(self, names: Sequence[str]) -> None:
        """Stop programs for good, in this order, each with its grace."""
        # (These answers come when the programs have ended.)
        patient = self._connection(self._stopping_s)
        for name in names:
            with contextlib.suppress(OSError, HTTPException, xmlrpc.client.Error):
                patient.supervisor.stopProcess(name)
            with contextlib.suppress(OSError, HTTPException, xmlrpc.client.Error):
                patient.supervisor.removeProcessGroup(name)
        self._programs = [program for program in self._programs if program.name not in names]
        self._write()

    def close(self) -> None:
        """Stop everything, last started first, each with its grace; then supervisord itself."""
        try:
            if self._process is not None:
                self._process.stop(self._stopping_s)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _touch(self) -> None:
        self._touched = time.monotonic()
        inside: list[Path] = []
        with contextlib.suppress(OSError):
            inside = list(self.folder.iterdir())
        for path in (self.folder, *inside):
            with contextlib.suppress(OSError):
                os.utime(path)

    @property
    def _stopping_s(self) -> float:
        """How long it may take to stop all programs, one after the other."""
        return sum(program.grace_s for program in self._programs) + _PATIENCE_S

    @property
    def _configuration(self) -> Path:
        return self.folder / "supervisord.conf"

    @property
    def _socket(self) -> Path:
        return self.folder / "control"

    def _connection(self, answer_s: float | None = None) -> Any:
        transport = _Transport(self._password, self._socket, answer_s or _ANSWER_S)
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
                "file": self._socket,
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
                # With any other code it is started again. (Before `startsecs` with any at all, and `rest` stops that.)
                "autorestart": "unexpected",
                "exitcodes": SETUP_EXIT_CODE,
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


class _Connection(HTTPConnection):
    """A connection to a socket of this machine. Supervisor's own one waits for an answer for ever."""

    def __init__(self, path: Path, answer_s: float) -> None:
        super().__init__("localhost", timeout=answer_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class _Transport(SupervisorTransport):  # type: ignore[misc]  # supervisor is not followed by mypy here
    """Supervisor's transport, with our connection."""

    def __init__(self, password: str, path: Path, answer_s: float) -> None:
        super().__init__("evenkeel", password, f"unix://{path}")
        self._get_connection = lambda: _Connection(path, answer_s)


def _state(info: Mapping[str, Any]) -> int:
    if info["state"] == EXITED and info["exitstatus"] != SETUP_EXIT_CODE:
        return _BACKOFF
    return int(info["state"])


def new_folder() -> Path:
    """Make a private folder for `relaunch`.

    Raises:
        OSError: There is no space, or no folder for temporary files.
    """
    return Path(tempfile.mkdtemp(prefix="evenkeel-"))


def _umask() -> int:
    """This process's umask, which can only be read by setting it for a moment."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
