from __future__ import annotations

import shutil
import time
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from streaming.catalog.contents import Contents, contents, faults
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
    assert found.oldest_round_time is not None
    assert found.oldest_round_time <= found.newest_round_time
    assert found.newest_commit is not None
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
