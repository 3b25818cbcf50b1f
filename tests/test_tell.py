"""What long tests tell reaches the terminal, whichever process they run in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pytest_run import run_pytest

_TELLING = """
def test_that_passes(tell):
    tell("a | 1", 2)

def test_that_fails(tell):
    tell("c | 3")
    assert False
"""


@pytest.mark.parametrize("processes", [0, pytest.param(2, marks=pytest.mark.nightly)])
def test_what_a_test_tells_is_printed_once_whether_it_passes_or_fails(tmp_path: Path, processes: int) -> None:
    (tmp_path / "test_telling.py").write_text(_TELLING, "utf-8")

    printed = run_pytest(tmp_path, processes).stdout

    assert printed.count("\ntest_telling.py::test_that_passes:\na | 1\n2\n") == 1, printed
    assert printed.count("\ntest_telling.py::test_that_fails:\nc | 3\n") == 1, printed
