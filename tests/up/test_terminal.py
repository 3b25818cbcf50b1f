"""`up` itself with small programs instead of its own: what it prints, and its ends."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil
import pytest

from streaming.up import stop_signals
from tests.started import ROOT, Started

pytestmark = pytest.mark.turn(6)

_UP = """
import sys
import streaming.up.run as run
from pathlib import Path
from rich.console import Console
from streaming.config import FleetFile, Settings
from streaming.process.programs import Program

waits = '''
import signal, sys, time
def end(*_):
    time.sleep(float(sys.argv[2]))
    with open(sys.argv[3], "a") as file:
        print(sys.argv[1], "ended", file=file)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
sys.stdout.buffer.write("a name: заказы".encode() + bytes([10]))
print("2026-11-21 18:00:00,000 INFO", sys.argv[1] + ": ready", flush=True)
time.sleep(600)
'''
needs = "import sys; sys.exit(print('The port is taken.', file=sys.stderr) or 2)"
lake, slow = sys.argv[1:]
told = str(Path(lake) / "told")
run.ensure_ready = lambda settings: None
run.PROBE = Program("one", ("-c", waits, "one", slow, told), 60)
run.JOB = Program("two", ("-c", waits, "two", slow, told), 60)
run.SERVER = Program("needs", ("-c", needs), 60)
run.up(FleetFile([Settings(lake=lake)]), Console())
"""


def _up(lake: Path, slow: float, variables: dict[str, str] | None = None, **streams: int) -> Started:
    lake.mkdir()
    command = [sys.executable, "-c", textwrap.dedent(_UP), str(lake), str(slow)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "200", "LINES": "50"}
    return Started(command, lake.with_name("output"), environment | (variables or {}), lake, **streams)


@pytest.mark.nightly
def test_it_prints_the_logs_and_stops_in_order_when_told(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with _up(lake, 0) as running:
        running.until(lambda: all(said in running.said for said in ("one: ready", "two: ready", "needs cannot")))
        running.stop()
    lines = running.said.splitlines()
    assert re.match(
        r"cluster default; tables in .*lake, logs in .*_logs/default, page at http://127\.0\.0\.1:8090$", lines[0]
    )
    assert "one     | 2026-11-21 18:00:00,000 INFO one: ready" in lines
    pattern = (
        r"up      \| \d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} WARNING up: needs cannot run: The port is taken\. It is "
    )
    assert len([line for line in lines if re.match(pattern, line)]) == 1
    assert lines[-1] == "all processes have ended"
    assert "Traceback" not in running.said
    assert (lake / "told").read_text().split() == ["two", "ended", "one", "ended"]


def _read_until(output: IO[bytes], words: str) -> None:
    lines = [b"-"]
    while words.encode() not in lines[-1]:
        lines.append(output.readline())
        assert lines[-1], lines


@pytest.mark.nightly
def test_a_name_that_the_encoding_of_its_output_lacks_is_escaped_and_ends_nothing(tmp_path: Path) -> None:
    with _up(tmp_path / "lake", 0, {"PYTHONIOENCODING": "latin-1"}) as running:
        running.until(lambda: "a name: " in running.said and "needs cannot run: " in running.said)
        running.stop()
    assert "| a name: \\u0437\\u0430\\u043a\\u0430\\u0437\\u044b\n" in running.said
    assert running.said.splitlines()[-1] == "all processes have ended"


@pytest.mark.nightly
def test_without_a_reader_of_its_output_it_goes_on(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    log = lake / "_logs" / "default" / "up.log"
    ours, its = os.pipe()
    with _up(lake, 0, stdout=its, stderr=subprocess.DEVNULL) as running:
        os.close(its)
        with os.fdopen(ours, "rb", 0) as read:
            _read_until(read, "two: ready")
        # Each death is a line that it prints.
        for deaths in range(3):
            running.until(lambda runs=deaths + 1: log.with_name("one.log").read_text().count("ready") == runs)
            if deaths < 2:
                _of(running, "one")[0].kill()
        running.stop()
    assert "one was killed (SIGKILL)" in log.read_text()
    assert (lake / "told").read_text().split() == ["two", "ended", "one", "ended"]


def _of(up: Started, name: str) -> list[psutil.Process]:
    """The program with this name, without its guard."""
    found = []
    for process in up.below():
        with suppress(psutil.Error):
            if process.cmdline()[-3:-2] == [name] and "_guard.py" not in " ".join(process.cmdline()):
                found.append(process)
    return found


@pytest.mark.nightly
def test_in_a_terminal_ctrl_c_stops_and_a_second_one_ends_all_at_once(tmp_path: Path) -> None:
    ours, its = pty.openpty()
    with _up(tmp_path / "lake", 60, stdin=its, stdout=its, stderr=its) as running, os.fdopen(ours, "rb", 0) as screen:
        os.close(its)
        _read_until(screen, "page at http://127.0.0.1:8090")
        _read_until(
            screen,
            "needs cannot run: The port is taken. It is tried again after longer and longer pauses, up to 300 s.",
        )
        # Two programs with a guard each; the third rests.
        children = running.below()
        assert len(children) == 4
        os.kill(running.pid, signal.SIGINT)
        _read_until(screen, "stopping: ")
        os.kill(running.pid, signal.SIGINT)
        _read_until(screen, "ended at once")
        assert running.wait() == 128 + signal.SIGINT
    assert psutil.wait_procs(children, timeout=60)[1] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_end_of_the_terminal_stops_in_order_as_ctrl_c_does(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_signals() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        assert stop.wait(60)
    assert signal.getsignal(number) == before
