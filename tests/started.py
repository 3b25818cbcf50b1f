"""Processes as users start them, and what they answer on loopback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil  # type: ignore[import-untyped]  # it has no type hints

from tests.patience import Result, until

ROOT = Path(__file__).resolve().parent.parent

EVENKEEL = Path(sys.executable).with_name("evenkeel")

_PATIENCE_S = 600.0


def unconfigured() -> dict[str, str]:
    """Our environment, without settings."""
    return {k: v for k, v in os.environ.items() if not k.startswith("EVENKEEL_") or k == "EVENKEEL_CACHE"}


class Started:
    """A process that says everything to a log. At the end of its block it is killed, with all that it has started."""

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        environment: Mapping[str, str],
        cwd: Path = ROOT,
        **other_streams: int,
    ) -> None:
        self._log = log
        with log.open("ab") as output:
            streams: dict[str, Any] = {"stdout": output, "stderr": output, **other_streams}
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                command, cwd=cwd, env=environment, start_new_session=True, **streams
            )
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def said(self) -> str:
        return self._log.read_text("utf-8", "replace")

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def below(self) -> list[psutil.Process]:
        """What it has started, and so on."""
        found: list[psutil.Process] = psutil.Process(self.pid).children(recursive=True)
        return found

    def until(self, done: Callable[[], Result], *others: Started, seconds: float = _PATIENCE_S) -> Result:
        """Wait until something is so; neither it nor the others may end before."""

        def run() -> None:
            for needed in (self, *others):
                assert needed.runs, needed.said[-4000:]

        return until(done, run, seconds=seconds, pause_s=0.1, told=lambda: self.said[-4000:])

    def wait(self) -> int:
        """Its exit code."""
        return self._process.wait(_PATIENCE_S)

    def end(self, number: signal.Signals) -> int:
        """Its exit code after a signal."""
        self._process.send_signal(number)
        return self.wait()

    def stop(self) -> None:
        """Stop it as a supervisor does; it must end well."""
        assert self.end(signal.SIGTERM) == 0, self.said[-4000:]

    def kill(self) -> None:
        if self.runs:
            for process in (*self.below(), psutil.Process(self.pid)):
                with suppress(psutil.NoSuchProcess):  # it ended with another
                    process.kill()
            self.wait()


def get(address: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    """Status and body of an answer; 0 and "" where nobody answers."""
    request = urllib.request.Request(address, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""
