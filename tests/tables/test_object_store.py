"""A lake on a real S3 server, through everything that reads or writes one; and Delta's own reader in Spark.

`tests/dashboards/test_queries.py` compares what delta-rs has written, table by table and query by query.
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from streaming.alerts.decisions import Deliveries
from streaming.catalog import contents
from streaming.maintain import Maintainer
from streaming.tables import (
    ALL_TABLES,
    DeltaLake,
    DeltaLogTail,
    LakeReader,
    LakeUnwritableError,
    TableCache,
    Wanted,
    new_files,
    table_named,
    to_arrow,
)
from streaming.times import DAY_MS
from tests.faulty_store import BUSY, LOSE_COMMITS, NOTHING, RESET, RESET_COMMITS, FaultyStore
from tests.maintain.build import KEEP, NOW, TODAY, Writer, maintain, new_lake, row, rows_of
from tests.object_store import ACCESS_KEY, SECRET_KEY, ObjectStore


@pytest.fixture
def lake(s3: str) -> DeltaLake:
    lake = DeltaLake(f"{s3}/a team/lake")
    lake.create(ALL_TABLES)
    return lake


@pytest.mark.xdist_group("object_store")
@pytest.mark.turn(3)
def test_rows_are_read_back_by_every_reader_and_once_although_a_batch_is_repeated(lake: DeltaLake) -> None:
    tail = DeltaLogTail(lake.root, table_named("lag"), "round_time")
    cache = TableCache(lake.root, {"lag": Wanted(frozenset({"lag"}), frozenset({"lag"}))}, timedelta(days=1))
    assert tail.read_new_files().is_snapshot
    cache.update()
    rows = [row("lag", 0, number, topic="t", partition=0) for number in range(3)]
    assert lake.append("lag", rows, "query", 1) == 3
    assert DeltaLake(lake.root).append("lag", rows, "query", 1) == 0
    found = tail.read_new_files()
    assert not found.is_snapshot
    assert tail.read(found.files, ["round"])["round"].to_pylist() == [0, 1, 2]
    cache.update()
    assert cache.rows("SELECT count(*) AS n FROM lag") == [{"n": 3}]
    reader = LakeReader(lake.root)
    assert (reader.count("lag"), reader.count("lag_current")) == (3, 1)
    told = {one.table: (one.state, one.rows) for one in contents(lake.root)}
    assert told["lag"] == ("ok", 3)
    assert {state for state, _ in told.values()} == {"ok"}


@pytest.mark.xdist_group("object_store")
@pytest.mark.turn(3)
@pytest.mark.nightly
def test_maintenance_keeps_every_row_and_followers_see_no_new_ones(lake: DeltaLake) -> None:
    writer = Writer(lake)
    for number in range(5):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
    writer.round(0, 5)
    tail = DeltaLogTail(lake.root, table_named("lag"), "round_time")
    tail.read_new_files()
    before = rows_of(lake, "lag")
    keep_days = {table.name: KEEP for table in ALL_TABLES}
    done = list(Maintainer(lake.root, keep_days, now=lambda: NOW).work())
    assert [(d.table, d.what, d.files) for d in done if d.what == "compaction"] == [("lag", "compaction", 5)]
    assert rows_of(lake, "lag") == before
    assert tail.read_new_files().files == ()


_APPENDS = """
import sys
from streaming.tables import DeltaLake
from tests.maintain.build import row
root, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
lake = DeltaLake(root)
sys.stdin.readline()
for number in range(count):
    lake.append("lag", [row("lag", 0, number, topic=name, partition=0)], name, number)
"""


@pytest.mark.xdist_group("object_store")
@pytest.mark.turn(3)
@pytest.mark.nightly
def test_three_processes_that_race_for_each_version_lose_no_commit(lake: DeltaLake) -> None:
    names, count = ("a", "b", "c"), 10
    command = [sys.executable, "-c", _APPENDS, lake.root]
    # Where a Spark session ran in this process, its children do not search the working folder.
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    writers = [subprocess.Popen([*command, name, str(count)], env=environment, stdin=subprocess.PIPE) for name in names]
    for writer in writers:
        writer.stdin.close()
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    found = LakeReader(lake.root).rows("SELECT topic, round FROM lag")
    assert Counter((r["topic"], r["round"]) for r in found) == {(n, i): 1 for n in names for i in range(count)}


@pytest.fixture
def faulty(object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch, s3: str) -> Iterator[FaultyStore]:
    """A proxy before the store, by which this process reaches it."""
    with FaultyStore(object_store.port) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy


@pytest.fixture
def distant(faulty: FaultyStore, s3: str) -> DeltaLake:
    lake = DeltaLake(f"{s3}/lake")
    lake.create(table_named(name) for name in ("lag", "group_health", "rounds", "alert_deliveries"))
    return lake


@pytest.mark.xdist_group("object_store")
@pytest.mark.turn(3)
@pytest.mark.nightly
def test_a_commit_whose_answer_is_lost_is_made_once(distant: DeltaLake, faulty: FaultyStore) -> None:
    faulty.fail(LOSE_COMMITS)
    for number in range(5):
        distant.append("lag", [row("lag", 0, number, topic="t", partition=0)], "query", number)
    assert faulty.fail(NOTHING) == 5
    found = LakeReader(distant.root).rows("SELECT round FROM lag ORDER BY round")
    assert [r["round"] for r in found] == [0, 1, 2, 3, 4]


@pytest.mark.xdist_group("object_store")
@pytest.mark.turn(3)
@pytest.mark.nightly
def test_maintenance_whose_commits_lose_their_answers_loses_and_doubles_no_row(
    distant: DeltaLake, faulty: FaultyStore
) -> None:
    writer = Writer(distant)
    for number in range(5):
        writer.append("lag", row("lag", -KEEP - 2, number, group_id=f"g{number % 2}", topic="t", partition=0))
        writer.append("group_health", row("group_health", 0, number))
    writer.round(0, 5)
    before = rows_of(distant, "group_health")
    faulty.fail(LOSE_COMMITS)
    keep_days = {table.name: KEEP for table in ALL_TABLES}
    list(Maintainer(distant.root, keep_days, now=lambda: NOW).work())
    assert faulty.fail(NOTHING) > 1
    assert rows_of(distant, "group_health") == before
    assert len(DeltaTable(distant.path("group_health")).file_uris()) == 1
    assert LakeReader(distant.root).count("lag") == 0


@pytest.mark.xdist_group("object_store")
@pytest.mark.turn(3)
@pytest.mark.nightly
def test_outcomes_of_deliveries_are_written_once_although_an_answer_is_lost(
    distant: DeltaLake, faulty: FaultyStore
) -> None:
    deliveries = Deliveries(distant.root, "c")
    faulty.fail(LOSE_COMMITS)
    with pytest.raises(OSError, match="Connection reset"):
        deliveries.know(["a"], [], 1)
    faulty.fail(NOTHING)
    deliveries.know(["a", "b"], [], 1)
    found = LakeReader(distant.root).rows("SELECT target FROM alert_deliveries ORDER BY target")
    assert [r["target"] for r in found] == ["a", "b"]


@pytest.mark.xdist_group("object_store")
@pytest.mark.turn(3)
@pytest.mark.parametrize(
    ("how", "told"),
    [
        (BUSY, r"the store is down or overloaded \(503\)"),
        pytest.param(RESET, "the store does not answer", marks=pytest.mark.nightly),
        (RESET_COMMITS, "the store does not answer"),
    ],
)
def test_an_outage_is_one_sentence_and_afterwards_the_batch_is_written_once(
    how: str, told: str, distant: DeltaLake, faulty: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streaming.tables.lake._PATIENCE_S", 0.0)
    rows = [row("lag", 0, 1, topic="t", partition=0)]
    faulty.fail(how)
    with pytest.raises(LakeUnwritableError, match=rf"^The table {distant.root}/lag cannot be written: {told}\.$"):
        distant.append("lag", rows, "query", 1)
    assert faulty.fail(NOTHING) > 0
    assert distant.append("lag", rows, "query", 1) == 1
    assert LakeReader(distant.root).count("lag") == 1


@pytest.mark.xdist_group("object_store")
@pytest.mark.turn(3)
def test_a_short_outage_is_waited_for(distant: DeltaLake, faulty: FaultyStore) -> None:
    faulty.fail(RESET_COMMITS)
    with ThreadPoolExecutor(1) as pool:
        appended = pool.submit(distant.append, "lag", [row("lag", 0, 1, topic="t", partition=0)], "query", 1)
        while not faulty.fail(RESET_COMMITS):
            assert not appended.done()
        faulty.fail(NOTHING)
        assert appended.result() == 1


@pytest.mark.xdist_group("object_store")
@pytest.mark.turn(3)
@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("AWS_SECRET_ACCESS_KEY", "another-secret", r"the store refuses the credentials \(SignatureDoesNotMatch\)"),
        ("AWS_ACCESS_KEY_ID", "nobody", r"the store refuses the credentials \(XAdminUserNotFound\)"),
        ("AWS_ALLOW_HTTP", "false", "the endpoint is http://, which needs AWS_ALLOW_HTTP=true"),
        ("AWS_CONDITIONAL_PUT", "disabled", "AWS_CONDITIONAL_PUT is set to disabled: .*"),
    ],
)
def test_a_store_that_cannot_be_used_is_told_in_one_sentence_without_its_answer(
    variable: str, value: str, told: str, s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(
        LakeUnwritableError, match=rf"^The table {s3}/lake/rebalance_churn cannot be written: {told}"
    ) as e:
        DeltaLake(f"{s3}/lake").create()
    assert "\n" not in str(e.value)
    assert not {SECRET_KEY, ACCESS_KEY, "another-secret", "Signature="} & {str(e.value)}
    # Nor does a traceback, which Spark logs, have the store's answer.
    shown = "".join(traceback.format_exception(e.value))
    assert "StringToSign" not in shown
    assert ACCESS_KEY not in shown


@pytest.mark.xdist_group("object_store")
@pytest.mark.turn(3)
def test_a_bucket_that_is_not_there_is_told(s3: str) -> None:
    with pytest.raises(LakeUnwritableError, match=r"there is no such bucket \(NoSuchBucket\)"):
        DeltaLake(f"{s3}-not-there/lake").create([table_named("lag")])


@pytest.mark.xdist_group("object_store")
@pytest.mark.turn(3)
@pytest.mark.nightly
def test_files_that_tasks_have_written_are_committed_once_although_answers_are_lost(
    distant: DeltaLake, faulty: FaultyStore
) -> None:
    table = table_named("lag")
    faulty.fail(LOSE_COMMITS)
    for number in range(3):
        rows = to_arrow(table, [row("lag", 0, number, topic="t", partition=0)])
        files = new_files(table, rows, distant.path("lag"))
        distant.add_files("lag", files, "query", number)
    assert faulty.fail(NOTHING) == 3
    found = LakeReader(distant.root).rows("SELECT round FROM lag ORDER BY round")
    assert [r["round"] for r in found] == [0, 1, 2]


@pytest.mark.spark
@pytest.mark.xdist_group("recorded")
@pytest.mark.turn(6)
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
