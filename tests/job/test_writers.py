"""Both writers, in a real Spark, with a lake in a folder and on a real S3 server: equal rows, and each batch once.

One session for each place (`writers_program.py`) makes all lakes; the tests read them without Spark. The whole job,
killed and cut off, with its checkpoint on S3, is in `tests/e2e/test_object_store.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from streaming.job.unpack import rows_by_table
from streaming.tables import TABLES, LakeReader, Table
from tests.job.writers_program import ALL, SEVERAL, packed, rows_of
from tests.object_store import ACCESS_KEY, SECRET_KEY, ObjectStore

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.timeout(960), pytest.mark.xdist_group("object_store")]

_ROOT = Path(__file__).resolve().parents[2]

ROWS = 24
"""Rows of each table in a batch."""


class Made:
    """The lakes, and what the program says about them."""

    def __init__(self, folder: Path, root: str, log: str) -> None:
        self.folder, self.root, self.log = folder, root, log
        self._answers = json.loads((folder / "answers.json").read_text("utf-8"))

    def says(self, part: str) -> Any:
        assert part in self._answers, self.log[-6000:]
        return self._answers[part]

    def rows(self, lake: str, table: str) -> Counter[str]:
        """All rows as texts, which show NULL, NaN, types and each digit."""
        return _texts(LakeReader(f"{self.root}/{lake}").rows(f"SELECT * FROM {table}"))


def _texts(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(repr(list(row.items())) for row in rows)


def _count(table: str, *batches: tuple[int, Sequence[str]]) -> int:
    return sum(rows_by_table(packed(rows_of(number, names)))[table].num_rows for number, names in batches)


@pytest.fixture(scope="module", params=["folder", "s3"])
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, object_store: ObjectStore
) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("writers")
    with pytest.MonkeyPatch.context() as environment:
        root = str(folder / "a team")
        if request.param == "s3":
            for name, value in {**object_store.environment, "AWS_SESSION_TOKEN": ""}.items():
                environment.setenv(name, value)
            root = f"{object_store.bucket('writers')}/a team"
        command = [sys.executable, "-m", "tests.job.writers_program", str(folder), root]
        given = os.environ | {"PYTHONPATH": str(_ROOT)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=given, check=False)
        assert (folder / "answers.json").exists(), done.stderr[-3000:]
        yield Made(folder, root, done.stdout + done.stderr)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_executors_write_the_rows_that_the_driver_writes_whatever_is_in_them(made: Made, table: Table) -> None:
    assert made.says("each_writer")["written"] == {table.name: ROWS for table in TABLES}
    expected = made.rows("delta-rs", table.name)
    assert expected.total() == _count(table.name, (1, ALL)) == ROWS
    written = made.rows("spark", table.name)
    assert (written if table.name != "lag" else written & expected) == expected
    assert written.total() == (2 if table.name == "lag" else 1) * ROWS


def test_a_batch_is_written_once(made: Made) -> None:
    answer = made.says("each_writer")
    assert answer["again"] == answer["older"] == {"lag": 0}


def test_followers_find_new_files_with_their_day_cluster_and_time_in_the_log(made: Made) -> None:
    first_is_snapshot, then_is_snapshot, files = made.says("each_writer")["tail"]
    assert (first_is_snapshot, then_is_snapshot) == (True, False)
    assert ["2025-11-23", ["a", "a"], "2025-11-23 12:13:20.123000+00:00"] in files


@pytest.mark.parametrize(("first", "second"), [("delta-rs", "spark"), ("spark", "delta-rs")])
def test_a_batch_that_one_writer_has_begun_is_completed_by_the_other(made: Made, first: str, second: str) -> None:
    name = f"{first}-then-{second}"
    written = made.says("switched_within_a_batch")[name]
    assert sorted(written.values()) == [0, ROWS, ROWS], "the first attempt wrote one table of three"
    for table in SEVERAL:
        assert made.rows(name, table).total() == ROWS


def test_tasks_write_large_tables_in_several_files_and_auto_collects_small_ones(made: Made) -> None:
    answer = made.says("a_large_batch")
    assert answer["written"] == {"lag": 2 * ROWS, "gaps": ROWS}
    assert made.rows("large", "lag").total() == 2 * ROWS
    assert answer["by_tasks"]["lag"] == answer["files"]["lag"] > 1
    assert answer["by_tasks"]["gaps"] == 0


def test_the_operator_runs_once_for_each_key_and_batch(made: Made) -> None:
    answer = made.says("a_stateful_query")
    assert answer["calls"] == [f"key-{key}" for key in range(3) for _ in range(2)]
    assert answer["nothing_kept"]


def test_no_credentials_are_in_sparks_configuration_its_event_log_or_its_log(made: Made) -> None:
    answer = made.says("what_is_configured")
    events = "".join(file.read_text("utf-8") for file in (made.folder / "events").rglob("*") if file.is_file())
    assert "SparkListenerSQLExecutionStart" in events
    for where in (json.dumps(answer["spark"]), json.dumps(answer["hadoop"]), events, made.log):
        assert SECRET_KEY not in where
        assert ACCESS_KEY not in where
