"""Guarded programs die with their starter, stop on request, and report how they ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from streaming.process import GuardedProcess

_ROOT = Path(__file__).parents[2]


def _python(program: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(program)]


def _waiting(log: Path, program: str) -> GuardedProcess:
    """Start a program that prints `ready`, and wait for that."""
    fifo = log.with_suffix(".fifo")
    os.mkfifo(fifo)
    process = GuardedProcess(
        _python(f"{textwrap.dedent(program)}\nopen({str(fifo)!r}, 'w').close()\ninput_()"), log=log
    )
    with fifo.open():
        return process


_SLEEPER = """
import time
def input_():
    time.sleep(600)
"""

_DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def input_():
    time.sleep(600)
"""


def test_the_exit_code_is_the_programs_own(tmp_path: Path) -> None:
    process = GuardedProcess(_python("import sys; sys.exit(7)"), log=tmp_path / "log")
    assert process.wait(60) == 7
    assert process.poll() == 7


def test_a_stopped_program_ends_by_sigterm(tmp_path: Path) -> None:
    process = _waiting(tmp_path / "log", _SLEEPER)
    assert process.poll() is None
    assert process.stop(30) == 128 + signal.SIGTERM
    assert not psutil.pid_exists(process.pid)


def test_a_program_that_ignores_sigterm_is_killed_after_its_grace(tmp_path: Path) -> None:
    process = _waiting(tmp_path / "log", _DEAF)
    assert process.stop(0.2) == 128 + signal.SIGKILL


def test_killing_returns_when_it_is_gone_and_may_be_repeated(tmp_path: Path) -> None:
    process = _waiting(tmp_path / "log", _SLEEPER)
    process.kill()
    assert not psutil.pid_exists(process.pid)
    process.kill()
    process.terminate()


def test_what_it_prints_is_in_the_log_and_its_last_telling_line_is_known(tmp_path: Path) -> None:
    said = "print('first'); print('java.net.BindException: taken'); print('\\tat java.base/x.Y(Z)'); print()"
    said += "; print('nanobind: leaked 2 functions!'); print(' - leaked function \"type\"')"
    process = GuardedProcess(_python(said), log=tmp_path / "log")
    process.wait(60)
    assert process.last_line() == "java.net.BindException: taken"


def test_a_program_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no-such-program could not be started"):
        GuardedProcess(["/no-such-program"], log=tmp_path / "log")


@pytest.mark.parametrize("program", [_SLEEPER, _DEAF])
def test_it_dies_with_a_starter_that_is_killed_also_when_a_fork_holds_the_pipe(tmp_path: Path, program: str) -> None:
    starter = subprocess.Popen(
        _python(
            f"""
            import os, sys, time
            from pathlib import Path
            sys.path.insert(0, {str(_ROOT)!r})
            from streaming.process import GuardedProcess
            held = GuardedProcess([sys.executable, "-c", {program + "input_()"!r}], log=Path({str(tmp_path / "log")!r}))
            if os.fork() == 0:
                time.sleep(30)
                os._exit(0)
            print(held.pid, flush=True)
            time.sleep(600)
            """
        ),
        stdout=subprocess.PIPE,
    )
    pid = int(starter.stdout.readline())
    starter.kill()
    starter.wait(60)
    held = psutil.Process(pid) if psutil.pid_exists(pid) else None
    if held is not None:
        held.wait(20)


def test_a_terminals_ctrl_c_does_not_reach_it(tmp_path: Path) -> None:
    process = _waiting(tmp_path / "log", _SLEEPER)
    assert os.getpgid(process.pid) != os.getpgid(0)
    process.kill()
