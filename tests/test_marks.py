"""What `make test` leaves to the night (`nightly`, `soak`): never all tests of a folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

TESTS = Path(__file__).parent
LATER = {"pytest.mark.nightly", "pytest.mark.soak"}


def of_a_pull_request(module: Path) -> Iterator[str]:
    """Names of a module's tests that `make test` runs, in part at least where a test has parameters."""
    body = ast.parse(module.read_text("utf-8")).body
    if any(LATER & marks_in(statement.value) for statement in body if is_pytestmark(statement)):
        return
    for statement in body:
        if isinstance(statement, ast.FunctionDef) and statement.name.startswith("test_"):
            decorators = {ast.unparse(decorator) for decorator in statement.decorator_list}
            if not LATER & decorators:
                yield statement.name


def is_pytestmark(statement: ast.stmt) -> TypeGuard[ast.Assign]:
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytestmark"


def marks_in(value: ast.expr) -> set[str]:
    return {ast.unparse(one) for one in (value.elts if isinstance(value, ast.List) else [value])}


def test_each_folder_of_tests_has_some_that_a_pull_request_runs() -> None:
    folders = {module.parent for module in TESTS.rglob("test_*.py")}
    left_out = {
        str(folder.relative_to(TESTS))
        for folder in folders
        if not any(name for module in folder.glob("test_*.py") for name in of_a_pull_request(module))
    }
    assert left_out == set()


def test_a_test_is_left_to_the_night_by_its_own_mark_or_its_modules(tmp_path: Path) -> None:
    module = tmp_path / "test_it.py"
    module.write_text(
        "import pytest\n"
        "def test_now(): ...\n"
        "@pytest.mark.nightly\ndef test_at_night(): ...\n"
        "@pytest.mark.parametrize('n', [1, pytest.param(2, marks=pytest.mark.soak)])\ndef test_in_part(n): ...\n",
        "utf-8",
    )
    assert list(of_a_pull_request(module)) == ["test_now", "test_in_part"]
    module.write_text(
        "import pytest\npytestmark = [pytest.mark.kafka, pytest.mark.soak]\ndef test_now(): ...\n", "utf-8"
    )
    assert list(of_a_pull_request(module)) == []
