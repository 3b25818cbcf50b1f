"""Maintenance of real Delta tables: what it must never change, and what it must."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from streaming.config import load_settings
from streaming.exceptions import SetupError
from streaming.maintain import Maintainer, MaintenanceError
from streaming.maintain import maintain as maintain_command
from streaming.maintain.delta_table import open_table
from streaming.maintain.plan import Compaction
from streaming.maintain.rewrite import read
from streaming.process import MAINTAINER, only_one
from streaming.tables import (
    ALL_TABLES,
    VIEWS,
    DeltaLake,
    DeltaLogTail,
    LakeReader,
    TableCache,
    Wanted,
    table_named,
    to_arrow,
)
from tests.maintain.build import (
    SMALL,
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

TIMES = {"members": "record_time", "rebalance_churn": "record_time"}


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return new_lake(tmp_path)


@pytest.fixture
def writer(lake: DeltaLake) -> Writer:
    return Writer(lake)


def test_many_small_files_become_one_with_the_same_rows(lake: DeltaLake, writer: Writer) -> None:
    for number in range(12):
        writer.append("lag", *(row("lag", 0, number, topic="t", partition=p, lag=number) for p in range(3)))
    before = rows_of(lake, "lag")
    maintain(lake)
    assert files_of(lake)["lag"] == 1
    assert rows_of(lake, "lag") == before


def test_a_groups_history_lies_together(lake: DeltaLake, writer: Writer) -> None:
    for number in range(4):
        writer.append(
            "lag",
            *(row("lag", 0, number, group_id=g, topic="t", partition=p) for g in ("b", "a") for p in (1, 0)),
        )
    maintain(lake)
    (path,) = DeltaTable(lake.path("lag")).file_uris()
    found = pq.read_table(path, columns=["group_id", "partition", "round"]).to_pylist()
    assert [(f["group_id"], f["partition"], f["round"]) for f in found] == [
        (group, partition, number) for group in ("a", "b") for partition in (0, 1) for number in range(4)
    ]


def test_every_column_comes_through_as_it_was(lake: DeltaLake, writer: Writer) -> None:
    finding = [["unassigned", 5_000, "x"], ["rewound", 6_000, None]]
    for number in range(3):
        writer.append(
            "group_health",
            row("group_health", 0, number, group_id="a'\"\n", findings=finding, imbalance=0.5, members=None),
            row("group_health", 0, number, group_id="", findings=[], lag_total=2**63 - 1),
        )
        writer.append(
            "drift",
            row(
                "drift",
                0,
                number,
                drifted_partitions=[["t", 0, "misplaced", "m", ["n"], None]],
                inputs=b"\x00\xff" * 100,
            ),
        )
    before = {name: rows_of(lake, name) for name in ("group_health", "drift")}
    maintain(lake)
    assert files_of(lake)["group_health"] == files_of(lake)["drift"] == 1
    assert {name: rows_of(lake, name) for name in before} == before


def test_files_of_an_older_release_without_a_column_are_joined_with_newer_ones(tmp_path: Path) -> None:
    table = table_named("lag")
    lake = DeltaLake(str(tmp_path / "lake"))
    lake.create([replace(table, columns=table.columns[:-1])])
    for number in range(3):
        old = to_arrow(table, [row("lag", 0, number, topic="t", partition=0)]).drop_columns([table.columns[-1].name])
        lake.append("lag", old, "query", number)
    lake = DeltaLake(lake.root)
    lake.create(ALL_TABLES)
    lake.append("lag", [row("lag", 0, 3, topic="t", partition=0, client_host="/h")], "query", 3)
    maintain(lake)
    assert files_of(lake)["lag"] == 1
    found = LakeReader(lake.root).rows("SELECT client_host FROM lag ORDER BY round")
    assert [f["client_host"] for f in found] == [None, None, None, "/h"]


def test_rows_past_their_time_go_and_the_present_stays_whatever_its_age(lake: DeltaLake, writer: Writer) -> None:
    writer.append("group_health", row("group_health", -90, 1, group_id="stable"))
    writer.append("drift", row("drift", -90, 1, group_id="stable", verdict="drifted"))
    writer.append("drift", row("drift", -91, 0, group_id="stable", verdict="identical"))
    writer.append("members", row("members", -90, 1, group_id="stable", member_id="m"))
    writer.append("rebalance_churn", row("rebalance_churn", -91, 0, group_id="stable"))
    writer.append("rebalance_churn", row("rebalance_churn", -90, 1, group_id="stable", revision=1))
    writer.append("rebalance_churn", row("rebalance_churn", -90, 1, group_id="stable", revision=2))
    writer.append("what_if", row("what_if", -90, 1, group_id="stable", strategy="range"))
    writer.round(0, 2)
    writer.append("group_health", row("group_health", 0, 2, group_id="stable"))
    maintain(lake)
    reader = LakeReader(lake.root)
    left = {name: [r["decision"] for r in reader.rows(f"SELECT decision FROM {name}")] for name in TIMES}
    assert left == {"members": [1], "rebalance_churn": [1]}
    assert reader.rows("SELECT verdict FROM drift") == [{"verdict": "drifted"}]
    assert reader.rows("SELECT revision FROM rebalance_churn") == [{"revision": 2}]
    assert reader.count("what_if_current") == reader.count("what_if") == 1
    assert reader.rows("SELECT round FROM group_health") == [{"round": 2}]


def test_what_has_ended_goes_with_everything_of_it(lake: DeltaLake, writer: Writer) -> None:
    for number, ended in ((1, False), (2, False), (3, True)):
        writer.append("group_health", row("group_health", number - 60, number, group_id="gone", ended=ended))
        writer.append("members", row("members", number - 60, number, group_id="gone", member_id="m", ended=ended))
    writer.append("drift", row("drift", -60, 1, group_id="gone"))
    writer.append("rebalance_churn", row("rebalance_churn", -60, 1, group_id="gone"))
    writer.round(0, 9)
    maintain(lake)
    reader = LakeReader(lake.root)
    names = ("group_health", "members", "drift", "rebalance_churn")
    assert {name: reader.count(name) for name in names} == dict.fromkeys(names, 0)


def test_an_end_that_a_wrong_clock_has_put_before_other_rows_brings_nothing_back(
    lake: DeltaLake, writer: Writer
) -> None:
    writer.append("members", row("members", -40, 1, member_id="m"))
    writer.append("members", row("members", -60, 2, member_id="m", ended=True))
    writer.round(0, 9)
    for _ in range(2):
        maintain(lake)
        assert LakeReader(lake.root).count("members_current") == 0


def _alert(day: int, number: int, alert: str, state: str, rule: str = "drift") -> list[Any]:
    return row(
        "alerts",
        day,
        number,
        rule=rule,
        entity="{}",
        alert_id=alert,
        transition_id=f"{alert}-{state}",
        state=state,
        ended=state in {"resolved", "gone"},
    )


def test_what_the_alerter_remembers_and_owes_stays(lake: DeltaLake, writer: Writer) -> None:
    writer.append("alerts", _alert(-50, 1, "old", "firing"), _alert(-49, 2, "old", "resolved"))
    writer.append("alerts", _alert(-48, 3, "open", "pending"), _alert(-48, 4, "open", "firing"))
    writer.append("alerts", _alert(-47, 5, "other", "pending", rule="behind"))
    for alert in ("old", "open"):
        writer.append(
            "alert_deliveries",
            row("alert_deliveries", -48, 4, alert_id=alert, transition_id=alert, target="ops", outcome="delivered"),
        )
    writer.append("alert_deliveries", row("alert_deliveries", -80, 1, target="ops", outcome="added"))
    writer.round(0, 9)
    before = rows_of(lake, "alerts_current")
    maintain(lake)
    reader = LakeReader(lake.root)
    assert rows_of(lake, "alerts_current") == before
    assert [r["transition_id"] for r in reader.rows("SELECT transition_id FROM alerts ORDER BY decision")] == [
        "open-pending",
        "open-firing",
        "other-pending",
    ]
    left = reader.rows("SELECT transition_id, outcome FROM alert_deliveries ORDER BY outcome")
    assert [tuple(r.values()) for r in left] == [(None, "added"), ("open", "delivered")]


def test_a_lake_to_which_nobody_writes_any_more_stays_as_it_is(lake: DeltaLake, writer: Writer) -> None:
    writer.append("lag", row("lag", -100, 1, topic="t", partition=0), row("lag", -100, 2, topic="t", partition=0))
    writer.round(-99, 2)
    maintain(lake)
    assert LakeReader(lake.root).count("lag") == 2


def test_a_batch_that_runs_again_after_a_compaction_is_still_written_once(lake: DeltaLake) -> None:
    for batch in range(5):
        lake.append("lag", [row("lag", 0, batch, topic="t", partition=0)], "query", batch)
    maintain(lake)
    again = DeltaLake(lake.root)
    assert again.append("lag", [row("lag", 0, 4, topic="t", partition=0)], "query", 4) == 0
    # The job holds its table open meanwhile.
    assert lake.append("lag", [row("lag", 0, 5, topic="t", partition=0)], "query", 5) == 1
    assert LakeReader(lake.root).count("lag") == 6


@pytest.mark.parametrize("days", [0, 50])
def test_followers_do_not_take_rewritten_files_for_new_rows(lake: DeltaLake, writer: Writer, days: int) -> None:
    tail = DeltaLogTail(lake.root, table_named("lag"), "round_time")
    cache = TableCache(lake.root, {"lag": Wanted(frozenset({"lag"}), frozenset({"lag"}))}, past=timedelta(days=100))
    for number in range(6):
        writer.append("lag", row("lag", -days, number, topic="t", partition=number % 2, lag=number))
    writer.round(0, 9)
    assert tail.look().is_snapshot
    cache.update()
    questions = ("SELECT * FROM lag ORDER BY ALL", "SELECT * FROM lag_current ORDER BY ALL")
    before = list(map(cache.rows, questions))
    assert {done.table for done in maintain(lake)} >= {"lag"}
    found = tail.look()
    assert (found.files, found.is_snapshot) == ((), False)
    assert cache.update() is False
    assert list(map(cache.rows, questions)) == before
    writer.append("lag", row("lag", 0, 10, topic="t", partition=0, lag=10))
    assert [file.newest is not None for file in tail.look().files] == [True]
    assert cache.update() is True
    assert cache.rows("SELECT max(lag) AS lag FROM lag") == [{"lag": 10}]


def test_rows_that_somebody_else_deletes_let_followers_begin_again(lake: DeltaLake, writer: Writer) -> None:
    tail = DeltaLogTail(lake.root, table_named("lag"), "round_time")
    writer.append("lag", row("lag", 0, 1, topic="t", partition=0), row("lag", 0, 2, topic="t", partition=0))
    tail.look()
    DeltaTable(lake.path("lag")).delete("round = 1")
    assert tail.look().is_snapshot


_KEYS = st.fixed_dictionaries({"group_id": st.sampled_from("ab"), "ended": st.booleans()})
_WRITES = st.lists(
    st.tuples(
        st.sampled_from(("lag", "group_health", "members", "drift", "what_if", "rebalance_churn")),
        st.integers(-9, 0),
        st.lists(_KEYS, min_size=1, max_size=2, unique_by=lambda key: key["group_id"]),
        st.sampled_from(("none", "maintain")),
    ),
    min_size=1,
    max_size=10,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_WRITES)
def test_whatever_is_written_when_the_present_and_the_recent_past_stay_and_nothing_appears_twice(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[str, int, list[dict[str, Any]], str]]
) -> None:
    lake = new_lake(tmp_path_factory.mktemp("random"))
    writer = Writer(lake)
    writer.round(0, 1_000)
    names = ("lag", "group_health", "members", "drift", "what_if", "rebalance_churn")
    tails = {name: DeltaLogTail(lake.root, table_named(name), TIMES.get(name, "round_time")) for name in names}
    for tail in tails.values():
        tail.look()
    followed: dict[str, Counter[str]] = {name: Counter() for name in names}
    written: dict[str, Counter[str]] = {name: Counter() for name in names}
    for number, (name, day, keys, then) in enumerate(writes):
        rows = [
            row(name, day, number, topic="t", partition=at, member_id="m", strategy="range", generation=at, **key)
            for at, key in enumerate(keys)
        ]
        writer.append(name, *rows)
        written[name].update(str(r[0:3]) + str(number) for r in rows)
        if then == "none":
            continue
        before = _picture(lake, names)
        maintain(lake)
        after = _picture(lake, names)
        assert after.unchanging == before.unchanging
        for one in names:
            assert after.everything[one] <= before.everything[one]
        for one, tail in tails.items():
            _follow(tail, followed[one])
    for one, tail in tails.items():
        _follow(tail, followed[one])
        assert sum(followed[one].values()) == sum(written[one].values())
        assert not [key for key, times in followed[one].items() if times > 1]


@dataclass(frozen=True)
class _Picture:
    """What maintenance must not change, and all rows, by what they are."""

    unchanging: dict[str, Counter[str]]
    everything: dict[str, Counter[str]]


# (Its `_current` view has the whole history: the newest decision of each living group is its present.)
_PRESENT_DECISIONS = """
    SELECT d.* FROM rebalance_churn_current AS d JOIN group_health_current AS h USING (cluster, group_id)
    QUALIFY rank() OVER (PARTITION BY cluster, group_id ORDER BY d.decision DESC) = 1
"""


def _picture(lake: DeltaLake, names: tuple[str, ...]) -> _Picture:
    reader = LakeReader(lake.root)
    questions = {view: f"SELECT * FROM {view}" for view in VIEWS if view != "rebalance_churn_current"}
    questions |= {name: kept_sql(name) for name in names} | {"decisions": _PRESENT_DECISIONS}
    return _Picture(
        {name: rows_by_sql(reader, sql) for name, sql in questions.items()},
        {name: rows_by_sql(reader, f"SELECT * FROM {name}") for name in names},
    )


def _follow(tail: DeltaLogTail, into: Counter[str]) -> None:
    found = tail.look()
    assert not found.is_snapshot
    if found.files:
        names = [column.name for column in tail.table.columns]
        into.update(
            f"{file.path} {number} {one}"
            for file in found.files
            for number, one in enumerate(map(repr, tail.read([file], names).to_pylist()))
        )


def test_two_that_replace_the_same_files_do_not_double_their_rows(lake: DeltaLake, writer: Writer) -> None:
    for number in range(4):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
    tables = [open_table(lake.root, table_named("lag")) for _ in range(2)]
    first, second = (table for table in tables if table is not None)
    piece = Compaction(first.files()[0].day, tuple(first.files()))
    rows = read(first.table, piece.files, first.folder)
    first.replace(piece, rows, now=0)
    with pytest.raises(MaintenanceError, match="replaced by another program"):
        second.replace(piece, rows, now=0)
    assert LakeReader(lake.root).count("lag") == 4
    # What the second one has written is gone, too.
    stored = [path for path in Path(lake.path("lag")).rglob("*.parquet") if path.name.startswith("compacted-")]
    assert len(stored) == 1


def test_a_reader_of_an_old_version_reads_on_for_the_stated_time(lake: DeltaLake, writer: Writer) -> None:
    for number in range(4):
        writer.append("lag", row("lag", -50, number, topic="t", partition=0))
    writer.round(0, 9)
    old = DeltaTable(lake.path("lag"))
    maintain(lake)
    assert LakeReader(lake.root).count("lag") == 1
    assert old.to_pyarrow_table().num_rows == 4
    # When the time is over (here at once), the files go.
    DeltaTable(lake.path("lag")).alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 0 hours"})
    done = [d for d in maintain(lake) if d.table == "lag" and d.what == "vacuum"]
    assert [d.files for d in done] == [4]
    assert LakeReader(lake.root).count("lag") == 1


_KILLED = """
import os, signal, sys
from streaming.maintain.delta_table import MaintainedTable
from tests.maintain.build import maintain
from streaming.tables import DeltaLake

where, root = sys.argv[1:]
commit = MaintainedTable._commit
count = 0

def killed(self, actions, removed, mark):
    global count
    count += 1
    if count < 3:
        return commit(self, actions, removed, mark)
    if where == "after":
        commit(self, actions, removed, mark)
    os.kill(os.getpid(), signal.SIGKILL)

MaintainedTable._commit = killed
maintain(DeltaLake(root))
"""


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_kill_beside_a_commit_leaves_all_rows_and_the_next_run_finishes(
    lake: DeltaLake, writer: Writer, where: str
) -> None:
    for number in range(12):
        for name in ("lag", "members"):
            writer.append(name, row(name, -(number % 4), number, topic="t", partition=0, member_id=f"m{number}"))
            writer.append(name, row(name, -50, 100 + number, topic="t", partition=1, member_id="n"))
    writer.round(0, 200)
    recent = {name: kept(lake, name) for name in ("lag", "members")}
    views = {name: rows_of(lake, f"{name}_current") for name in recent}
    # (Where a Spark session ran in this process, its children do not search the working folder.)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    run = subprocess.run([sys.executable, "-c", _KILLED, where, lake.root], env=environment, check=False)
    assert run.returncode == -signal.SIGKILL
    for _ in range(2):
        assert {name: kept(lake, name) for name in recent} == recent
        assert {name: rows_of(lake, f"{name}_current") for name in views} == views
        maintain(lake)
    assert files_of(lake)["lag"] <= 6
    # A file that was never committed goes when its time is over.
    tables = {name: {Path(uri).name for uri in DeltaTable(lake.path(name)).file_uris()} for name in recent}
    orphans = [
        path
        for name, known in tables.items()
        for path in Path(lake.path(name)).rglob("*.zstd.parquet")
        if path.name not in known
    ]
    for path in orphans:
        os.utime(path, (1, 1))
    maintain(lake)
    assert [path for path in orphans if path.exists()] == []


def test_a_run_ends_with_a_checkpoint_once_there_are_commits_enough(lake: DeltaLake, writer: Writer) -> None:
    for number in range(30):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
    assert [d.files for d in maintain(lake) if d.what == "checkpoint" and d.table == "lag"] == [32]
    assert [d for d in maintain(lake) if d.what == "checkpoint"] == []
    assert LakeReader(lake.root).count("lag") == 30


def test_work_stops_when_its_time_is_over_and_goes_on_with_the_next_call(lake: DeltaLake, writer: Writer) -> None:
    for number in range(4):
        for name in ("lag", "members"):
            writer.append(name, row(name, 0, number, topic="t", partition=0))
    maintainer = Maintainer(lake.root, limits=SMALL)
    assert list(maintainer.work(seconds=0)) == []
    for _ in range(100):
        list(maintainer.work(seconds=0.001))
    assert files_of(lake)["lag"] == files_of(lake)["members"] == 1


def _settings(lake: str, **maintenance: Any) -> Any:
    return load_settings(lake=lake, maintenance=maintenance)


def test_a_dry_run_says_what_would_be_done_and_changes_nothing(
    lake: DeltaLake, writer: Writer, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(70):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
    writer.append("lag", row("lag", -50, 100, topic="t", partition=0))
    writer.round(0, 200)
    before = files_of(lake)
    maintain_command(_settings(lake.root), Console(width=160), dry_run=True)
    told = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("lag "))
    assert "delete 1 rows of 1 day" in told
    assert "join 70 files" in told
    assert files_of(lake) == before


def test_a_run_says_in_a_line_what_each_piece_has_done(
    lake: DeltaLake, writer: Writer, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(70):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
    maintain_command(_settings(lake.root), Console(width=160))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("lag                70 files of ")
    assert "joined into one" in lines[0]
    assert lines[-1].endswith("70 files joined into 1.")


def test_a_second_maintainer_is_refused_with_one_sentence_and_exit_code_2(lake: DeltaLake) -> None:
    command = [str(Path(sys.executable).parent / "evenkeel"), "maintain", "--lake", lake.root]
    with only_one(MAINTAINER, lake.root, None):
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr == (
        f"Another maintainer runs for the lake {lake.root} (process {os.getpid()}): wait until it has finished, or "
        "choose another lake.\n"
    )


@pytest.mark.parametrize(
    ("keep_days", "told"), [({"lags": 40}, "names lags, which is no table"), ({"lag": 1}, "keeps lag for 1 days")]
)
def test_a_wrong_retention_is_told_in_one_sentence(lake: DeltaLake, keep_days: dict[str, int], told: str) -> None:
    with pytest.raises(SetupError, match=told):
        maintain_command(_settings(lake.root, keep_days=keep_days), Console())


def test_no_lake_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="There are no tables in"):
        maintain_command(_settings(str(tmp_path / "nothing")), Console())
    assert not (tmp_path / "nothing").exists()


_SPARK = """
import json, sys
from pyspark.sql import SparkSession
from streaming.jars import classpath

spark = (
    SparkSession.builder.master("local[1]").config("spark.jars", ",".join(map(str, classpath("spark"))))
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC")
    .config("spark.databricks.delta.snapshotPartitions", "1").getOrCreate()
)
lag = spark.read.format("delta").load(sys.argv[1] + "/lag")
found = {
    "rows": sorted(map(tuple, lag.select("group_id", "partition", "round", "lag").collect())),
    "newest": lag.where("round_time >= timestamp_millis(" + sys.argv[2] + ")").count(),
    "one": lag.where("group_id = 'b' AND partition = 1").count(),
}
print("ANSWER" + json.dumps(found))
"""


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_spark_reads_a_maintained_table(lake: DeltaLake, writer: Writer) -> None:
    for number in range(30):
        keys = [(group, partition) for group in "ab" for partition in (0, 1)]
        day = -50 if number < 10 else 0
        rows = [row("lag", day, number, group_id=g, topic="t", partition=p, lag=number) for g, p in keys]
        writer.append("lag", *rows)
    writer.append("lag", row("lag", -50, 5, group_id="old", topic="t", partition=0, lag=5))
    writer.round(0, 99)
    maintain(lake)
    since = TODAY * 86_400_000 + 25
    run = subprocess.run(
        [sys.executable, "-c", _SPARK, lake.root, str(since)], capture_output=True, text=True, check=True
    )
    answer = json.loads(run.stdout.partition("ANSWER")[2])
    expected = [[g, p, n, n] for g in "ab" for p in (0, 1) for n in range(10, 30)] + [["old", 0, 5, 5]]
    assert answer == {"rows": sorted(expected), "newest": 5 * 4, "one": 20}
