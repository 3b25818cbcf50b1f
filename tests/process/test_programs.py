"""Small programs under real guards, forked or not: restarts, rests, messages, and what is left behind."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from streaming.exceptions import SETUP_EXIT_CODE
from streaming.lifecycle import SUPERVISOR
from streaming.process import Program, Programs
from tests.process.kept import FORKED_MODULE, PARENT, WAITS, Kept, forked, program_of, until

_ROOT = Path(__file__).resolve().parents[2]

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="programs are forked on Linux alone")


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

Way = Callable[[Program], Program]

both_ways = pytest.mark.parametrize(
    "way", [pytest.param(lambda it: it, id="plain"), pytest.param(forked, id="forked", marks=on_linux)]
)


@pytest.fixture(autouse=True)
def _checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork's server finds the module in here."""
    monkeypatch.setenv("PYTHONPATH", str(_ROOT))


@pytest.mark.turn(6)
@both_ways
def test_who_is_killed_or_needs_a_person_is_back_and_the_others_go_on(kept: Kept, way: Way) -> None:
    no_java = "import sys; sys.exit(print('No Java was found: install one.', file=sys.stderr) or 2)"
    waits, needs, fails = (
        way(Program("waits", WAITS, 5)),
        way(program_of("needs", no_java)),
        way(program_of("fails", "import sys, time; print('boom at', time.monotonic_ns()); sys.exit(1)")),
    )
    for program in (waits, needs, fails):
        kept.programs.start(program)
    first = kept.pid(waits)
    kept.until_said(
        "needs cannot run: No Java was found: install one. It is tried again after longer and longer pauses, up to 4 s."
    )
    kept.until_said("fails ended with code 1 (boom at ")
    # Both have been restarted since.
    until(lambda: kept.programs.log_of(needs).read_text().count("No Java") == 2)
    until(lambda: kept.programs.log_of(fails).read_text().count("boom") >= 3)
    assert kept.pid(waits) == first

    began = time.monotonic()
    psutil.Process(first).kill()
    kept.until_said("waits was killed (SIGKILL) and is being restarted")
    assert kept.pid(waits) != first
    assert time.monotonic() - began < 30
    kept.until_said("waits runs again")

    # Each message is printed once, however often its cause occurred and whatever numbers it has; the same messages are
    # in a log.
    assert len(kept.said) == len(set(kept.said)) == 4
    own = (kept.logs / "up.log").read_text("utf-8").splitlines()
    assert [line.split(" up: ")[1] for line in own] == kept.said
    assert {line.split(" ")[2] for line in own} == {"WARNING", "INFO"}


@pytest.mark.turn(6)
@both_ways
def test_a_killed_guard_is_replaced_with_its_program_and_nothing_of_the_old_run_is_left(
    kept: Kept, way: Way, tmp_path: Path
) -> None:
    parent, other = way(program_of("parent", PARENT, str(tmp_path / "child"))), way(Program("other", WAITS, 5))
    kept.programs.start(parent)
    kept.programs.start(other)
    first, others = kept.pid(parent), kept.pid(other)
    guard = psutil.Process(first).parent()
    until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
    old = [psutil.Process(first), psutil.Process(int((tmp_path / "child").read_text()))]
    guard.kill()
    kept.until_said("the guard of parent has ended, and is restarted with its program")
    assert kept.pid(parent) != first
    assert psutil.wait_procs(old, timeout=60)[1] == []
    kept.until_said("parent runs again")
    assert kept.pid(other) == others


@pytest.mark.turn(6)
@pytest.mark.parametrize("code", [1, SETUP_EXIT_CODE])
def test_of_a_program_that_ends_at_once_the_pauses_double_until_a_run_has_lasted(code: int, tmp_path: Path) -> None:
    dies = """
    import sys, time
    with open(sys.argv[1], "a") as file:
        print(time.monotonic(), file=file)
    sys.exit(int(sys.argv[2]))
    """
    with Programs(tmp_path / "logs", {}, lambda _: None) as programs:
        programs.start(program_of("dies", dies, str(tmp_path / "runs"), str(code)))
        until(lambda: (tmp_path / "runs").exists() and (tmp_path / "runs").read_text().count("\n") == 4)
    starts = [float(line) for line in (tmp_path / "runs").read_text().splitlines()]
    # Longer on a busy machine.
    assert all(after - before >= pause for (before, after), pause in zip(pairwise(starts), (1, 2, 4), strict=True))


@pytest.mark.turn(6)
def test_a_program_that_needs_a_person_after_it_was_up_is_down(kept: Kept) -> None:
    code = """
    import sys, time
    time.sleep(2)  # well after one second
    print("the topic is missing", flush=True)
    sys.exit(2)
    """
    kept.programs.start(program_of("alerter", code))
    kept.until_said(
        "alerter cannot run: the topic is missing. It is tried again after longer and longer pauses, up to 4 s."
    )
    kept.until_said("alerter runs again")


@pytest.mark.turn(6)
@both_ways
def test_programs_stop_last_started_first_and_only_those_that_are_named(kept: Kept, way: Way, tmp_path: Path) -> None:
    told = tmp_path / "told"
    programs = [way(program_of(name, _TELLS, str(told), name)) for name in ("one", "two", "three")]
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    deaf = way(program_of("deaf", deaf, grace_s=0.5))
    for program in (*programs, deaf):
        kept.programs.start(program)
    pids = [kept.pid(program) for program in (*programs, deaf)]
    until(lambda: all("ready" in kept.programs.log_of(program).read_text() for program in programs))
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


@pytest.mark.turn(6)
def test_secrets_reach_a_program_by_environment_and_stand_in_no_file_and_no_command_line(kept: Kept) -> None:
    shows = program_of(
        "shows", "import os, time; print(len(os.environ['EVENKEEL_KAFKA__SASL_PASSWORD']), flush=True); time.sleep(600)"
    )
    kept.programs.start(shows)
    pid = kept.pid(shows)
    until(lambda: kept.programs.log_of(shows).read_text() == "27\n")
    assert "EVENKEEL_KAFKA__SASL_PASSWORD" not in os.environ
    ours = [psutil.Process(pid), *psutil.Process(pid).parents()]
    written = "".join(path.read_text() for path in kept.logs.iterdir())
    assert "100% secret" not in written + " ".join(" ".join(process.cmdline()) for process in ours)


@pytest.mark.turn(6)
def test_a_program_knows_by_name_what_starts_it_again(kept: Kept) -> None:
    shows = program_of("shows", f"import os, time; print(os.environ[{SUPERVISOR!r}], flush=True); time.sleep(600)")
    kept.programs.start(shows)
    pid = kept.pid(shows)
    until(lambda: kept.programs.log_of(shows).read_text().count("\n") == 1)
    psutil.Process(pid).kill()
    until(lambda: kept.programs.log_of(shows).read_text().count("\n") == 2)
    first, second = kept.programs.log_of(shows).read_text().split()
    assert first == second
    assert len(first) == 32


@pytest.mark.turn(6)
def test_logs_are_this_users_alone_and_what_a_program_makes_is_as_ever(tmp_path: Path) -> None:
    makes = program_of(
        "makes", f"open({str(tmp_path / 'made')!r}, 'w'); print('made', flush=True); import time; time.sleep(600)"
    )
    fails = program_of("fails", "import sys; sys.exit(1)")
    said: list[str] = []
    before = os.umask(0o022)
    try:
        with Programs(tmp_path / "lake" / "_logs" / "mine", {}, said.append) as programs:
            programs.start(makes)
            programs.start(fails)
            until(lambda: said and "made" in programs.log_of(makes).read_text())
            logs = tmp_path / "lake" / "_logs" / "mine"
            assert stat.S_IMODE(logs.stat().st_mode) == 0o700
            rights = {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in logs.iterdir()}
            assert rights == dict.fromkeys(["up.log", "makes.log", "fails.log"], "0o600")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "lake").stat().st_mode) == 0o755


@pytest.mark.turn(6)
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
        until(lambda log=log: log.exists() and log.read_text().count("\n") == 2)
        assert log.read_text() == "a strategy of the user\nTrue\n"


@pytest.mark.turn(6)
def test_a_log_has_a_bound_and_no_escape_of_a_terminal(kept: Kept) -> None:
    loud = program_of(
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

    until(lambda: any("line 59999\n" in text for text in written().values()))
    assert sorted(written()) == ["loud.log", *(f"loud.log.{n}" for n in range(1, 6))]
    # At most a pipe's content more than the limit.
    assert all(len(text) < 20_000 + 2**17 for text in written().values())
    assert "\x1b" not in "".join(written().values())


@pytest.mark.turn(6)
@pytest.mark.parametrize(
    ("way", "processes"),
    [
        ("", 3),  # guard, program, and its child
        pytest.param("forked", 4, marks=on_linux),  # the server, too
    ],
)
def test_nothing_outlives_the_command_when_it_is_killed(way: str, processes: int, tmp_path: Path) -> None:
    code = f"""
    import sys, time
    from pathlib import Path
    from streaming.process import Program, Programs
    from tests.process.kept import forked
    programs = Programs(Path(sys.argv[1]), {{}}, print)
    deaf = "import signal; signal.signal(15, signal.SIG_IGN)\\n"
    programs.start({way}(Program("parent", ("-c", deaf + {PARENT!r}, sys.argv[1] + "/child"), 60)))
    while not (Path(sys.argv[1]) / "child").exists():
        time.sleep(0.05)
    print("up", flush=True)
    time.sleep(600)
    """
    running = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), str(tmp_path)], stdout=subprocess.PIPE)
    assert running.stdout.readline() == b"up\n"
    children = psutil.Process(running.pid).children(recursive=True)
    assert len(children) == processes
    running.kill()
    running.wait(60)
    assert psutil.wait_procs(children, timeout=60)[1] == []


@pytest.fixture
def three(kept: Kept) -> list[Program]:
    """Three programs that run."""
    programs = [forked(Program(f"probe-{number}", WAITS, 5)) for number in range(3)]
    for program in programs:
        kept.programs.start(program)
    for program in programs:
        until(lambda program=program: "here" in kept.programs.log_of(program).read_text())  # type: ignore[misc]
    return programs


def _server_of(program: int) -> psutil.Process:
    """The process that has forked a program's guard."""
    server = psutil.Process(program).parents()[1]
    assert server.cmdline()[-1] == FORKED_MODULE
    return server


@pytest.mark.turn(6)
@on_linux
def test_forks_have_one_server_which_keeps_no_zombies_and_ends_after_them(kept: Kept, three: list[Program]) -> None:
    first = kept.pid(three[1])
    server = _server_of(first)
    psutil.Process(first).kill()
    until(lambda: kept.pid(three[1]) != first)
    processes = [psutil.Process(kept.pid(program)) for program in three]
    assert {_server_of(process.pid) for process in processes} == {server}
    until(lambda: not any(child.status() == psutil.STATUS_ZOMBIE for child in server.children()))
    kept.programs.__exit__()
    assert psutil.wait_procs([*processes, server], timeout=1)[1] == []


@pytest.mark.turn(6)
@on_linux
def test_a_killed_server_takes_its_programs_along_and_all_are_back(kept: Kept, three: list[Program]) -> None:
    old = [psutil.Process(kept.pid(program)) for program in three]
    server = _server_of(old[0].pid)
    server.kill()
    assert psutil.wait_procs(old, timeout=60)[1] == []
    until(lambda: len({one.process.pid for one in kept.programs._kept if one.process is not None}) == 3)
    for program in three:
        kept.until_said(f"{program.name} runs again")
    assert len({_server_of(kept.pid(program)) for program in three}) == 1


@pytest.mark.turn(6)
@on_linux
def test_each_has_its_own_secrets_and_the_server_has_none(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "secret of one")
    monkeypatch.setenv("HIS", "secret of another")
    shows = (
        "import os, time; print(os.environ.get('MINE'), os.environ.get('HIS'), sep=', ', flush=True); time.sleep(600)"
    )
    one = replace(forked(program_of("one", shows)), without=("HIS",))
    another = replace(forked(program_of("another", shows)), without=("MINE",))
    for program, said in ((one, "secret of one, None"), (another, "None, secret of another")):
        kept.programs.start(program)
        until(lambda program=program, said=said: said in kept.programs.log_of(program).read_text())  # type: ignore[misc]
    pid = kept.pid(one)
    for process in (psutil.Process(pid), _server_of(pid)):
        assert not {name for name in process.environ() if name in {"MINE", "HIS"} or "PASSWORD" in name}


@pytest.mark.turn(6)
@on_linux
def test_they_share_what_the_server_has_imported_and_are_told_apart_by_name(kept: Kept, three: list[Program]) -> None:
    processes = [psutil.Process(kept.pid(program)) for program in three]
    assert max(process.memory_full_info().uss for process in processes) < 16 << 20
    assert {process.name() for process in processes} == {program.name for program in three}
