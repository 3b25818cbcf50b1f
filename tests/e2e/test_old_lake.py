"""Lakes and checkpoints of releases, continued: later versions must continue them as if they were their own."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from streaming.tables import TABLES, DeltaLake, LakeReader
from tests.e2e.conftest import run_to_the_end
from tests.e2e.lakes import Lake, contents, differences
from tests.e2e.old_lake import unpack_lake
from tests.e2e.packed import RELEASES, read_packed
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


# The oldest goes through every change since. The others go on at night here, and with every change in the tests of the
# core's states (`tests/groups/test_state.py`): the newest because most lakes have it, those between in the long tests.
_MARKS = dict.fromkeys(RELEASES[1:-1], pytest.mark.soak) | {RELEASES[-1]: pytest.mark.nightly}
_RELEASES = [RELEASES[0], *(pytest.param(release, marks=_MARKS[release]) for release in RELEASES[1:])]


@pytest.mark.parametrize("release", _RELEASES)
def test_a_query_goes_on_from_a_recorded_checkpoint_as_one_that_read_all_itself(
    bootstrap: str, spark: SparkSession, tmp_path: Path, unique: str, release: str
) -> None:
    first, rest = half_of([Record.of(line) for line in read_packed(TOPICS, release)])
    new, old = tmp_path / "new", tmp_path / "old"
    unpack_lake(old, release)
    # Where a window of the rates begins depends on the first round that a state has seen. What rows say of windows is
    # newer than the recording, columns as well as tables.
    there = [table for table in TABLES if (old / table.name).exists()]
    recorded = {table.name: {f.name for f in DeltaTable(old / table.name).schema().fields} for table in there}
    DeltaLake(str(old)).create()  # adds columns that are newer than the recording
    # What the recorded state could not know is unknown at the first round and known at the second. So a group may have
    # a row of health more at each of the two, and count its commits from there. The words of its last verdict are those
    # of the release that gave it.
    newer = {t.name: {c.name for c in t.columns} - recorded.get(t.name, set()) for t in TABLES}
    if newer["group_health"]:
        newer["group_health"] |= {"commits", "verdict_reason"}
    last_before = _rounds(old)[-1]
    old_before = contents(old, without=newer)

    # Other read limits than the recorded query's: the result does not depend on them.
    settings = {
        new: settings_of_copy(bootstrap, new, max_rounds=60, prefix=unique),
        old: settings_of_copy(bootstrap, old, max_rounds=9, prefix=unique),
    }
    create_topics(settings[new])
    put_back(settings[new], first)
    run_to_the_end(spark, settings[new])
    new_before = contents(new, without=newer)

    put_back(settings[new], rest)
    for lake in (new, old):
        run_to_the_end(spark, settings[lake])

    added = _added(new_before, contents(new, without=newer))
    assert sum(added["lag"].values()) > 100
    assert sum(added["rebalance_churn"].values()) > 5
    old_added = _added(old_before, contents(old, without=newer))
    if newer["group_health"]:
        early = [f"('round', {number})," for number in _rounds(old) if number > last_before][:2]
        for lake in (added, old_added):
            health = lake["group_health"]
            lake["group_health"] = Counter({row: n for row, n in health.items() if not any(e in row for e in early)})
    assert differences({name: old_added[name] for name in recorded}, added) == {}


def _rounds(lake: Path) -> list[int]:
    return [row["round"] for row in LakeReader(lake).rows("SELECT round FROM rounds ORDER BY round")]


@pytest.mark.parametrize("release", RELEASES)
def test_a_recorded_lake_keeps_its_rows_when_its_tables_are_created_again(tmp_path: Path, release: str) -> None:
    unpack_lake(tmp_path / "old", release)
    shutil.copytree(tmp_path / "old", tmp_path / "created")
    DeltaLake(str(tmp_path / "created")).create()
    before, after = contents(tmp_path / "old"), contents(tmp_path / "created")
    assert {table: sum(rows.values()) for table, rows in after.items()} == {
        table: sum(rows.values()) for table, rows in before.items()
    }
    assert sum(before["lag"].values()) > 100
