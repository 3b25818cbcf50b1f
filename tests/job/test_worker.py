from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]

_OBJECTS_OF_THE_OPERATOR = 10_000


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


def test_a_worker_shares_what_its_tasks_use_with_the_daemon_that_forked_it(spark: SparkSession) -> None:
    def known(batches: Iterator[Any]) -> Iterator[Any]:
        modules = [*sys.modules]
        [memory] = [line for line in Path("/proc/self/smaps_rollup").read_text().splitlines() if "Private_D" in line]
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"modules": [modules], "private_kb": [int(memory.split()[1])]})

    [(modules, private_kb)] = (
        spark.range(1).coalesce(1).mapInArrow(known, "modules array<string>, private_kb long").collect()
    )
    assert {"streaming.job.operator", "streaming.job.source.read", "kafka", "pandas"} <= {*modules}
    # They are 90 MB.
    assert private_kb < 45_000
