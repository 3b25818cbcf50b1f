"""Both writers in a real Spark: equal rows, and each batch once. (Killed, and with a lake on S3: `tests/e2e`.)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from streaming.config import Writer
from streaming.groups import Rows
from streaming.job.batch import batch_writer
from streaming.tables import LakeReader, table_named
from tests.empty_lake import empty_lake
from tests.job.hostile_rows import hostile_rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("recorded"), pytest.mark.turn(6)]

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


def test_executors_write_the_rows_that_the_driver_writes_whatever_is_in_them_and_once(
    write: Write, tmp_path: Path
) -> None:
    by_driver, by_executors = write("driver", "delta-rs", 1), write("executors", "spark", 1)
    assert by_driver == by_executors == dict.fromkeys(NAMES, ROWS)
    for name in NAMES:
        assert _rows(tmp_path / "executors", name) == _rows(tmp_path / "driver", name)
    assert write("executors", "spark", 1) == dict.fromkeys(NAMES, 0)


@pytest.mark.nightly
@pytest.mark.parametrize(("first", "second"), [("delta-rs", "spark"), ("spark", "delta-rs")])
def test_a_batch_that_one_writer_has_begun_is_completed_by_the_other(
    write: Write, first: Writer, second: Writer
) -> None:
    write("lake", first, 0, NAMES[:1])
    assert write("lake", second, 0) == {"lag": 0, "gaps": ROWS, "rounds": ROWS}
