"""The job's side of Spark: both writers, workers, state partitions, rows of a batch, and its progress."""

from __future__ import annotations

import gc
import importlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from streaming.config import Writer
from streaming.groups import GapRow, RoundRow, Rows, encode_rows
from streaming.job.batch import batch_writer, rows_by_table
from streaming.job.progress import BatchLog, batch_row
from streaming.tables import ITSELF_TABLES, LakeReader, LakeUnwritableError, table_named, to_arrow
from tests.empty_lake import empty_lake
from tests.job import telling_source
from tests.job.hostile_rows import hostile_rows
from tests.job.source.fake_probe import FakeProbe
from tests.job.source.runs import write_rounds
from tests.job.telling_source import TellingSource, private_kb_of_this

NAMES = ("lag", "gaps", "rounds")
ROWS = 16
"""Rows of each table in a batch, from two keys."""

Write = Callable[..., dict[str, int]]


@pytest.fixture
def write(spark: SparkSession, tmp_path: Path) -> Write:
    """`write(lake, writer, number, names)`: a batch with rows of some tables; returns the rows written by table."""
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "the-query")

    def write(lake: str, writer: Writer, number: int, names: Sequence[str] = NAMES) -> dict[str, int]:
        written: dict[str, int] = {}
        to_lake = batch_writer(empty_lake(tmp_path / lake), lambda _, rows: written.update(rows), writer)
        to_lake(_batch(spark, number, names), number)
        return written

    return write


def _batch(spark: SparkSession, number: int, names: Sequence[str]) -> DataFrame:
    packed = []
    for key in "ab":
        rows = {name: hostile_rows(table_named(name), f"{number}-{key}") for name in names}
        packed.append(msgspec.msgpack.encode([rows.get(name, []) for name in Rows.__struct_fields__]))
    return spark.createDataFrame(pa.table({"rows": pa.array(packed, pa.binary())})).repartition(2)


def _rows(lake: Path, table: str) -> Counter[str]:
    """All rows as texts, which show NULL, NaN and each digit."""
    return Counter(repr(list(row.items())) for row in LakeReader(lake).rows(f"SELECT * FROM {table}"))


@pytest.mark.spark
@pytest.mark.xdist_group("recorded")
@pytest.mark.turn(6)
def test_executors_write_the_rows_that_the_driver_writes_whatever_is_in_them_and_once(
    write: Write, tmp_path: Path
) -> None:
    by_driver, by_executors = write("driver", "delta-rs", 1), write("executors", "spark", 1)
    assert by_driver == by_executors == dict.fromkeys(NAMES, ROWS)
    for name in NAMES:
        assert _rows(tmp_path / "executors", name) == _rows(tmp_path / "driver", name)
    assert write("executors", "spark", 1) == dict.fromkeys(NAMES, 0)


@pytest.mark.spark
@pytest.mark.xdist_group("recorded")
@pytest.mark.turn(6)
@pytest.mark.nightly
@pytest.mark.parametrize(("first", "second"), [("delta-rs", "spark"), ("spark", "delta-rs")])
def test_a_batch_that_one_writer_has_begun_is_completed_by_the_other(
    write: Write, first: Writer, second: Writer
) -> None:
    write("lake", first, 0, NAMES[:1])
    assert write("lake", second, 0) == {"lag": 0, "gaps": ROWS, "rounds": ROWS}


_OBJECTS_OF_THE_OPERATOR = 10_000


@pytest.mark.spark
@pytest.mark.nightly
def test_what_a_worker_has_imported_is_kept_from_its_collector_and_that_of_no_other_process(
    spark: SparkSession,
) -> None:
    def frozen(batches: Iterator[Any]) -> Iterator[Any]:
        importlib.import_module("streaming.job.operator")
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"objects": [gc.get_freeze_count()]})

    before = gc.get_freeze_count()
    importlib.import_module("streaming.job.operator")
    [(objects,)] = spark.range(1).coalesce(1).mapInArrow(frozen, "objects long").collect()
    assert objects > _OBJECTS_OF_THE_OPERATOR
    assert gc.get_freeze_count() <= before


@pytest.mark.nightly
@pytest.mark.spark
def test_what_plans_a_query_and_its_workers_share_what_they_use_with_the_process_that_forked_them(
    spark: SparkSession,
) -> None:
    # Spark's processes cannot import the tests.
    cloudpickle.register_pickle_by_value(telling_source)

    def known(_: int) -> tuple[list[str], int]:
        return [*sys.modules], private_kb_of_this()

    # Without Arrow, whose pool of memory has a size of its own in each run.
    rows = spark.sparkContext.parallelize([0], 1).map(known).collect()
    spark.dataSource.register(TellingSource)
    query = spark.readStream.format("telling").load().writeStream.format("noop").trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    told = json.loads(query.lastProgress["sources"][0]["endOffset"])
    # Alone they are 90 MB.
    for modules, private_kb in [*rows, (told["modules"], told["private_kb"])]:
        assert {"streaming.job.operator", "streaming.job.source.planner", "kafka", "pandas"} <= {*modules}
        assert private_kb < 20_000


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
            raise LakeUnwritableError("The table cannot be written: no answer.")
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


def gap(number: int) -> GapRow:
    return GapRow("c", "log", "t", number, 2, 3, None, None, "gone")


ROUND = RoundRow("c", None, 1, 1_000, 0, 1_001, 10_000, "p", 3, 4, 5, 0, 6, 0, 1, 10_080)


@pytest.mark.parametrize("at_once", [1, 2, 3, 1_000])
def test_rows_come_in_their_order_however_many_are_unpacked_at_once(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("streaming.job.batch._UNPACKED", at_once)
    parts = [[gap(1), gap(2)], [gap(3)], [], [gap(4), gap(5), gap(6)]]
    packed = [encode_rows(Rows(gaps=part)) for part in parts] + [encode_rows(Rows(rounds=[ROUND]))]

    tables = rows_by_table(packed)

    assert set(tables) == {"gaps", "rounds"}
    assert tables["gaps"]["partition"].to_pylist() == [1, 2, 3, 4, 5, 6]
    plain = [[getattr(gap(n), name) for name in GapRow.__struct_fields__] for n in range(1, 7)]
    assert tables["gaps"].equals(to_arrow(table_named("gaps"), plain))


def test_no_rows_are_no_tables() -> None:
    assert rows_by_table([encode_rows(Rows())]) == rows_by_table([]) == {}
