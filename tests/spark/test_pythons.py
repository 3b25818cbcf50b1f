"""Spark's Python as a fork, without Spark. `tests/job/test_in_spark.py` looks into Spark's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streaming.spark import _python
from streaming.spark.prepared import fork_pythons

_PATIENCE_S = 60.0

_SHARED = "colorsys"
"""A module that nothing else imports."""

_ASKED = f"""
import json, os, sys
if __name__ == "__main__":
    told = {{"arguments": sys.argv[1:], "own": os.environ["OWN"], "shares": "{_SHARED}" in sys.modules}}
    print("said", file=sys.stderr, flush=True)  # before the line after which a test may end it
    print(json.dumps(told | {{"pid": os.getpid(), "parent": os.getppid()}}), flush=True)
    sys.stdin.read()
"""

Start = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module `asked`, and variables that a server may change."""
    (tmp_path / "asked.py").write_text(_ASKED, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("PYSPARK_PYTHON", "")
    monkeypatch.setenv(_python.SERVER, "")


@pytest.fixture
def start() -> Iterator[Start]:
    """Start it as Spark does."""
    started = []

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-IS", _python.__file__, "-m", "asked", "an argument"]
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        started.append(subprocess.Popen(command, text=True, env=os.environ | {"OWN": "its own"}, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.communicate(timeout=_PATIENCE_S)


@pytest.fixture
def server() -> Iterator[subprocess.Popen[bytes]]:
    _, process = fork_pythons.__wrapped__(Path("python"), (_SHARED,))
    yield process
    process.communicate(timeout=_PATIENCE_S)


def _first_line(process: subprocess.Popen[str]) -> dict[str, Any]:
    return json.loads(process.stdout.readline())


def test_a_fork_has_the_modules_of_the_server_and_all_else_of_who_asked(
    start: Start, server: subprocess.Popen[bytes]
) -> None:
    asking = start()
    told = _first_line(asking)
    assert (told["arguments"], told["own"], told["shares"]) == (["an argument"], "its own", True)
    assert told["parent"] == server.pid
    assert asking.communicate(timeout=_PATIENCE_S)[1] == "said\n"


@pytest.mark.usefixtures("server")
def test_who_asked_ends_with_the_fork_and_the_fork_with_who_asked(start: Start) -> None:
    first, second = start(), start()
    os.kill(_first_line(first)["pid"], signal.SIGKILL)
    assert first.wait(_PATIENCE_S) == 0
    _first_line(second)
    second.kill()
    # Nobody holds its standard error open any more.
    assert second.stderr.read() == "said\n"


def test_without_a_server_python_starts_by_itself(start: Start, server: subprocess.Popen[bytes]) -> None:
    server.kill()
    server.wait()
    alone = start()
    told = _first_line(alone)
    assert (told["pid"], told["own"], told["shares"]) == (alone.pid, "its own", False)
