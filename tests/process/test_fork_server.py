"""Programs that one process forks keep the rules of all others, and share its memory and nothing else."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from streaming.process import Program
from tests.process.kept import Kept, until

pytestmark = [
    pytest.mark.turn(6),
    pytest.mark.skipif(sys.platform != "linux", reason="programs are forked on Linux alone"),
]

_ROOT = Path(__file__).parents[2]
_MODULE = "tests.process.forked_program"


def _forked(name: str, without: tuple[str, ...] = (), **environment: str) -> Program:
    return Program(name, ("-m", _MODULE), 5, without, environment, is_forked=True)


@pytest.fixture
def three(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """Three programs that run."""
    monkeypatch.setenv("PYTHONPATH", str(_ROOT))
    programs = [_forked(f"probe-{number}") for number in range(3)]
    for program in programs:
        kept.programs.start(program)
    for program in programs:
        until(lambda program=program: "here" in kept.programs.log_of(program).read_text())  # type: ignore[misc]
    return programs


def _server_of(program: int) -> psutil.Process:
    """The process that has forked a program's guard."""
    server = psutil.Process(program).parents()[1]
    assert server.cmdline()[-1] == _MODULE
    return server


def test_one_that_is_killed_is_back_and_the_others_go_on(kept: Kept, three: list[Program]) -> None:
    first = [kept.pid(program) for program in three]
    server = _server_of(first[0])
    psutil.Process(first[1]).kill()
    kept.until_said("probe-1 was killed (SIGKILL) and is being restarted")
    after = [kept.pid(program) for program in three]
    assert [after[0], after[2]] == [first[0], first[2]]
    assert after[1] != first[1]
    assert {_server_of(pid) for pid in after} == {server}
    kept.until_said("probe-1 runs again")


def test_a_killed_guard_is_replaced_with_its_program_alone(kept: Kept, three: list[Program]) -> None:
    first = [kept.pid(program) for program in three]
    old = psutil.Process(first[2])
    guard = old.parent()
    guard.kill()
    kept.until_said("the guard of probe-2 has ended, and is restarted with its program")
    assert psutil.wait_procs([old], timeout=60)[1] == []
    after = [kept.pid(program) for program in three]
    assert after[:2] == first[:2]
    assert after[2] != first[2]


def test_a_killed_server_takes_its_programs_along_and_all_are_back(kept: Kept, three: list[Program]) -> None:
    old = [psutil.Process(kept.pid(program)) for program in three]
    server = _server_of(old[0].pid)
    server.kill()
    assert psutil.wait_procs(old, timeout=60)[1] == []
    until(lambda: len({one.process.pid for one in kept.programs._kept if one.process is not None}) == 3)
    for program in three:
        kept.until_said(f"{program.name} runs again")
    assert len({_server_of(kept.pid(program)) for program in three}) == 1


def test_they_are_stopped_in_order_and_the_server_ends_after_them(kept: Kept, three: list[Program]) -> None:
    processes = [psutil.Process(kept.pid(program)) for program in three]
    server = _server_of(processes[0].pid)
    kept.programs.stop([three[0].name])
    assert not processes[0].is_running()
    assert processes[1].is_running()
    kept.programs.__exit__()
    assert psutil.wait_procs([*processes, server], timeout=1)[1] == []
    assert kept.said == []


def test_the_exit_code_is_the_programs_own_and_its_last_line_is_told(kept: Kept, three: list[Program]) -> None:
    kept.programs.start(_forked("needs", CODE="2"))
    kept.programs.start(_forked("fails", CODE="7"))
    kept.until_said("needs cannot run: here ")
    kept.until_said("fails ended with code 7 (here ")
    server = _server_of(kept.pid(three[0]))
    until(lambda: not any(child.status() == psutil.STATUS_ZOMBIE for child in server.children()))


def test_each_has_its_own_secrets_and_the_server_has_none(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(_ROOT))
    monkeypatch.setenv("MINE", "secret of one")
    monkeypatch.setenv("HIS", "secret of another")
    one, another = _forked("one", without=("HIS",)), _forked("another", without=("MINE",))
    for program, said in ((one, "secret of one, None"), (another, "None, secret of another")):
        kept.programs.start(program)
        until(lambda program=program, said=said: said in kept.programs.log_of(program).read_text())  # type: ignore[misc]
    pid = kept.pid(one)
    for process in (psutil.Process(pid), _server_of(pid)):
        assert not {name for name in process.environ() if name in {"MINE", "HIS"} or "PASSWORD" in name}


def test_they_share_what_the_server_has_imported_and_are_told_apart_by_name(kept: Kept, three: list[Program]) -> None:
    processes = [psutil.Process(kept.pid(program)) for program in three]
    assert max(process.memory_full_info().uss for process in processes) < 16 << 20
    assert {process.name() for process in processes} == {program.name for program in three}


def test_all_end_when_their_starter_is_killed(tmp_path: Path) -> None:
    starter = f"""
    import time
    from pathlib import Path
    from streaming.process import Program, Programs
    with Programs(Path({str(tmp_path / "logs")!r}), {{}}) as programs:
        for name in ("one", "another"):
            programs.start(Program(name, ("-m", {_MODULE!r}), 5, is_forked=True))
        print("ready", flush=True)
        time.sleep(600)
    """
    running = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(starter)], stdout=subprocess.PIPE, env={"PYTHONPATH": str(_ROOT)}
    )
    assert running.stdout.readline() == b"ready\n"
    below = psutil.Process(running.pid).children(recursive=True)
    assert len(below) == 5  # the server, and two guards with their programs
    running.kill()
    running.wait()
    assert psutil.wait_procs(below, timeout=60)[1] == []
