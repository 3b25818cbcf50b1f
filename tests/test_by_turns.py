"""Groups of tests stay in one process, and the longest begin first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pytest_run import run_pytest

_ORDINARY = """
import pytest

@pytest.mark.parametrize("number", range(4))
def test_of_{name}(number): ...
"""

_GROUPED = """
import pytest

pytestmark = [pytest.mark.xdist_group("shared"), pytest.mark.turn({turn})]

@pytest.mark.parametrize("number", range(4))
def test_of_{name}(number): ...
"""


_SERVER = """

def note(event):
    with open("events", "a") as events:
        print(event, file=events)

@pytest.fixture(scope="session")
def server(until_its_group_ends):
    until_its_group_ends.callback(note, "the server ends")

@pytest.fixture(autouse=True)
def noted(request):
    note(request.node.name)
"""

_SERVED = """
import pytest

@pytest.mark.xdist_group("served")
@pytest.mark.turn(1)
def test_{name}(server): ...
"""


@pytest.mark.nightly
def test_groups_stay_whole_and_begin_in_turn(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"test_{name}.py").write_text(_ORDINARY.format(name=name), "utf-8")
    for name, turn in (("x", 2), ("y", 1)):
        (tmp_path / f"test_{name}.py").write_text(_GROUPED.format(name=name, turn=turn), "utf-8")
    run = run_pytest(tmp_path, processes=2)
    assert run.returncode == 0, run.stdout
    passed = re.findall(r"\[(gw\d)\].* PASSED test_(\w)\.py", run.stdout)
    assert len(passed) == 20, run.stdout
    of = {name: {process for process, module in passed if module == name} for name in "abcxy"}
    assert {len(processes) for processes in of.values()} == {1}, run.stdout
    assert of["x"] == of["y"]
    (shared,) = of["x"]
    assert [name for process, name in passed if process == shared][:8] == [*"yyyy", *"xxxx"]


@pytest.mark.nightly
def test_a_server_of_one_group_ends_with_it_and_not_with_therun_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_a(): ...", "utf-8")
    for name in ("x", "y"):
        (tmp_path / f"test_{name}.py").write_text(_SERVED.format(name=name), "utf-8")
    run = run_pytest(tmp_path, processes=1, fixtures=_SERVER)
    assert run.returncode == 0, run.stdout
    events = (tmp_path / "events").read_text("utf-8").splitlines()
    assert events == ["test_x", "test_y", "the server ends", "test_a"]
