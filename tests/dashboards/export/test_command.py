"""`evenkeel export` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashboards.export import export
from streaming.cli import app
from streaming.exceptions import SetupError


def run(*arguments: str) -> tuple[int, str, BaseException | None]:
    done = CliRunner().invoke(app, ["export", *arguments])
    return done.exit_code, done.stdout, done.exception


def test_standard_output_and_a_file_get_the_same_bytes(tmp_path: Path) -> None:
    file = tmp_path / "board.json"
    assert run("grafana", "-o", str(file))[:2] == (0, "")
    assert run("grafana")[:2] == (0, file.read_text())
    assert file.read_text() == export()
    assert file.read_bytes().isascii()


@pytest.mark.parametrize("where", ["missing/board.json", "."])
def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path, where: str) -> None:
    _, printed, error = run("grafana", "--output", str(tmp_path / where))
    assert printed == ""
    assert isinstance(error, SetupError)
    assert str(error).startswith(f"The board cannot be written to {tmp_path / where} (")
