"""A program that rests until a person has done something; mostly under a fake supervisor whose calls can fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from supervisor.states import ProcessStates

import streaming.process.programs
from streaming.process import Program, Programs
from tests.process.kept import REST_S, WAITS, Kept, program_of, until


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
        programs.start(Program("alerter", WAITS, 5))
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


def test_a_program_that_ends_with_code_2_after_it_was_up_is_not_started_before_its_rest_is_over(
    kept: Kept, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    code = """
    import sys, time
    with open(sys.argv[1], "a") as file:
        print(time.monotonic(), file=file, end=" ", flush=True)
        time.sleep(2)  # up after one second
        print(time.monotonic(), file=file, flush=True)
    print("the topic is missing", flush=True)
    sys.exit(2)
    """
    kept.programs.start(program_of("alerter", code, str(runs)))
    kept.until_said("alerter cannot run: the topic is missing. It is tried again every 4 s.")

    def lives() -> list[list[float]]:
        return [[float(clock) for clock in line.split()] for line in runs.read_text().splitlines()]

    until(lambda: kept.programs.look() or len(lives()) == 2)
    (_, ended), (started_again, *_) = lives()
    assert started_again >= ended + REST_S


def test_a_program_that_ended_with_code_2_rests_also_where_its_guard_could_not_write_that_down(
    faked: tuple[Kept, _Supervisor],
) -> None:
    kept, supervisor = faked
    kept.programs.look()
    supervisor.state = int(ProcessStates.EXITED)
    kept.programs.look()
    [sentence] = kept.said
    assert sentence.startswith("alerter cannot run: ")
    kept.until_said("alerter runs again")
    # Once more, and this time it cannot be woken.
    supervisor.state, supervisor.refuses = int(ProcessStates.EXITED), "NO_FILE: /usr/bin/python"
    kept.programs.look()
    supervisor.state = int(ProcessStates.EXITED)
    kept.until_said("alerter was not started again (NO_FILE: /usr/bin/python). It is tried again every 0 s.")
