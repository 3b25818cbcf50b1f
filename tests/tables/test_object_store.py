"""A lake on a real S3 server, through everything that reads or writes one."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from datetime import timedelta

import pytest

from streaming.catalog import contents
from streaming.maintain import Maintainer
from streaming.tables import ALL_TABLES, DeltaLake, DeltaLogTail, LakeReader, TableCache, Wanted, table_named
from tests.maintain.build import KEEP, NOW, SMALL, Writer, row, rows_of

pytestmark = pytest.mark.xdist_group("object_store")


@pytest.fixture
def lake(s3: str) -> DeltaLake:
    lake = DeltaLake(f"{s3}/a team/lake")
    lake.create(ALL_TABLES)
    return lake


def test_rows_are_read_back_by_every_reader_and_once_although_a_batch_is_repeated(lake: DeltaLake) -> None:
    tail = DeltaLogTail(lake.root, table_named("lag"), "round_time")
    cache = TableCache(lake.root, {"lag": Wanted(frozenset({"lag"}), frozenset({"lag"}))}, timedelta(days=1))
    assert tail.look().is_snapshot
    cache.update()
    rows = [row("lag", 0, number, topic="t", partition=0) for number in range(3)]
    assert lake.append("lag", rows, "query", 1) == 3
    assert DeltaLake(lake.root).append("lag", rows, "query", 1) == 0
    found = tail.look()
    assert not found.is_snapshot
    assert tail.read(found.files, ["round"])["round"].to_pylist() == [0, 1, 2]
    cache.update()
    assert cache.rows("SELECT count(*) AS n FROM lag") == [{"n": 3}]
    reader = LakeReader(lake.root)
    assert (reader.count("lag"), reader.count("lag_current")) == (3, 1)
    told = {one.table: (one.state, one.rows) for one in contents(lake.root)}
    assert told["lag"] == ("ok", 3)
    assert {state for state, _ in told.values()} == {"ok"}


def test_maintenance_keeps_every_row_and_followers_see_no_new_ones(lake: DeltaLake) -> None:
    writer = Writer(lake)
    for number in range(5):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
    writer.round(0, 5)
    tail = DeltaLogTail(lake.root, table_named("lag"), "round_time")
    tail.look()
    before = rows_of(lake, "lag")
    keep_days = {table.name: KEEP for table in ALL_TABLES}
    done = list(Maintainer(lake.root, keep_days, SMALL, now=lambda: NOW).work())
    assert [(d.table, d.what, d.files) for d in done if d.what == "compaction"] == [("lag", "compaction", 5)]
    assert rows_of(lake, "lag") == before
    assert tail.look().files == ()


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


def test_three_processes_that_race_for_each_version_lose_no_commit(lake: DeltaLake) -> None:
    names, count = ("a", "b", "c"), 20
    writers = [
        subprocess.Popen([sys.executable, "-c", _APPENDS, lake.root, name, str(count)], stdin=subprocess.PIPE)
        for name in names
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.close()
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    found = LakeReader(lake.root).rows("SELECT topic, round FROM lag")
    assert Counter((r["topic"], r["round"]) for r in found) == {(n, i): 1 for n in names for i in range(count)}
