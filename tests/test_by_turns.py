"""Groups of tests stay in one process, and the longest begin first."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parent

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


def test_groups_stay_whole_and_begin_in_turn(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((_TESTS / "conftest.py").read_text("utf-8"), "utf-8")
    for name in ("a", "b", "c"):
        (tmp_path / f"test_{name}.py").write_text(_ORDINARY.format(name=name), "utf-8")
    for name, turn in (("x", 2), ("y", 1)):
        (tmp_path / f"test_{name}.py").write_text(_GROUPED.format(name=name, turn=turn), "utf-8")
    markers = ["-o", "markers=turn: when"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-v", "-p", "no:cacheprovider", *markers],
        cwd=tmp_path,
        env={"PYTHONPATH": str(_TESTS.parent), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    passed = re.findall(r"\[(gw\d)\].* PASSED test_(\w)\.py", run.stdout)
    assert len(passed) == 20, run.stdout
    of = {name: {process for process, module in passed if module == name} for name in "abcxy"}
    assert {len(processes) for processes in of.values()} == {1}, run.stdout
    assert of["x"] == of["y"]
    (shared,) = of["x"]
    assert [name for process, name in passed if process == shared][:8] == [*"yyyy", *"xxxx"]
