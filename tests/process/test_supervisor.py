"""The supervisor itself: killed, without its files, standing still; and what it keeps among temporary files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psutil
import pytest

import streaming.process.programs
import streaming.process.supervisor
from streaming.process import Program
from tests.process.kept import PARENT, WAITS, Kept, program_of, until

pytestmark = pytest.mark.turn(6)


def _supervisord(kept: Kept, program: Program) -> psutil.Process:
    guard = psutil.Process(kept.pid(program)).parent()
    assert guard is not None
    supervisord = guard.parent()
    assert supervisord is not None
    assert "supervisord" in " ".join(supervisord.cmdline())
    return supervisord


def test_what_lies_among_temporary_files_is_kept_young(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.programs.start(Program("waits", WAITS, 5))
    files = [kept.programs._supervisor.folder, *kept.programs._supervisor.folder.iterdir()]
    for path in files:
        os.utime(path, (0, 0))
    kept.programs.look()
    assert kept.programs._supervisor.folder.stat().st_mtime == 0
    monkeypatch.setattr(streaming.process.supervisor, "_FRESH_S", 0.0)
    kept.programs.look()
    assert min(path.stat().st_mtime for path in files) > 0


def test_a_killed_supervisor_is_started_again_with_everything_and_nothing_of_the_old_run_is_left(
    kept: Kept, tmp_path: Path
) -> None:
    parent = program_of("parent", PARENT, str(tmp_path / "child"))
    kept.programs.start(parent)
    first = kept.pid(parent)
    until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
    old = [psutil.Process(first), psutil.Process(int((tmp_path / "child").read_text()))]
    _supervisord(kept, parent).kill()
    kept.until_said("the supervisor was killed; restarting everything")
    assert kept.pid(parent) != first
    assert kept.said == ["the supervisor was killed; restarting everything"]
    assert psutil.wait_procs(old, timeout=60)[1] == []


def test_a_supervisor_whose_folder_was_deleted_is_replaced_with_everything_and_no_program_runs_twice(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming.process.programs, "_UNWELL_S", 1.0)
    # (As a job does, it holds a lock for as long as it lives; a second copy would end with code 2.)
    locks = """
    import fcntl, sys, time
    file = open(sys.argv[1], "w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(print("Another one runs.") or 2)
    time.sleep(600)
    """
    program = program_of("locks", locks, str(tmp_path / "lock"))
    kept.programs.start(program)
    first = kept.pid(program)
    old = [_supervisord(kept, program), psutil.Process(first)]
    folder = kept.programs._supervisor.folder
    shutil.rmtree(folder)
    kept.until_said("the supervisor has lost its files")
    assert psutil.wait_procs(old, timeout=60)[1] == []
    assert kept.pid(program) != first
    # The new one restarts what dies.
    second = kept.pid(program)
    psutil.Process(second).kill()
    kept.until_said("locks was killed (SIGKILL) and is being restarted")
    assert kept.pid(program) != second
    why = f"somebody has deleted {folder} or what was in it; restarting everything"
    assert kept.said[0] == f"the supervisor has lost its files: {why}"
    assert len(kept.said) == 2
    kept.programs.stop()
    assert not kept.programs._supervisor.folder.exists()


def test_a_supervisor_that_stands_still_is_reported_once_and_holds_nobody_up_and_its_programs_go_on(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming.process.programs, "_UNWELL_S", 1.0)
    monkeypatch.setattr(streaming.process.supervisor, "_ANSWER_S", 0.2)
    program = Program("waits", WAITS, 5)
    kept.programs.start(program)
    first = kept.pid(program)
    supervisord = _supervisord(kept, program)
    supervisord.suspend()
    try:
        kept.until_said("the supervisor does not answer: a program that dies is not started again. If this lasts, stop")
        for _ in range(3):
            kept.programs.look()
        assert len(kept.said) == 1
    finally:
        supervisord.resume()
    monkeypatch.setattr(streaming.process.supervisor, "_ANSWER_S", 10.0)
    kept.until_said("the supervisor answers again")
    assert kept.pid(program) == first


def test_without_a_folder_the_hourly_touch_of_what_lies_in_it_ends_nothing(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.programs.start(Program("waits", WAITS, 5))
    kept.programs.look()
    shutil.rmtree(kept.programs._supervisor.folder)
    monkeypatch.setattr(streaming.process.supervisor, "_FRESH_S", 0.0)
    kept.programs.look()
    assert kept.said == []
