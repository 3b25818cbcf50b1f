"""Commits of maintenance beside others: the job, followers, readers of old versions, a second program."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from streaming.maintain import MaintenanceError
from streaming.maintain.table.delta_table import open_table
from streaming.maintain.table.plan import Compaction
from streaming.maintain.table.rewrite import read
from streaming.tables import (
    DeltaLake,
    DeltaLogTail,
    LakeReader,
    TableCache,
    Wanted,
    table_named,
)
from tests.maintain.build import (
    Writer,
    maintain,
    row,
)


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


def test_a_day_that_gets_no_rows_gets_no_file(lake: DeltaLake, writer: Writer) -> None:
    writer.append("lag", row("lag", 3, 1, topic="t", partition=0))
    table = open_table(lake.root, table_named("lag"))
    assert table is not None
    (file,) = table.files()
    none = table_named("lag").arrow_schema.empty_table()
    version = DeltaTable(f"{lake.root}/lag").version()
    assert table.put(file.day, none, ds.field("topic") == "another") == 0
    assert DeltaTable(f"{lake.root}/lag").version() == version
    assert table.put(file.day, none, ds.field("topic") == "t") == 0
    assert DeltaTable(f"{lake.root}/lag").file_uris() == []


def test_a_table_that_keeps_what_it_read_is_as_it_was_until_it_looks_again_or_commits(
    lake: DeltaLake, writer: Writer
) -> None:
    table = open_table(lake.root, table_named("lag"), keeps=True)
    assert table is not None
    writer.append("lag", row("lag", 0, 1, topic="t", partition=0))
    (file,) = table.files()
    writer.append("lag", row("lag", 0, 2, topic="t", partition=0))
    assert table.files() == [file]
    table.put(file.day, table_named("lag").arrow_schema.empty_table(), ds.field("round") == 1)
    assert [one.rows for one in table.files()] == [1]
    assert file not in table.files()
    writer.append("lag", row("lag", 0, 3, topic="t", partition=0))
    assert len(table.files()) == 1
    table.look_again()
    assert len(table.files()) == 2
