"""Compaction: the same rows, all columns, sorted. (Spark reads its files in `tests/tables/test_spark.py`.)"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from streaming.maintain import MaintenanceError
from streaming.maintain.engines.files_engine import FilesEngine
from streaming.maintain.table.delta_table import MaintainedTable, open_table
from streaming.maintain.table.plan import Compaction, Sorting
from streaming.maintain.table.rewrite import read
from streaming.maintain.table.sorting import Sorter
from streaming.tables import (
    ALL_TABLES,
    DeltaLake,
    KnownRows,
    LakeReader,
    LakeUnreadableError,
    Table,
    table_named,
    to_arrow,
)
from streaming.times import DAY_MS
from tests.maintain.build import (
    TODAY,
    Writer,
    add_column,
    files_of,
    maintain,
    row,
    rows_of,
)

pytestmark = pytest.mark.turn(6)


def test_many_small_files_become_one_with_the_same_rows(lake: DeltaLake, writer: Writer) -> None:
    for number in range(12):
        writer.append("lag", *(row("lag", 0, number, topic="t", partition=p, lag=number) for p in range(3)))
    before = rows_of(lake, "lag")
    maintain(lake)
    assert files_of(lake)["lag"] == 1
    assert rows_of(lake, "lag") == before


@pytest.mark.nightly
@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.name)
def test_small_files_of_any_table_become_one(lake: DeltaLake, writer: Writer, table: Table) -> None:
    for number in range(3):
        writer.append(table.name, row(table.name, 0, number))
    before = rows_of(lake, table.name)
    maintain(lake)
    assert files_of(lake)[table.name] == 1
    assert rows_of(lake, table.name) == before


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


def append_newer(lake: DeltaLake, table: str, day: int, number: int) -> None:
    """A row of a newer release, which has the column `newer` with the number in it."""
    rows = to_arrow(table_named(table), [row(table, day, number)]).append_column("newer", pa.array([f"n{number}"]))
    write_deltalake(DeltaTable(lake.path(table)), rows, mode="append")


def values_of_newer(lake: DeltaLake, table: str) -> list[str]:
    found = DeltaTable(lake.path(table)).to_pyarrow_table(columns=["newer"])["newer"].to_pylist()
    return sorted(map(str, found))


UNKNOWN = (
    r"table \S+{} has columns that this release does not know \(newer\), .*: maintain it with the release that wrote"
)


def opened(lake: DeltaLake, table: str) -> MaintainedTable:
    found = open_table(lake.root, table_named(table))
    assert found is not None
    return found


@pytest.mark.parametrize("day", [-1, -50], ids=["joined", "past its retention"])
def test_a_table_with_columns_of_a_newer_release_is_refused_and_keeps_their_values(
    lake: DeltaLake, writer: Writer, day: int
) -> None:
    add_column(lake, "group_health", pa.field("newer", pa.string()))
    for number in range(2, 6):
        append_newer(lake, "group_health", day, number)
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
    writer.round(0, 9)
    with pytest.raises(MaintenanceError, match=UNKNOWN.format("group_health")):
        maintain(lake)
    assert values_of_newer(lake, "group_health") == ["n2", "n3", "n4", "n5"]
    assert files_of(lake)["lag"] == 1, "the other tables are maintained"


def test_columns_that_come_while_a_piece_is_read_are_not_lost(
    lake: DeltaLake, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        writer.append("lag", row("lag", -1, number, topic="t", partition=0))
    table = opened(lake, "lag")
    piece = Compaction(table.files()[0].day, tuple(table.files()))
    rows = read(table.table, piece.files, table.folder)
    there = set(Path(lake.path("lag")).rglob("*.parquet"))
    commit = MaintainedTable._commit

    def late(self: MaintainedTable, *args: Any) -> None:
        add_column(lake, "lag", pa.field("newer", pa.string()))
        commit(self, *args)

    monkeypatch.setattr(MaintainedTable, "_commit", late)
    with pytest.raises(MaintenanceError, match=UNKNOWN.format("lag")):
        table.replace(piece, rows, now=0)
    assert files_of(lake)["lag"] == 3
    assert set(Path(lake.path("lag")).rglob("*.parquet")) == there


def test_a_field_inside_a_column_is_a_column_that_is_not_known(lake: DeltaLake, tmp_path: Path) -> None:
    table = table_named("group_health")
    fields = []
    for field in table.arrow_schema:
        if field.name == "findings":
            of = field.type.value_type
            field = field.with_type(pa.list_(pa.struct([*of, pa.field("newer", pa.string())])))  # noqa: PLW2901
        fields.append(field)
    DeltaTable.create(str(tmp_path / "new" / "group_health"), pa.schema(fields), partition_by=["event_date"])
    with pytest.raises(MaintenanceError, match=r"does not know \(findings\.newer\)"):
        opened(DeltaLake(str(tmp_path / "new")), "group_health").refuse_unknown()
    opened(lake, "group_health").refuse_unknown()


def test_neither_sorting_nor_an_engine_begins_with_columns_that_are_not_known(lake: DeltaLake, writer: Writer) -> None:
    for number in range(3):
        writer.append("lag", row("lag", -1, number, topic="t", partition=0))
    add_column(lake, "lag", pa.field("newer", pa.string()))
    table = opened(lake, "lag")
    files = tuple(table.files())
    with pytest.raises(MaintenanceError, match=UNKNOWN.format("lag")):
        Sorter.begin(table, Sorting(files[0].day, files), most_rows=10)
    with pytest.raises(MaintenanceError, match=UNKNOWN.format("lag")):
        FilesEngine(spark=None).compact(table.table, table.uri, files[0].day)


def test_history_is_added_beside_columns_that_are_not_known_and_no_row_of_theirs_is_written_again(
    lake: DeltaLake,
) -> None:
    add_column(lake, "group_hourly", pa.field("newer", pa.string()))
    append_newer(lake, "group_hourly", -1, 1)
    table = opened(lake, "group_hourly")
    (file,) = table.files()
    rows = to_arrow(table.table, [row("group_hourly", -1, 2, cluster="d")])
    table.put(file.day, rows, ds.field("cluster") == "d")
    with pytest.raises(MaintenanceError, match=UNKNOWN.format("group_hourly")):
        table.put(file.day, rows, ds.field("cluster") == "c")
    assert values_of_newer(lake, "group_hourly") == ["None", "n1"]


def test_vacuum_and_checkpoints_go_on_with_columns_that_are_not_known(lake: DeltaLake, writer: Writer) -> None:
    for number in range(3):
        writer.append("lag", row("lag", -1, number, topic="t", partition=0))
    maintain(lake)
    DeltaTable(lake.path("lag")).alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 0 hours"})
    add_column(lake, "lag", pa.field("newer", pa.string()))
    table = opened(lake, "lag")
    assert table.vacuum(dry_run=False)[0] == 3
    table.checkpoint()
    assert table.log().commits == 0
    assert LakeReader(lake.root).count("lag") == 3


def test_a_feature_that_is_turned_on_later_is_refused_when_it_is_seen(lake: DeltaLake, writer: Writer) -> None:
    writer.append("lag", row("lag", -1, 1, topic="t", partition=0))
    table = opened(lake, "lag")
    assert len(table.files()) == 1
    features = ["deletionVectors"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    log = Path(lake.path("lag")) / "_delta_log"
    version = DeltaTable(lake.path("lag")).version() + 1
    (log / f"{version:020d}.json").write_text(json.dumps({"protocol": protocol}) + "\n")
    with pytest.raises(LakeUnreadableError, match="deletionVectors"):
        table.files()


def undated(number: int) -> list[Any]:
    """A decision whose record has no time that anybody could believe."""
    return row("rebalance_churn", 0, number, record_time=-1, event_date=None)


def test_rows_without_a_day_are_joined_among_themselves_and_stay_without_one(lake: DeltaLake, writer: Writer) -> None:
    rows = [undated(number) for number in range(6, 10)]
    for number in range(2, 6):
        writer.append("rebalance_churn", row("rebalance_churn", 0, number))
    for one in rows:
        writer.append("rebalance_churn", one)
    writer.round(0, 20)
    before = rows_of(lake, "rebalance_churn")
    done = [(d.files, d.rows_after) for d in maintain(lake) if d.table == "rebalance_churn"]
    assert done == [(4, 4), (4, 4)]
    assert rows_of(lake, "rebalance_churn") == before
    assert files_of(lake)["rebalance_churn"] == 2
    table = table_named("rebalance_churn")
    assert KnownRows(lake.root, table, "c").without_known(to_arrow(table, rows)).num_rows == 0


def test_rows_without_a_day_are_sorted_among_themselves(lake: DeltaLake, writer: Writer) -> None:
    for number in range(4):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0, round_time=-1, event_date=None))
    before = rows_of(lake, "lag")
    table = opened(lake, "lag")
    files = tuple(table.files())
    sorter = Sorter.begin(table, Sorting(files[0].day, files), most_rows=10)
    sorter.step()
    assert rows_of(lake, "lag") == before
    assert [(file.is_sorted, file.undated) for file in table.files()] == [(True, True)]


def test_rows_without_a_day_are_kept_from_the_day_on_which_they_were_written(lake: DeltaLake, writer: Writer) -> None:
    for number in range(4):
        writer.append("rebalance_churn", undated(number))
    # (By the machine's clock: midnight may pass while they are written, or since the other days were counted.)
    written = sorted((file.day - date(1970, 1, 1)).days for file in opened(lake, "rebalance_churn").files())
    writer.append("group_health", row("group_health", written[-1] - TODAY + 8, 5))
    for today, left in ((written[0] + 5, [0, 1, 2, 3]), (written[-1] + 6, [3])):
        writer.round(today - TODAY, 10 + today)
        maintain(lake, now=today * DAY_MS)
        found = LakeReader(lake.root).rows("SELECT decision, event_date FROM rebalance_churn ORDER BY decision")
        assert [tuple(row.values()) for row in found] == [(number, None) for number in left], today


def test_history_of_a_day_leaves_rows_without_one_alone(lake: DeltaLake, writer: Writer) -> None:
    for cluster in "cd":
        writer.append("group_hourly", row("group_hourly", 0, 1, cluster=cluster, event_date=None))
    table = opened(lake, "group_hourly")
    today = date(1970, 1, 1) + timedelta(days=TODAY)
    before = rows_of(lake, "group_hourly")
    table.put(today, table.table.arrow_schema.empty_table(), ds.field("cluster") == "c")
    assert rows_of(lake, "group_hourly") == before
