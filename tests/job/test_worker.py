from __future__ import annotations

import gc
import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from tests.job import telling_source
from tests.job.telling_source import TellingSource, private_kb_of_this

pytestmark = [pytest.mark.spark]

_OBJECTS_OF_THE_OPERATOR = 10_000


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


def test_what_plans_a_query_and_its_workers_share_what_they_use_with_the_process_that_forked_them(
    spark: SparkSession,
) -> None:
    # Spark's processes cannot import the tests.
    cloudpickle.register_pickle_by_value(telling_source)

    def known(batches: Iterator[Any]) -> Iterator[Any]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"modules": [[*sys.modules]], "private_kb": [private_kb_of_this()]})

    rows = spark.range(1).coalesce(1).mapInArrow(known, "modules array<string>, private_kb long").collect()
    spark.dataSource.register(TellingSource)
    query = spark.readStream.format("telling").load().writeStream.format("noop").trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    told = json.loads(query.lastProgress["sources"][0]["endOffset"])
    # They are 90 MB.
    for modules, private_kb in [*rows, (told["modules"], told["private_kb"])]:
        assert {"streaming.job.operator", "streaming.job.source.planner", "kafka", "pandas"} <= {*modules}
        assert private_kb < 45_000
