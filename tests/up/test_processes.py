from __future__ import annotations

import threading
import time
from pathlib import Path

import psutil
import pytest

from streaming.exceptions import SetupError
from streaming.up.processes import Program, Programs

_WAITS = ("-c", "import time; print('here', flush=True); time.sleep(600)")


def _until(true: object, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not happen in time"
        pause.wait(0.05)


def test_a_program_that_is_killed_is_started_again_and_told_of(tmp_path: Path) -> None:
    said: list[str] = []
    with Programs(tmp_path, {}, said.append) as programs:
        first = programs.start(Program("waiter", _WAITS, grace_s=5))
        psutil.Process(first.pid).kill()
        _until(lambda: first.poll() is not None)
        programs.look()
        assert "waiter ended with code 137" in said[0]
        assert str(tmp_path / "waiter.log") in said[0]
        _until(lambda: programs.look() or len(said) > 1)
        assert said[1] == "waiter was started again"


def test_everything_is_stopped_at_the_end(tmp_path: Path) -> None:
    with Programs(tmp_path, {}, print) as programs:
        pids = [programs.start(Program(name, _WAITS, grace_s=5)).pid for name in ("a", "b")]
        assert all(map(psutil.pid_exists, pids))
    assert not any(map(psutil.pid_exists, pids))


def test_a_program_that_needs_a_person_ends_the_whole_with_its_own_sentence(tmp_path: Path) -> None:
    needs = ("-c", "import sys; sys.exit(print('No Java was found: install one.', file=sys.stderr) or 2)")
    with Programs(tmp_path, {}, print) as programs:
        process = programs.start(Program("needs", needs, grace_s=5))
        _until(lambda: process.poll() is not None)
        with pytest.raises(SetupError, match=r"^No Java was found: install one\.$"):
            programs.look()


def test_settings_reach_the_programs_by_environment_and_leave_ours_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVENKEEL_CLUSTER", raising=False)
    shows = Program("shows", ("-c", "import os; print(os.environ['EVENKEEL_CLUSTER'])"), grace_s=5)
    with Programs(tmp_path, {"EVENKEEL_CLUSTER": "it's ours"}, print) as programs:
        process = programs.start(shows)
        _until(lambda: process.poll() is not None)
        assert programs.log_of(shows).read_text().strip() == "it's ours"
    import os  # noqa: PLC0415

    assert "EVENKEEL_CLUSTER" not in os.environ
