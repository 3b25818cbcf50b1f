"""Small programs under the real supervisor: restarts, rests, messages, and the processes and logs left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from supervisor.states import ProcessStates

import streaming.process.programs
import streaming.process.supervisor
from streaming.lifecycle import SUPERVISOR
from streaming.process import Program, Programs

pytestmark = pytest.mark.turn(6)

_ROOT = Path(__file__).resolve().parents[2]

_WAITS = ("-c", "import time; print('here, 100%', flush=True); time.sleep(600)")
_REST_S = 4.0


def _until(true: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        pause.wait(0.05)


def _program(name: str, code: str, *arguments: str, grace_s: float = 5) -> Program:
    return Program(name, ("-c", textwrap.dedent(code), *arguments), grace_s)


# A process like the job: one child in a separate process group that holds its parent's output (unlike Spark's JVM), and
# one in the parent's group (like the JVM). Neither ends with its parent by itself.
_PARENT = """
import os, subprocess, sys, time
from pathlib import Path
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
Path(sys.argv[1]).write_text(str(child.pid))
time.sleep(600)
"""

# Prints when it is asked to end, and ends a little later.
_TELLS = """
import signal, sys, time
def end(*_):
    with open(sys.argv[1], "a") as file:
        print(sys.argv[2], "asked", file=file, flush=True)
        time.sleep(0.2)
        print(sys.argv[2], "ended", file=file, flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
time.sleep(600)
"""


@dataclass
class Kept:
    """Running programs, and the messages about them."""

    programs: Programs
    said: list[str]
    logs: Path

    def until_said(self, sentence: str) -> None:
        def told() -> bool:
            self.programs.look()
            return any(sentence in line for line in self.said)

        _until(told)

    def pid(self, program: Program) -> int:
        _until(lambda: self.programs.look() or self.programs.pid_of(program))
        pid = self.programs.pid_of(program)
        assert pid is not None
        return pid


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    # A program that has run for a second counts as started; small logs, so that they rotate.
    monkeypatch.setattr(streaming.process.supervisor, "_START_S", 1)
    monkeypatch.setattr(streaming.process.supervisor, "_LOG_BYTES", 20_000)
    said: list[str] = []
    environment = {"EVENKEEL_KAFKA__SASL_PASSWORD": "it's a 100% secret; #really"}
    with Programs(tmp_path / "logs", environment, said.append, rest_s=_REST_S) as programs:
        yield Kept(programs, said, tmp_path / "logs")


def test_who_is_killed_is_back_who_needs_a_person_rests_and_the_others_go_on(kept: Kept) -> None:
    waits, needs, fails = (
        Program("waits", _WAITS, 5),
        _program("needs", "import sys; sys.exit(print('No Java was found: install one.', file=sys.stderr) or 2)"),
        _program("fails", "import sys; print('boom'); sys.exit(1)"),
    )
    for program in (waits, needs, fails):
        kept.programs.start(program)
    first = kept.pid(waits)
    kept.until_said("needs cannot run: No Java was found: install one. It is tried again every 4 s.")
    kept.until_said("fails ended with code 1 (boom) and is being restarted")
    # Both have been restarted since; the one that waits for a person only after its rest.
    _until(lambda: kept.programs.look() or kept.programs.log_of(needs).read_text().count("No Java") == 2)
    _until(lambda: kept.programs.look() or kept.programs.log_of(fails).read_text().count("boom") >= 3)
    assert kept.pid(waits) == first

    began = time.monotonic()
    psutil.Process(first).kill()
    kept.until_said("waits was killed (SIGKILL) and is being restarted")
    assert kept.pid(waits) != first
    assert time.monotonic() - began < 30
    kept.until_said("waits runs again")

    # Each message is printed once, however often its cause occurred; the same messages are in a log.
    assert len(kept.said) == len(set(kept.said)) == 4
    own = (kept.logs / "up.log").read_text("utf-8").splitlines()
    assert [line.split(" up: ")[1] for line in own] == kept.said
    assert {line.split(" ")[2] for line in own} == {"WARNING", "INFO"}


def test_programs_stop_last_started_first_and_only_those_that_are_named(kept: Kept, tmp_path: Path) -> None:
    told = tmp_path / "told"
    programs = [_program(name, _TELLS, str(told), name) for name in ("one", "two", "three")]
    deaf = _program("deaf", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)", grace_s=0.5)
    for program in (*programs, deaf):
        kept.programs.start(program)
    pids = [kept.pid(program) for program in (*programs, deaf)]
    _until(lambda: all("ready" in kept.programs.log_of(program).read_text() for program in programs))
    kept.programs.stop(["deaf", "two"])
    assert [psutil.pid_exists(pid) for pid in pids] == [True, False, True, False]
    # A stopped program can be started again. There was no message, because we stopped it.
    kept.programs.start(deaf)
    assert kept.pid(deaf) not in pids
    assert kept.said == []
    kept.programs.stop()
    assert not any(map(psutil.pid_exists, pids))
    assert told.read_text().split() == [
        *("two", "asked", "two", "ended"),
        *("three", "asked", "three", "ended"),
        *("one", "asked", "one", "ended"),
    ]


def test_secrets_reach_a_program_by_environment_and_stand_in_no_file_and_no_command_line(kept: Kept) -> None:
    shows = _program(
        "shows", "import os, time; print(len(os.environ['EVENKEEL_KAFKA__SASL_PASSWORD']), flush=True); time.sleep(600)"
    )
    kept.programs.start(shows)
    pid = kept.pid(shows)
    _until(lambda: kept.programs.log_of(shows).read_text() == "27\n")
    assert "EVENKEEL_KAFKA__SASL_PASSWORD" not in os.environ
    ours = [psutil.Process(pid), *psutil.Process(pid).parents()]
    private = kept.programs._supervisor.folder
    assert private.stat().st_mode & 0o077 == 0
    written = "".join(
        path.read_text() for folder in (kept.logs, private) for path in folder.iterdir() if path.is_file()
    )
    assert "100% secret" not in written + " ".join(" ".join(process.cmdline()) for process in ours)
    kept.programs.stop()
    assert not private.exists()


def test_a_program_knows_by_name_what_starts_it_again(kept: Kept) -> None:
    shows = _program("shows", f"import os, time; print(os.environ[{SUPERVISOR!r}], flush=True); time.sleep(600)")
    kept.programs.start(shows)
    pid = kept.pid(shows)
    _until(lambda: kept.programs.log_of(shows).read_text().count("\n") == 1)
    psutil.Process(pid).kill()
    _until(lambda: kept.programs.look() or kept.programs.log_of(shows).read_text().count("\n") == 2)
    first, second = kept.programs.log_of(shows).read_text().split()
    assert first == second
    assert len(first) == 32


def test_logs_sockets_and_notes_are_this_users_alone_and_what_a_program_makes_is_as_ever(tmp_path: Path) -> None:
    makes = _program(
        "makes", f"open({str(tmp_path / 'made')!r}, 'w'); print('made', flush=True); import time; time.sleep(600)"
    )
    fails = _program("fails", "import sys; sys.exit(1)")
    said: list[str] = []
    before = os.umask(0o022)
    try:
        with Programs(tmp_path / "lake" / "_logs" / "mine", {}, said.append) as programs:
            programs.start(makes)
            programs.start(fails)
            _until(lambda: programs.look() or (said and "made" in programs.log_of(makes).read_text()))
            private = programs._supervisor.folder
            folders = [private, tmp_path / "lake" / "_logs" / "mine"]
            inside = [path for folder in folders for path in folder.iterdir()]
            assert {path.name for path in inside} >= {"control", "pid", "up.log", "makes.log", "supervisor.log"}
            assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}
            assert {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in inside} == {
                path.name: "0o600" for path in inside
            }
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "lake").stat().st_mode) == 0o755


def test_a_module_in_the_working_folder_takes_no_librarys_place_and_pythonpath_still_counts(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "duckdb.py").write_text("print('the trap of the working folder', flush=True)")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "by_weight.py").write_text("print('a strategy of the user', flush=True)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "mine"))
    code = "import duckdb, by_weight, time; print(len(duckdb.__version__) > 2, flush=True); time.sleep(600)"
    inner = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    imports = [Program("own", ("-c", code), 5), Program("below", ("-c", inner), 5)]
    for program in imports:
        kept.programs.start(program)
    for log in map(kept.programs.log_of, imports):
        _until(lambda log=log: log.exists() and log.read_text().count("\n") == 2)
        assert log.read_text() == "a strategy of the user\nTrue\n"


def test_a_log_has_a_bound_and_no_escape_of_a_terminal(kept: Kept) -> None:
    loud = _program(
        "loud",
        """
        import time
        for number in range(60_000):
            print(f"\\x1b[31mline {number}\\x1b[0m")
        print("", flush=True)
        time.sleep(600)
        """,
    )
    kept.programs.start(loud)

    def written() -> dict[str, str]:
        found = {}
        for path in kept.logs.glob("loud.log*"):
            with contextlib.suppress(FileNotFoundError):  # just rotated
                found[path.name] = path.read_text()
        return found

    _until(lambda: any("line 59999\n" in text for text in written().values()), 60)
    assert sorted(written()) == ["loud.log", *(f"loud.log.{n}" for n in range(1, 6))]
    # At most a pipe's content more than the limit.
    assert all(len(text) < 20_000 + 2**17 for text in written().values())
    assert "\x1b" not in "".join(written().values())


def test_what_lies_among_temporary_files_is_kept_young(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.programs.start(Program("waits", _WAITS, 5))
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
    parent = _program("parent", _PARENT, str(tmp_path / "child"))
    kept.programs.start(parent)
    first = kept.pid(parent)
    _until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
    old = [psutil.Process(first), psutil.Process(int((tmp_path / "child").read_text()))]
    guard = old[0].parent()
    assert guard is not None
    supervisord = guard.parent()
    assert supervisord is not None
    assert "supervisord" in " ".join(supervisord.cmdline())
    supervisord.kill()
    kept.until_said("the supervisor was killed; restarting everything")
    assert kept.pid(parent) != first
    assert kept.said == ["the supervisor was killed; restarting everything"]
    assert psutil.wait_procs(old, timeout=60)[1] == []


def _supervisord(kept: Kept, program: Program) -> psutil.Process:
    guard = psutil.Process(kept.pid(program)).parent()
    assert guard is not None
    supervisord = guard.parent()
    assert supervisord is not None
    assert "supervisord" in " ".join(supervisord.cmdline())
    return supervisord


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
    program = _program("locks", locks, str(tmp_path / "lock"))
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
    program = Program("waits", _WAITS, 5)
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
    kept.programs.start(Program("waits", _WAITS, 5))
    kept.programs.look()
    shutil.rmtree(kept.programs._supervisor.folder)
    monkeypatch.setattr(streaming.process.supervisor, "_FRESH_S", 0.0)
    kept.programs.look()
    assert kept.said == []


class _Supervisor:
    """A supervisor of one program, whose calls can fail."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_gone = self.lost_its_files = False
        self.state = int(ProcessStates.RUNNING)
        self.refuses = ""
        self.woken = 0

    def states(self) -> dict[str, int]:
        return {"alerter": self.state}

    def start(self, _program: object) -> None:
        self._run("start 5")

    def rest(self, _name: str) -> None:
        self.state = int(ProcessStates.STOPPED)

    def wake(self, _name: str) -> str:
        self.woken += 1
        if not self.refuses:
            self.state = int(ProcessStates.RUNNING)
            self._run("start 6")
        return self.refuses

    def close(self) -> None:
        pass

    def dies(self, code: int) -> None:
        self._run(f"end 5 {code}")

    def _run(self, line: str) -> None:
        with (self.folder / "alerter.runs").open("a") as file:
            file.write(f"{line}\n")


@pytest.fixture
def faked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Kept, _Supervisor]]:
    """A program `alerter`, which rests for no time, under a fake supervisor whose answers the test sets."""
    monkeypatch.setattr(streaming.process.programs, "_NOTICED_S", 0.0)
    monkeypatch.setattr(streaming.process.programs, "Supervisor", lambda *_: _Supervisor(tmp_path))
    said: list[str] = []
    with Programs(tmp_path / "logs", {}, said.append, rest_s=0.0) as programs:
        programs.start(Program("alerter", _WAITS, 5))
        supervisor = programs._supervisor
        assert isinstance(supervisor, _Supervisor)
        yield Kept(programs, said, tmp_path / "logs"), supervisor


def test_a_program_that_could_not_be_woken_rests_again_and_is_woken_after_that(
    faked: tuple[Kept, _Supervisor],
) -> None:
    kept, supervisor = faked
    supervisor.dies(2)
    kept.programs.look()
    supervisor.refuses = "NO_FILE: /usr/bin/python"
    kept.until_said("alerter was not started again (NO_FILE: /usr/bin/python). It is tried again every 0 s.")
    for _ in range(6):
        kept.programs.look()
    assert supervisor.woken > 2
    supervisor.refuses = ""
    kept.until_said("alerter runs again")
    assert len(kept.said) == 3


def test_the_programs_that_are_down_are_named_until_they_run_again(faked: tuple[Kept, _Supervisor]) -> None:
    kept, supervisor = faked
    kept.programs.look()
    assert kept.programs.down() == []
    supervisor.dies(2)
    kept.programs.look()
    [sentence] = kept.programs.down()
    assert sentence.startswith("alerter cannot run: ")
    # It is down as long as its rest, whatever was said since, and is woken at the next look.
    assert kept.said == [sentence]
    kept.until_said("alerter runs again")
    assert kept.programs.down() == []


def test_nothing_outlives_the_command_when_it_is_killed(tmp_path: Path) -> None:
    code = f"""
    import sys, time
    from pathlib import Path
    sys.path.insert(0, {str(_ROOT)!r})
    from streaming.process.programs import Program, Programs
    programs = Programs(Path(sys.argv[1]), {{}}, print)
    deaf = "import signal; signal.signal(15, signal.SIG_IGN)\\n"
    parent = Program("parent", ("-c", deaf + {_PARENT!r}, sys.argv[1] + "/child"), 60)
    programs.start(parent)
    while not programs.pid_of(parent) or not (Path(sys.argv[1]) / "child").exists():
        programs.look()
        time.sleep(0.05)
    print("up", flush=True)
    time.sleep(600)
    """
    running = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), str(tmp_path)], stdout=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stdout.readline() == b"up\n"
    children = psutil.Process(running.pid).children(recursive=True)
    # Guard, supervisord, guard, program, and its child.
    assert len(children) == 5
    running.kill()
    running.wait(60)
    assert psutil.wait_procs(children, timeout=60)[1] == []
