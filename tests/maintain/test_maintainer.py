"""Whole runs of maintenance: random lakes, kills, races, and what is done when."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from streaming.history import DEFINITION
from streaming.maintain import Done, Maintainer, MaintenanceError
from streaming.maintain import maintainer as module
from streaming.maintain.engines import DeltaRs, DeltaSpark, Engine, delta_spark
from streaming.tables import (
    ALL_TABLES,
    RETENTION_COMMIT,
    DeltaLake,
    DeltaLogTail,
    LakeReader,
    OpenedTable,
    table_named,
)
from streaming.times import DAY_MS
from tests.examples import examples
from tests.maintain.build import (
    KEEP,
    NOW,
    TODAY,
    Writer,
    files_of,
    kept,
    kept_sql,
    maintain,
    new_lake,
    row,
    rows_by_sql,
    rows_of,
)

pytestmark = pytest.mark.turn(6)

NAMES = ("lag", "group_health", "members", "drift", "what_if", "rebalance_churn")

_WRITES = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.integers(-9, 0),
        st.lists(st.sampled_from("ab"), min_size=1, max_size=2, unique=True),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=examples(3), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_WRITES)
def test_whatever_is_written_when_kept_days_stay_others_go_and_followers_see_each_row_once(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[str, int, list[str], bool]]
) -> None:
    lake = new_lake(tmp_path_factory.mktemp("random"))
    writer = Writer(lake)
    writer.round(0, 1_000)
    tails = {name: DeltaLogTail(lake.root, table_named(name), table_named(name).time) for name in NAMES}
    followed: dict[str, Counter[str]] = {name: Counter() for name in NAMES}
    written: Counter[str] = Counter()
    for tail in tails.values():
        tail.read_new_files()
    for number, (name, day, groups, is_maintained) in enumerate(writes):
        rows = [
            row(name, day, number, topic="t", partition=at, member_id="m", strategy="range", group_id=group)
            for at, group in enumerate(groups)
        ]
        writer.append(name, *rows)
        written[name] += len(rows)
        if is_maintained:
            before = {one: kept(lake, one) for one in NAMES}
            maintain(lake)
            assert {one: kept(lake, one) for one in NAMES} == before
        for one, tail in tails.items():
            _follow(tail, followed[one])
    assert {name: sum(found.values()) for name, found in followed.items() if found} == dict(written)
    assert all(times == 1 for found in followed.values() for times in found.values())
    maintain(lake)
    assert {name: rows_of(lake, name) for name in NAMES} == {name: kept(lake, name) for name in NAMES}


def _follow(tail: DeltaLogTail, into: Counter[str]) -> None:
    found = tail.read_new_files()
    assert not found.is_snapshot
    for file in found.files:
        read = tail.read([file], [column.name for column in tail.table.columns]).to_pylist()
        into.update(f"{file.path} {number} {one}" for number, one in enumerate(read))


# Together with rounds, rows of history are compared with those of which they are made.
@pytest.mark.parametrize(
    "names",
    [
        pytest.param({"rounds"}, id="rounds"),
        pytest.param({table.name for table in ALL_TABLES} - {"rounds"}, id="all others", marks=pytest.mark.nightly),
    ],
)
def test_small_files_of_any_table_become_one_with_the_same_rows(
    lake: DeltaLake, writer: Writer, names: set[str]
) -> None:
    written = {"source_rows": 1, "definition": DEFINITION, "hour": TODAY * DAY_MS}
    for number in range(2):
        for name in names:
            writer.append(name, row(name, 0, number, **written))
    before = {name: rows_of(lake, name) for name in names}
    maintain(lake)
    assert {name: number for name, number in files_of(lake).items() if number} == dict.fromkeys(names, 1)
    assert {name: rows_of(lake, name) for name in names} == before


@pytest.mark.nightly
def test_rows_without_a_day_are_joined_and_stay(lake: DeltaLake, writer: Writer) -> None:
    for number in range(3):
        writer.append("members", row("members", 0, number, event_date=None, record_time=None))
    writer.round(0, 9)
    before = rows_of(lake, "members")
    maintain(lake)
    assert files_of(lake)["members"] == 1
    assert rows_of(lake, "members") == before


def test_a_deletion_of_somebody_else_lets_followers_begin_again(lake: DeltaLake, writer: Writer) -> None:
    tail = DeltaLogTail(lake.root, table_named("lag"), "round_time")
    writer.append("lag", row("lag", 0, 1, topic="t", partition=0), row("lag", 0, 2, topic="t", partition=0))
    tail.read_new_files()
    DeltaTable(lake.path("lag")).delete("round = 1")
    assert tail.read_new_files().is_snapshot


def test_a_marked_deletion_that_copies_the_rows_that_stay_is_no_news_to_followers(
    lake: DeltaLake, writer: Writer
) -> None:
    tail = DeltaLogTail(lake.root, table_named("lag"), "round_time")
    writer.append("lag", row("lag", 0, 1, topic="t", partition=0), row("lag", 0, 2, topic="t", partition=0))
    tail.read_new_files()
    mark = CommitProperties(custom_metadata=dict(RETENTION_COMMIT))
    DeltaTable(lake.path("lag")).delete("round = 1", commit_properties=mark)
    found = tail.read_new_files()
    assert (found.files, found.is_snapshot) == ((), False)
    assert LakeReader(lake.root).count("lag") == 1


@pytest.mark.nightly
def test_the_last_day_that_is_kept_stays_and_a_lake_without_writers_stays_as_it_is(
    lake: DeltaLake, writer: Writer
) -> None:
    for day in (-KEEP - 1, -KEEP, 0):
        writer.append("lag", row("lag", day, -day, topic="t", partition=0))
    writer.round(-300, 1)
    assert maintain(lake)
    assert LakeReader(lake.root).count("lag") == 3
    writer.round(0, 2)
    maintain(lake)
    assert rows_of(lake, "lag") == kept(lake, "lag")
    assert LakeReader(lake.root).count("lag") == 2


@pytest.mark.nightly
def test_neither_a_clock_nor_a_broker_from_the_future_ages_the_lake(lake: DeltaLake, writer: Writer) -> None:
    writer.append("lag", row("lag", 0, 1, topic="t", partition=0))
    writer.round(0, 1)
    maintain(lake, now=NOW + 400 * DAY_MS)
    assert LakeReader(lake.root).count("lag") == 1
    writer.round(400, 2)
    maintain(lake)
    assert LakeReader(lake.root).count("lag") == 1


def test_an_open_day_is_joined_once_an_hour_and_a_closed_one_once_a_day(
    lake: DeltaLake, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    maintainer = Maintainer(lake.root, now=lambda: NOW)
    writer.round(0, 99)

    def joined(day: int) -> bool:
        for number in range(2):
            writer.append("lag", row("lag", day, number, topic="t", partition=0))
        return any(done.table == "lag" and done.what == "compaction" for done in maintainer.work())

    assert joined(0)
    now = 3_000.0
    assert not joined(0)
    now = 3_700.0
    assert joined(0)
    assert joined(-1)
    now = 3_700.0 + 7_200.0
    assert not any(done.day == maintainer._today() - timedelta(days=1) for done in maintainer.work())
    assert not joined(-1)
    now = 3_700.0 + 90_000.0
    assert joined(-1)


def test_work_stops_when_it_may_not_go_on_and_the_next_call_continues(lake: DeltaLake, writer: Writer) -> None:
    for number in range(3):
        for name in ("lag", "members"):
            writer.append(name, row(name, 0, number, topic="t", partition=0))
    maintainer = Maintainer(lake.root, now=lambda: NOW)
    answers = iter([True] * 4 + [False])
    found = [(done.table, done.what) for done in maintainer.work(lambda: next(answers))]
    assert found == [("lag", "compaction")]
    assert ("members", "compaction") in [(done.table, done.what) for done in maintainer.work()]
    assert list(maintainer.work()) == []


def test_upkeep_leaves_a_checkpoint_and_deletes_what_no_reader_needs_once_a_day(
    lake: DeltaLake, writer: Writer
) -> None:
    for number in range(4):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
    old = DeltaTable(lake.path("lag"))
    maintain(lake)
    assert list(Path(lake.path("lag"), "_delta_log").glob("*.checkpoint.parquet"))
    # A reader of an old version reads on for the stated time; when it is over, here at once, the files go.
    assert old.to_pyarrow_table().num_rows == 4
    DeltaTable(lake.path("lag")).alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 0 hours"})
    [done] = [done for done in maintain(lake) if done.table == "lag" and done.what == "upkeep"]
    assert done.files == 4
    assert LakeReader(lake.root).count("lag") == 4


def test_a_broken_table_does_not_keep_the_others_from_being_maintained_and_is_told(
    lake: DeltaLake, writer: Writer
) -> None:
    for number in range(3):
        for name in ("lag", "what_if", "members"):
            writer.append(name, row(name, 0, number, topic="t", partition=0))
    for name in ("lag", "what_if"):
        for file in Path(lake.path(name)).rglob("*.parquet"):
            file.unlink()
    told: list[Done] = []
    with pytest.raises(MaintenanceError, match=r"^Not maintained: what_if, lag"):
        told.extend(Maintainer(lake.root, now=lambda: NOW).work())
    failed = [done for done in told if done.failure]
    assert [done.table for done in failed][:2] == ["what_if", "lag"]
    assert "could not be maintained" in failed[0].failure
    assert files_of(lake)["members"] == 1


def test_a_batch_that_runs_again_after_a_compaction_is_still_written_once(lake: DeltaLake) -> None:
    for batch in range(5):
        lake.append("lag", [row("lag", 0, batch, topic="t", partition=0)], "query", batch)
    maintain(lake)
    assert DeltaLake(lake.root).append("lag", [row("lag", 0, 4, topic="t", partition=0)], "query", 4) == 0
    # The job holds its table open meanwhile.
    assert lake.append("lag", [row("lag", 0, 5, topic="t", partition=0)], "query", 5) == 1
    assert LakeReader(lake.root).count("lag") == 6


def _race(lake: DeltaLake, engine: Engine, runs: int) -> None:
    """Append beside compactions, retention and vacuum of the same days, and lose or double no row."""
    writer = Writer(lake)
    for number in range(12):
        writer.append("lag", row("lag", -(number % 3), number, topic="t", partition=0))
        writer.append("lag", row("lag", -50, number, topic="t", partition=0))
    writer.round(0, 1)
    end, appended = threading.Event(), 12

    def append() -> None:
        nonlocal appended
        while not end.wait(0.02):
            writer.append("lag", row("lag", -(appended % 3), appended, topic="t", partition=0))
            appended += 1

    thread = threading.Thread(target=append)
    thread.start()
    keep: dict[str, Any] = {table.name: KEEP for table in ALL_TABLES}
    try:
        for _ in range(runs):
            list(Maintainer(lake.root, keep, now=lambda: NOW, engine=engine).work())
    finally:
        end.set()
        thread.join()
    assert appended > 20
    found = rows_by_sql(LakeReader(lake.root), f"SELECT round FROM ({kept_sql('lag')})")
    assert found == {repr({"round": number}): 1 for number in range(appended)}
    assert LakeReader(lake.root).count("lag") == appended


@pytest.mark.nightly
def test_appends_beside_delta_rs_fail_never_and_no_row_is_lost_or_doubled(lake: DeltaLake) -> None:
    _race(lake, DeltaRs(), runs=1)


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.xdist_group("recorded")
def test_delta_spark_joins_the_files_of_a_day_and_vacuums(lake: DeltaLake, writer: Writer, spark: SparkSession) -> None:
    for number in range(3):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
    opened = OpenedTable(lake.root, table_named("lag"))
    assert opened.refresh()
    engine = DeltaSpark(spark.newSession())
    engine.compact(opened, opened.files()[0].day)
    engine.vacuum(opened)
    assert LakeReader(lake.root).count("lag") == 3
    assert files_of(lake)["lag"] == 1


@pytest.mark.spark
@pytest.mark.java
@pytest.mark.nightly
@pytest.mark.timeout(800)
def test_appends_beside_delta_spark_fail_never_and_no_row_is_lost_or_doubled(lake: DeltaLake) -> None:
    with delta_spark(None, lake.root) as engine:
        _race(lake, engine, runs=1)


def test_a_lake_on_an_object_store_is_refused_to_spark_with_the_reason() -> None:
    with (
        pytest.raises(module.SetupError, match="would overwrite those of a running job"),
        delta_spark(None, "s3://b/l"),
    ):
        pass
