"""The rows of `batches`: Spark's progress as it is, once a batch, and nothing where no batch ran."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from streaming.job.progress import BatchLog, batch_row
from streaming.tables import ITSELF_TABLES, LakeReader, LakeUnwritableError
from tests.empty_lake import empty_lake
from tests.job.source.fake_probe import FakeProbe
from tests.job.source.runs import write_rounds

# As Spark 4.2.0 has reported a batch of our query, without what we do not read.
PROGRESS: dict[str, Any] = {
    "id": "7e0b2f6a-0c1e-4f55-9c1b-6d2f4a3e9b10",
    "batchId": 4,
    "timestamp": "2026-11-29T18:00:01.250Z",
    "numInputRows": 31,
    "durationMs": {
        "addBatch": 310, "commitOffsets": 21, "getBatch": 1, "latestOffset": 12, "queryPlanning": 9,
        "triggerExecution": 380, "walCommit": 25,
    },
    "sources": [{"latestOffset": '{"rounds": 2, "rounds_behind": 3}'}],
    "stateOperators": [{"numRowsTotal": 1_200, "memoryUsedBytes": 65_536}],
}  # fmt: skip


class _Query:
    """A query with the progress of some batches."""

    id = PROGRESS["id"]

    def __init__(self) -> None:
        self.recentProgress: list[dict[str, Any]] = []

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        return self.recentProgress[-1] if self.recentProgress else None

    def ended(self, number: int) -> None:
        self.recentProgress.append({**PROGRESS, "batchId": number})


class _Lake:
    def __init__(self) -> None:
        self.appended: list[tuple[str, list[int], str, int]] = []
        self.fails = False

    def append(self, table: str, rows: pa.Table, writer: str, batch: int) -> int:
        if self.fails:
            message = "The table cannot be written: no answer."
            raise LakeUnwritableError(message)
        self.appended.append((table, rows["batch"].to_pylist(), writer, batch))
        return len(rows)


def test_a_row_has_the_time_of_each_phase_the_rounds_and_the_state() -> None:
    assert batch_row("prod", PROGRESS, 77) == {
        "cluster": "prod", "query_id": PROGRESS["id"], "batch": 4, "started_time": 1_795_975_201_250,
        "event_date": 20_786, "duration_ms": 380, "latest_offset_ms": 12, "query_planning_ms": 9, "get_batch_ms": 1,
        "wal_commit_ms": 25, "add_batch_ms": 310, "commit_offsets_ms": 21, "rounds": 2, "rounds_behind": 3,
        "input_rows": 31, "written_rows": 77, "state_rows": 1_200, "state_bytes": 65_536,
    }  # fmt: skip


def test_of_a_batch_that_is_run_again_it_is_not_known_how_many_rounds_it_has() -> None:
    again = {**PROGRESS, "sources": [{"latestOffset": None}], "stateOperators": [],
             "durationMs": {"triggerExecution": 5}}  # fmt: skip
    row = batch_row("prod", again, 0)
    assert {name for name, value in row.items() if value is None} == {
        "latest_offset_ms", "query_planning_ms", "get_batch_ms", "wal_commit_ms", "add_batch_ms", "commit_offsets_ms",
        "rounds", "rounds_behind", "state_rows", "state_bytes",
    }  # fmt: skip


def test_batches_of_a_minute_are_one_append_and_an_idle_query_appends_nothing() -> None:
    now, lake, query = [0.0], _Lake(), _Query()
    log = BatchLog(lake, "prod", lambda: now[0])
    for number in range(3):
        log.done(number, {"lag": 5})
        log.follow(query)  # type: ignore[arg-type] # Spark reports a batch only after it
        query.ended(number)
        log.follow(query)  # type: ignore[arg-type]
    assert lake.appended == []
    for now[0] in (61.0, 600.0, 3_600.0):
        log.follow(query)  # type: ignore[arg-type]
    assert lake.appended == [("batches", [0, 1, 2], PROGRESS["id"], 2)]


def test_short_batches_between_two_looks_are_all_there() -> None:
    lake, query = _Lake(), _Query()
    log = BatchLog(lake, "prod")
    for number in range(3):
        log.done(number, {})
        query.ended(number)
    log.follow(query)  # type: ignore[arg-type]
    log.flush()
    assert [numbers for _, numbers, _, _ in lake.appended] == [[0, 1, 2]]


def test_rows_wait_for_a_store_that_does_not_answer_which_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    lake, query = _Lake(), _Query()
    log = BatchLog(lake, "prod")
    lake.fails = True
    for number in range(2):
        log.done(number, {})
        query.ended(number)
        log.follow(query)  # type: ignore[arg-type]
        log.flush()
    assert len(caplog.records) == 1
    lake.fails = False
    log.flush()
    assert [numbers for _, numbers, _, _ in lake.appended] == [[0, 1]]


@pytest.fixture
def probe(bootstrap: str, unique: str) -> Iterator[FakeProbe]:
    made = FakeProbe(bootstrap, unique)
    yield made
    made.close()


@pytest.mark.nightly
@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.xdist_group("recorded")
def test_a_real_query_reports_what_the_rows_need(spark: SparkSession, probe: FakeProbe, tmp_path: Path) -> None:
    write_rounds(probe, 5)
    lake = empty_lake(tmp_path / "lake", ITSELF_TABLES)
    log = BatchLog(lake, "prod")

    def write(frame: DataFrame, number: int) -> None:
        log.done(number, {"lag": frame.count()})

    source = spark.readStream.format("evenkeel").option("settings", probe.settings(max_rounds=2).option()).load()
    writer = source.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "c"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    log.follow(query)
    log.flush()
    rows = LakeReader(tmp_path / "lake").rows("SELECT * FROM batches ORDER BY batch")
    assert [(row["batch"], row["rounds"], row["rounds_behind"]) for row in rows] == [(0, 2, 3), (1, 2, 1), (2, 1, 0)]
    for row in rows:
        assert row["query_id"] == query.id
        assert row["input_rows"] >= row["written_rows"] > 0
        phases = [value for name, value in row.items() if name.endswith("_ms") and name != "duration_ms"]
        assert 0 < sum(phases) <= row["duration_ms"] + len(phases)
    assert DeltaTable(lake.path("batches")).version() == 1


@pytest.mark.parametrize("latest", [None, "null", "{}"])
def test_after_a_restart_spark_knows_no_newest_offset_and_neither_does_the_row(latest: str | None) -> None:
    row = batch_row("prod", {**PROGRESS, "sources": [{"latestOffset": latest}]}, 7)
    assert (row["rounds"], row["rounds_behind"], row["written_rows"]) == (None, None, 7)


@pytest.mark.parametrize(
    "wrong", [{"sources": []}, {"stateOperators": None, "durationMs": None}, {"timestamp": "soon"}]
)
def test_progress_in_another_form_ends_nothing_and_is_told_once(
    wrong: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    lake, query = _Lake(), _Query()
    log = BatchLog(lake, "prod")  # type: ignore[arg-type]
    for number in range(2):
        log.done(number, {"lag": 1})
        query.recentProgress.append({**PROGRESS, "batchId": number, **wrong})
        log.follow(query)  # type: ignore[arg-type]
    [told] = caplog.messages
    assert told.startswith("the progress of a batch could not be read: ")
