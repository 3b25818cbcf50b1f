"""`evenkeel maintain`: what it says, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streaming.config import load_settings
from streaming.exceptions import SetupError
from streaming.maintain import NotMaintainedError
from streaming.maintain import maintain as maintain_command
from streaming.process import MAINTAINER, only_one
from streaming.tables import (
    DeltaLake,
)
from tests.maintain.build import Writer, files_of, row


def _settings(lake: str, **maintenance: Any) -> Any:
    return load_settings(lake=lake, maintenance=maintenance)


def test_a_dry_run_says_what_would_be_done_and_changes_nothing(
    lake: DeltaLake, writer: Writer, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
    writer.append("lag", row("lag", -50, 100, topic="t", partition=0))
    writer.round(0, 200)
    before = files_of(lake)
    maintain_command(_settings(lake.root), Console(width=160), dry_run=True)
    told = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("lag "))
    assert "delete 1 files of days before" in told
    assert "join 3 files" in told
    assert files_of(lake) == before


def test_a_run_says_in_a_line_what_each_piece_has_done(
    lake: DeltaLake, writer: Writer, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
    maintain_command(_settings(lake.root), Console(width=160))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("lag                3 files of ")
    assert lines[0].split("(")[0].endswith("joined ")
    assert "3 files joined" in lines[-1]


@pytest.mark.nightly
def test_a_run_says_which_tables_it_could_not_maintain_when_it_finds_out_and_at_the_end(
    lake: DeltaLake, writer: Writer, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
        writer.append("members", row("members", 0, number))
    for file in Path(lake.path("lag")).rglob("*.parquet"):
        file.unlink()
    with pytest.raises(NotMaintainedError) as failed:
        maintain_command(_settings(lake.root), Console(width=160))
    first, then, *_ = capsys.readouterr().out.splitlines()
    assert first == f"lag                not maintained: {failed.value}"
    assert then.startswith("members            3 files of ")


def test_a_second_maintainer_is_refused_with_one_sentence_and_exit_code_2(lake: DeltaLake) -> None:
    command = [str(Path(sys.executable).parent / "evenkeel"), "maintain", "--lake", lake.root]
    with only_one(MAINTAINER, lake.root, None):
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr.startswith(f"Another maintainer for the lake {lake.root} runs (")
    assert f"process {os.getpid()}" in run.stderr
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("keep_days", "told"), [({"lags": 40}, "names lags, which is not a table"), ({"lag": 1}, "keeps lag for 1 days")]
)
def test_a_wrong_retention_is_told_in_one_sentence(lake: DeltaLake, keep_days: dict[str, int], told: str) -> None:
    with pytest.raises(SetupError, match=told):
        maintain_command(_settings(lake.root, keep_days=keep_days), Console())


def test_no_lake_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="There are no tables in"):
        maintain_command(_settings(str(tmp_path / "nothing")), Console())
    assert not (tmp_path / "nothing").exists()
