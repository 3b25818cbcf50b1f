"""What a lake holds, and how `evenkeel tables` prints it and ends."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.transaction import AddAction
from rich.console import Console

from streaming.catalog import LakeIncompleteError, contents, list_tables, print_ddl, statements
from streaming.catalog.contents import Contents, faults
from streaming.cli import main
from streaming.tables import ALERT_TABLES, ALL_TABLES, TABLES, DeltaLake, table_named
from tests.catalog.build import lake_of_five_rows


def by_name(lake: str) -> dict[str, Contents]:
    return {one.table: one for one in contents(lake)}


def test_a_table_is_told_by_its_rows_files_bytes_and_days(tmp_path: Path) -> None:
    lake = lake_of_five_rows(tmp_path / "lake")
    found = by_name(lake.root)["lag"]
    assert (found.state, found.reason, found.rows, found.files, found.version) == ("ok", None, 3, 3, 2)
    assert (found.oldest_day, found.newest_day) == (date(1970, 1, 2), date(1970, 1, 4))
    assert found.size_bytes == sum(file.stat().st_size for file in (tmp_path / "lake" / "lag").rglob("*.parquet"))


def test_the_newest_round_and_the_newest_commit_have_their_times(tmp_path: Path) -> None:
    before = time.time() - 1
    found = by_name(lake_of_five_rows(tmp_path / "lake").root)["rounds"]
    assert found.newest_round_time == datetime(1970, 1, 2, 1, 1, 1, tzinfo=UTC)
    assert found.oldest_round_time <= found.newest_round_time
    assert before <= found.newest_commit.timestamp() <= time.time() + 1


def test_rows_of_a_file_without_statistics_are_counted_in_the_file(tmp_path: Path) -> None:
    lake = lake_of_five_rows(tmp_path / "lake")
    folder = tmp_path / "lake" / "gaps"
    schema = table_named("gaps").arrow_schema
    for name, rows in (("told.parquet", 4), ("silent.parquet", 6)):
        pq.write_table(pa.table([pa.nulls(rows, field.type) for field in schema], schema=schema), folder / name)
    opened = DeltaTable(lake.path("gaps"))
    actions = [
        AddAction(name, (folder / name).stat().st_size, {}, 0, data_change=True, stats=stats)
        for name, stats in (("told.parquet", '{"numRecords": 4}'), ("silent.parquet", "{}"))
    ]
    opened.create_write_transaction(actions, "append", opened.schema(), [])
    assert by_name(lake.root)["gaps"].rows == 10


@pytest.mark.parametrize("broken", ["log", "features"])
def test_an_unreadable_table_says_why_and_hides_no_other(tmp_path: Path, broken: str) -> None:
    lake = lake_of_five_rows(tmp_path / "lake")
    if broken == "log":
        (tmp_path / "lake" / "lag" / "_delta_log" / f"{2:020d}.json").write_text("{broken", encoding="utf-8")
    else:
        shutil.rmtree(tmp_path / "lake" / "lag")
        _with_deletion_vectors(lake)
    found = by_name(lake.root)
    assert (found["lag"].state, found["lag"].rows, found["lag"].version) == ("unreadable", None, None)
    assert found["lag"].reason
    assert [one.table for one in found.values() if one.state != "ok"] == ["lag"]
    assert faults(list(found.values())) == [found["lag"]]


def _with_deletion_vectors(lake: DeltaLake) -> None:
    DeltaTable.create(
        lake.path("lag"), table_named("lag").arrow_schema, configuration={"delta.enableDeletionVectors": "true"}
    )


def test_a_lake_has_every_table_from_the_jobs_first_start_on(tmp_path: Path) -> None:
    DeltaLake(str(tmp_path)).create()
    found = contents(str(tmp_path))
    assert {one.state for one in found} == {"ok"}
    assert faults(found) == []


def test_a_lake_to_which_only_the_alerter_has_come_has_no_fault(tmp_path: Path) -> None:
    DeltaLake(str(tmp_path)).create(ALERT_TABLES)
    found = contents(str(tmp_path))
    assert sum(one.state == "missing" for one in found) == len(ALL_TABLES) - len(ALERT_TABLES)
    assert faults(found) == []


@pytest.mark.parametrize("deleted", [TABLES[0].name, ALERT_TABLES[0].name])
def test_a_table_that_was_deleted_beside_those_of_the_job_is_a_fault(tmp_path: Path, deleted: str) -> None:
    lake = lake_of_five_rows(tmp_path / "lake")
    shutil.rmtree(tmp_path / "lake" / deleted)
    assert [(one.table, one.state) for one in faults(contents(lake.root))] == [(deleted, "missing")]


def listed(lake: str, *, now: datetime | None = None) -> str:
    said = io.StringIO()
    clock = now or datetime.now(UTC)
    list_tables(lake, Console(file=said, width=160), now=lambda: clock)
    return said.getvalue()


def evenkeel(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    """Run the command in this process: exit code, stdout and stderr."""
    monkeypatch.setattr(sys, "argv", ["evenkeel", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def test_the_list_has_a_line_a_table_and_the_age_of_the_newest_round(tmp_path: Path) -> None:
    lake = lake_of_five_rows(tmp_path / "lake").root
    newest = next(one.newest_commit for one in contents(lake) if one.table == "lag")
    assert newest is not None
    lines = listed(lake, now=newest + timedelta(seconds=7)).splitlines()
    size = sum(file.stat().st_size for file in (tmp_path / "lake" / "lag").rglob("*.parquet"))
    assert lines[0].split() == ["table", "rows", "files", "size", "days", "newest", "commit"]
    lag = next(line for line in lines if line.startswith("lag "))
    assert re.sub(" +", " ", lag) == f"lag 3 3 {size / 1000:.1f} kB 1970-01-02 to 1970-01-04 7 s ago"
    assert [line.split()[0] for line in lines[1:-1]] == [table.name for table in ALL_TABLES]
    assert lines[-1].startswith("Newest round: 1970-01-02 01:01:01 UTC, ")


def test_json_has_what_a_script_needs(tmp_path: Path) -> None:
    lake = lake_of_five_rows(tmp_path / "lake").root
    shutil.rmtree(tmp_path / "lake" / "alerts")
    said = io.StringIO()
    with pytest.raises(LakeIncompleteError, match=r": alerts\. The job creates them when it starts again\.$"):
        list_tables(lake, Console(file=said, width=160), as_json=True)
    document = json.loads(said.getvalue())
    tables = {one.pop("table"): one for one in document.pop("tables")}
    assert document == {"lake": lake}
    assert tables.keys() == {table.name for table in ALL_TABLES}
    rounds = tables["rounds"]
    assert datetime.fromisoformat(rounds.pop("newest_commit")).utcoffset() == timedelta(0)
    assert rounds.pop("size_bytes") > 100
    assert rounds == {
        "state": "ok",
        "reason": None,
        "rows": 1,
        "files": 1,
        "oldest_day": "1970-01-02",
        "newest_day": "1970-01-02",
        "version": 1,
        "newest_round_time": "1970-01-02T01:01:01+00:00",
    }
    assert tables["alerts"] == dict.fromkeys(tables["alerts"]) | {"state": "missing"}


def test_tables_that_were_deleted_or_are_broken_are_in_the_list_and_in_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = lake_of_five_rows(tmp_path / "lake").root
    shutil.rmtree(tmp_path / "lake" / "drift")
    (tmp_path / "lake" / "lag" / "_delta_log" / f"{2:020d}.json").write_text("{broken", encoding="utf-8")
    code, out, err = evenkeel(monkeypatch, capsys, "tables", "--lake", lake)
    states = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert code == 1
    assert (states["drift"], states["lag"]) == (["-", "-", "-", "missing", "-"], ["-", "-", "-", "unreadable", "-"])
    broken, gone = err.splitlines()
    assert broken.startswith(f"Unreadable in {lake}: lag (")
    assert gone.startswith(f"Missing in {lake}: drift. ")


def test_a_folder_without_tables_is_told_in_one_sentence_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    no = tmp_path / "no"
    told = f"There are no tables in {no}: name the lake with --lake, or in the setting `lake`.\n"
    for arguments in ([], ["--json"], ["--ddl", "spark"]):
        assert evenkeel(monkeypatch, capsys, "tables", "--lake", str(no), *arguments) == (2, "", told)
    assert not no.exists()


def test_statements_alone_are_on_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = lake_of_five_rows(tmp_path / "la'ke").root
    code, out, err = evenkeel(monkeypatch, capsys, "tables", "--lake", lake, "--ddl", "spark", "--schema", "mine")
    assert (code, err) == (0, "")
    assert out == "".join(f"{statement};\n" for statement in statements("spark", lake, "mine"))


@pytest.mark.parametrize("older", ["missing", "without its newest column"])
def test_a_lake_of_an_older_release_prints_no_statement_and_says_who_completes_it(tmp_path: Path, older: str) -> None:
    gaps = table_named("gaps")
    lake = DeltaLake(str(tmp_path))
    lake.create(table for table in ALL_TABLES if table is not gaps)
    if older != "missing":
        lake.create([replace(gaps, columns=gaps.columns[:-1])])
    said: list[str] = []
    with pytest.raises(LakeIncompleteError, match=r": gaps\. The job creates all tables when it starts"):
        print_ddl(lake.root, "spark", "evenkeel", said.append)
    assert said == []
