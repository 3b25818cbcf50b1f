"""Data files that are gone: readers and maintenance name them, and `evenkeel maintain --repair` takes them out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from rich.console import Console

from streaming.config import load_settings
from streaming.exceptions import SetupError
from streaming.maintain import MaintenanceError, repair
from streaming.tables import DeltaLake, LakeReader, LakeUnreadableError, has_lost
from tests.maintain.build import Writer, files_of, maintain, row

CONSOLE = Console(width=160)

ADVICE = "a data file is gone: restore it, or stop the job and run evenkeel maintain --repair"


def lose_one_file(lake: DeltaLake, writer: Writer) -> Path:
    """Three files of `lag`, the middle one is deleted."""
    paths = []
    for number in (10, 11, 12):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
        paths.append(next(path for path in Path(lake.path("lag")).rglob("*.parquet") if path not in paths))
    paths[1].unlink()
    return paths[1]


def test_readers_and_maintenance_name_the_file_and_the_command(lake: DeltaLake, writer: Writer) -> None:
    gone = lose_one_file(lake, writer)
    with pytest.raises(LakeUnreadableError) as unreadable:
        LakeReader(lake.root).count("lag_current")
    with pytest.raises(MaintenanceError) as unmaintained:
        maintain(lake)
    assert gone.name in str(unreadable.value)
    for error in (unreadable, unmaintained):
        assert ADVICE in str(error.value)


def test_a_repair_takes_the_file_out_and_notes_what_it_was(
    lake: DeltaLake, writer: Writer, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = lose_one_file(lake, writer)
    settings = load_settings(lake=lake.root)
    repair(settings, CONSOLE, dry_run=True)
    assert files_of(lake)["lag"] == 3
    assert not has_lost(lake.root, "lag")
    repair(settings, CONSOLE)
    of_dry_run, told, then = capsys.readouterr().out.splitlines()
    assert told == of_dry_run
    assert told.startswith("lag: ")
    assert gone.name in told
    assert told.endswith("is gone, 1 row of rounds 11 to 11")
    assert then.startswith("Run evenkeel run --rebuild-state to write the rows again")
    assert has_lost(lake.root, "lag")
    assert [r["round"] for r in LakeReader(lake.root).rows("SELECT round FROM lag ORDER BY 1")] == [10, 12]
    repair(settings, CONSOLE)
    assert capsys.readouterr().out == "No data file is gone.\n"


def test_a_table_of_which_everything_is_gone_is_not_forgotten(lake: DeltaLake, writer: Writer) -> None:
    writer.append("lag", row("lag", 0, 10, topic="t", partition=0))
    for day in Path(lake.path("lag")).glob("event_date=*"):
        shutil.rmtree(day)
    with pytest.raises(
        SetupError, match=r"Every data file of .* is gone: if a disk or bucket is not mounted, mount it"
    ):
        repair(load_settings(lake=lake.root), CONSOLE)
    assert files_of(lake)["lag"] == 1
