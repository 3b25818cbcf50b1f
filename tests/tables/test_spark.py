"""Delta's own reader in Spark, as a second opinion on the files of our maintenance.

`tests/dashboards/test_queries.py` compares what delta-rs has written, table by table and query by query.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.times import DAY_MS
from tests.maintain.build import TODAY, Writer, maintain, new_lake, row

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("recorded"), pytest.mark.turn(6)]


@pytest.mark.nightly
def test_spark_reads_a_maintained_table(tmp_path: Path, spark: SparkSession) -> None:
    lake = new_lake(tmp_path)
    writer = Writer(lake)
    for number in range(30):
        keys = [(group, partition) for group in "ab" for partition in (0, 1)]
        day = -50 if number < 10 else 0
        rows = [row("lag", day, number, group_id=g, topic="t", partition=p, lag=number) for g, p in keys]
        writer.append("lag", *rows)
    writer.append("lag", row("lag", -50, 5, group_id="old", topic="t", partition=0, lag=5))
    writer.round(0, 99)
    maintain(lake)

    lag = spark.newSession().read.format("delta").load(lake.path("lag"))
    expected = [(g, p, n, n) for g in "ab" for p in (0, 1) for n in range(10, 30)]
    assert sorted(map(tuple, lag.select("group_id", "partition", "round", "lag").collect())) == sorted(expected)
    # Retention and compaction have left the statistics that Delta skips files by.
    assert lag.where(f"round_time >= timestamp_millis({TODAY * DAY_MS + 25})").count() == 5 * 4
    assert lag.where("group_id = 'b' AND partition = 1").count() == 20
