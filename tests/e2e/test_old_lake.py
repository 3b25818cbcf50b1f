"""A lake and a checkpoint of this release, continued: later versions must continue them as if they were their own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.tables import DeltaLake
from tests.e2e.conftest import run_to_the_end
from tests.e2e.lakes import Lake, contents, differences
from tests.e2e.old_lake import unpack_lake
from tests.e2e.packed import read_packed
from tests.e2e.topics import TOPICS, Record, create_topics, half_of, put_back, settings_of_copy

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("recorded"),
    pytest.mark.turn(3),
]


def _added(before: Lake, after: Lake) -> Lake:
    lost = {table: before[table] - after[table] for table in before}
    assert not any(lost.values()), f"rows are gone or changed: {lost}"
    return {table: after[table] - before[table] for table in after}


def test_a_query_goes_on_from_a_recorded_checkpoint_as_one_that_read_all_itself(
    bootstrap: str, spark: SparkSession, tmp_path: Path
) -> None:
    first, rest = half_of([Record.of(line) for line in read_packed(TOPICS)])
    new, old = tmp_path / "new", tmp_path / "old"
    unpack_lake(old)
    DeltaLake(str(old)).create()  # adds columns that are newer than the recording
    old_before = contents(old)

    # Other read limits than the recorded query's: the result does not depend on them.
    settings = {
        new: settings_of_copy(bootstrap, new, max_rounds=60),
        old: settings_of_copy(bootstrap, old, max_rounds=9),
    }
    create_topics(settings[new])
    put_back(settings[new], first)
    run_to_the_end(spark, settings[new])
    new_before = contents(new)

    put_back(settings[new], rest)
    for lake in (new, old):
        run_to_the_end(spark, settings[lake])

    added = _added(new_before, contents(new))
    assert sum(added["lag"].values()) > 100
    assert sum(added["rebalance_churn"].values()) > 5
    old_added = _added(old_before, contents(old))
    assert differences(old_added, added) == {}


def test_a_recorded_lake_keeps_its_rows_when_its_tables_are_created_again(tmp_path: Path) -> None:
    unpack_lake(tmp_path / "old")
    shutil.copytree(tmp_path / "old", tmp_path / "created")
    DeltaLake(str(tmp_path / "created")).create()
    before, after = contents(tmp_path / "old"), contents(tmp_path / "created")
    assert {table: sum(rows.values()) for table, rows in after.items()} == {
        table: sum(rows.values()) for table, rows in before.items()
    }
    assert sum(before["lag"].values()) > 100
