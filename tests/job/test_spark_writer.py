"""Both writers, in a real Spark with Delta's own library: equal rows, one transaction id, commits beside them.

One session (`spark_writer_program.py`) makes all lakes, in two minutes; the tests read them without Spark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from streaming.job.unpack import rows_by_table
from streaming.tables import TABLES, Table
from tests.job.spark_writer_program import ALL, LARGER_LAG, SEVERAL, TWO, packed, rows_of

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.timeout(960), pytest.mark.turn(3)]

_ROOT = Path(__file__).resolve().parents[2]

ROWS = 24
"""Rows of each table in a batch."""


class Made:
    """The lakes, and what the program says about them."""

    def __init__(self, folder: Path, errors: str) -> None:
        self.folder = folder
        self._answers = json.loads((folder / "answers.json").read_text("utf-8"))
        self._errors = errors

    def says(self, part: str) -> Any:
        assert part in self._answers, self._errors
        return self._answers[part]

    def table(self, lake: str, table: str) -> DeltaTable:
        return DeltaTable(str(self.folder / lake / table))

    def rows(self, lake: str, table: str) -> Counter[str]:
        """All rows as texts, which show NULL, NaN, types and each digit."""
        return _texts(self.table(lake, table).to_pyarrow_dataset().to_table().to_pylist())


def _texts(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(repr(list(row.items())) for row in rows)


def _expected(name: str, *batches: tuple[int, Sequence[str]]) -> Counter[str]:
    """The rows of some batches as the driver unpacks them, without any writer."""
    made = [rows_by_table(packed(rows_of(number, names)))[name] for number, names in batches]
    return sum((_texts(rows.to_pylist()) for rows in made), Counter())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("writers")
    command = [sys.executable, "-m", "tests.job.spark_writer_program", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment, check=False)
    assert (folder / "answers.json").exists(), done.stderr[-3000:]
    return Made(folder, done.stderr[-6000:])


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_both_writers_write_the_same_rows_whatever_is_in_them(made: Made, table: Table) -> None:
    made.says("each_writer")
    expected = _expected(table.name, (1, ALL))
    assert expected.total() == ROWS
    assert made.rows("delta-rs", table.name) == expected
    second = _expected("lag", (2, ["lag"])) if table.name == "lag" else Counter()
    assert made.rows("spark", table.name) == expected + second


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_files_of_both_have_one_schema_and_times_that_every_engine_reads(made: Made, table: Table) -> None:
    made.says("each_writer")
    schemas = set()
    for lake in ("spark", "delta-rs"):
        opened = made.table(lake, table.name)
        for uri in opened.file_uris():
            file = pq.ParquetFile(uri)
            # (Delta's writer repeats the partition's column in the file; its value there is that of the log.)
            stored = [field for field in file.schema_arrow if field.name not in table.partition_by]
            schemas.add(tuple((field.name, str(field.type)) for field in stored))
            assert "INT96" not in str(file.schema)
        actions = [json.loads(line) for log in _commits(opened) for line in log.read_text("utf-8").splitlines()]
        assert sum("metaData" in action for action in actions) == 1, "an append has changed the table"
        assert sum("protocol" in action for action in actions) == 1
        left = {file.name for file in (_folder(opened) / "_delta_log").iterdir() if not file.name.endswith(".json")}
        assert all(name.endswith(".json.crc") for name in left), "maintenance would never delete them"
    assert len(schemas) == 1, schemas


def _commits(table: DeltaTable) -> list[Path]:
    return sorted((_folder(table) / "_delta_log").glob("*.json"))


def _folder(table: DeltaTable) -> Path:
    return Path(table.table_uri.removeprefix("file://"))


def test_a_batch_is_written_once_by_either(made: Made) -> None:
    answer = made.says("each_writer")
    assert answer["written"] == {table.name: ROWS for table in TABLES}
    assert answer["again"] == answer["older"] == {"lag": 0}


def test_followers_find_new_files_with_their_day_cluster_and_time_in_the_log(made: Made) -> None:
    first_is_snapshot, then_is_snapshot, files = made.says("each_writer")["tail"]
    assert (first_is_snapshot, then_is_snapshot) == (True, False)
    assert ["2025-11-23", ["a", "a"], "2025-11-23 12:13:20.123000+00:00"] in files


def test_delta_itself_leaves_out_a_batch_that_is_not_newer_than_the_last(made: Made) -> None:
    # Batches 5, 5, 4, 6: this is what makes a race of two attempts harmless.
    answer = made.says("only_delta_skips")
    assert answer["counts"] == [8, 8, 8, 16]
    # delta-rs reads the ids from a checkpoint that Spark has written.
    assert (answer["checkpoints"], answer["after_it"]) == (1, 0)


@pytest.mark.parametrize(("first", "second"), [("delta-rs", "spark"), ("spark", "delta-rs")])
def test_a_batch_that_one_writer_has_begun_is_completed_by_the_other(made: Made, first: str, second: str) -> None:
    name = f"{first}-then-{second}"
    written = made.says("switched_within_a_batch")[name]
    assert sorted(written.values()) == [0, ROWS, ROWS], "the first attempt wrote one table of three"
    for table in SEVERAL:
        assert made.rows(name, table) == _expected(table, (0, SEVERAL))


def test_the_writer_may_change_between_batches_and_auto_chooses_by_table(made: Made) -> None:
    engines = made.says("switched_between_batches")
    assert engines == {
        "lag": ["delta-rs", "spark", "spark", "delta-rs"],
        "gaps": ["delta-rs", "delta-rs", "spark", "delta-rs"],
    }
    for table in TWO:
        assert made.rows("switched", table) == _expected(table, (0, TWO), (1, LARGER_LAG), (2, TWO), (3, TWO))


def test_commits_that_delete_and_join_files_beside_an_append_do_not_make_it_fail(made: Made) -> None:
    answer = made.says("commits_beside_it")
    assert answer["log"][-3:] == ["WRITE", "DELETE", "WRITE"], answer["log"]
    assert answer["after"] == answer["before"] - answer["deleted"] + 8


def test_registered_tables_are_written_under_their_names(made: Made) -> None:
    answer = made.says("in_a_catalog")
    assert answer["registered"]
    assert answer["written"] == [dict.fromkeys(sorted(TWO), ROWS), dict.fromkeys(sorted(TWO), 0)]
    assert answer["engines"] == {name: ["spark"] for name in TWO}
    assert answer["by_name"] == ROWS


@pytest.mark.parametrize("writer", ["spark", "auto-large", "auto-small"])
def test_the_operator_runs_once_for_each_key_and_batch(made: Made, writer: str) -> None:
    answer = made.says("a_stateful_query")[writer]
    assert answer["calls"] == [f"key-{key}" for key in range(3) for _ in range(2)]
    assert answer["engines"] == ["delta-rs" if writer == "auto-small" else "spark"] * 2
    assert answer["nothing_kept"]
