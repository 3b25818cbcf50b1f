"""`up` itself with small programs instead of its own: what it prints, and its ends."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import psutil
import pytest

from streaming.up import stop_signals
from tests.patience import until

pytestmark = pytest.mark.turn(6)

_ROOT = Path(__file__).resolve().parents[2]

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


@contextmanager
def _up(
    lake: Path, slow: float, variables: dict[str, str] | None = None, **streams: int
) -> Iterator[subprocess.Popen[bytes]]:
    lake.mkdir()
    command = [sys.executable, "-c", textwrap.dedent(_UP), str(lake), str(slow)]
    environment = os.environ | {"PYTHONPATH": str(_ROOT), "TERM": "xterm", "COLUMNS": "200", "LINES": "50"}
    environment |= variables or {}
    running = subprocess.Popen(command, cwd=lake, env=environment, start_new_session=True, **streams)
    try:
        yield running
    finally:
        running.kill()
        running.wait()


@pytest.mark.nightly
def test_it_prints_the_logs_and_stops_in_order_when_told(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with _up(lake, 0, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
        lines = []
        waiting = {"one", "two", "needs cannot"}
        while waiting:
            lines.append(running.stdout.readline().decode())
            assert lines[-1], lines
            waiting -= {word for word in waiting if word in lines[-1] and ("ready" in lines[-1] or "cannot" in word)}
        running.send_signal(signal.SIGTERM)
        rest = running.stdout.read().decode()
        assert running.wait(60) == 0
    assert re.match(
        r"cluster default; tables in .*lake, logs in .*_logs/default, page at http://127\.0\.0\.1:8090\n", lines[0]
    )
    assert "one     | 2026-11-21 18:00:00,000 INFO one: ready\n" in lines
    pattern = (
        r"up      \| \d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} WARNING up: needs cannot run: The port is taken\. It is "
    )
    assert len([line for line in lines if re.match(pattern, line)]) == 1
    assert rest.splitlines()[-1] == "all processes have ended"
    assert "Traceback" not in "".join(lines) + rest
    assert (lake / "told").read_text().split() == ["two", "ended", "one", "ended"]


def _read_until(output: IO[bytes], words: str) -> str:
    """The line with these words."""
    lines = []
    while True:
        lines.append(output.readline().decode())
        assert lines[-1], lines
        if words in lines[-1]:
            return lines[-1]


@pytest.mark.nightly
def test_a_name_that_the_encoding_of_its_output_lacks_is_escaped_and_ends_nothing(tmp_path: Path) -> None:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with _up(tmp_path / "lake", 0, {"PYTHONIOENCODING": "latin-1"}, **pipes) as running:
        assert running.stdout is not None
        line = _read_until(running.stdout, "a name: ")
        assert line.endswith(r"| a name: \u0437\u0430\u043a\u0430\u0437\u044b" + "\n")
        _read_until(running.stdout, "needs cannot run: ")
        running.send_signal(signal.SIGTERM)
        assert running.stdout.read().decode("latin-1").splitlines()[-1] == "all processes have ended"
        assert running.wait(60) == 0


@pytest.mark.nightly
def test_without_a_reader_of_its_output_it_goes_on(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    log = lake / "_logs" / "default" / "up.log"
    with _up(lake, 0, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        _read_until(running.stdout, "two: ready")
        running.stdout.close()
        # Each death is a line that it prints.
        for deaths in range(3):
            until(lambda runs=deaths + 1: log.with_name("one.log").read_text().count("ready") == runs)
            if deaths < 2:
                _of(running.pid, "one")[0].kill()
        assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
    assert "one was killed (SIGKILL)" in log.read_text()
    assert (lake / "told").read_text().split() == ["two", "ended", "one", "ended"]


def _of(up: int, name: str) -> list[psutil.Process]:
    """The program with this name, without its guard."""
    found = []
    for process in psutil.Process(up).children(recursive=True):
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
        children = psutil.Process(running.pid).children(recursive=True)
        assert len(children) == 4
        running.send_signal(signal.SIGINT)
        _read_until(screen, "stopping: ")
        running.send_signal(signal.SIGINT)
        _read_until(screen, "ended at once")
        assert running.wait(60) == 128 + signal.SIGINT
    assert psutil.wait_procs(children, timeout=60)[1] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_end_of_the_terminal_stops_in_order_as_ctrl_c_does(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_signals() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        assert stop.wait(60)
    assert signal.getsignal(number) == before
