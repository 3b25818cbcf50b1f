from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator
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
