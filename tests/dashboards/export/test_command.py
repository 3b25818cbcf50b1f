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
    assert run("grafana", "--source", "duckdb", "-o", str(file))[:2] == (0, "")
    assert run("grafana", "--source", "duckdb")[:2] == (0, file.read_text())
    assert file.read_text() == export("grafana", "duckdb")
    assert file.read_bytes().isascii()


@pytest.mark.parametrize("where", ["missing/board.json", "."])
def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path, where: str) -> None:
    _, printed, error = run("databricks", "--output", str(tmp_path / where))
    assert printed == ""
    assert isinstance(error, SetupError)
    assert str(error).startswith(f"The board cannot be written to {tmp_path / where} (")


def test_the_bounds_are_those_of_the_settings_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("thresholds: {silent_at_least_s: 77}\nrules: []\n")
    monkeypatch.setenv("EVENKEEL_ALERTS__RULES", str(rules))
    for arguments in (["databricks"], ["grafana", "--source", "duckdb"]):
        assert "greatest(77000, 3 * " in run(*arguments)[1]


def test_alert_rules_that_cannot_be_read_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_ALERTS__RULES", str(tmp_path / "none.yaml"))
    assert isinstance(run("databricks")[2], SetupError)
    # Metrics bring their own judgement along.
    assert run("grafana")[0] == 0
