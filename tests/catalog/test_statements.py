"""The statements for other engines, and the list of watched clusters."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from streaming.catalog import FleetLog, WatchedCluster, record_fleet, recorded_clusters, rename_problem
from streaming.catalog.contents import Dialect, statements
from streaming.exceptions import SetupError
from streaming.tables import VIEWS, DeltaLake, LakeReader, OpenedTable, named_to_arrow, table_named
from tests.catalog.build import lake_of_five_rows


def test_spark_gets_a_schema_and_tables_with_nothing_but_their_location() -> None:
    sql = statements("spark", "s3://bucket/lake/", "evenkeel")
    assert sql[:4] == [
        "SET spark.sql.legacy.parameterSubstitution.constantsOnly = true",
        "CREATE SCHEMA IF NOT EXISTS `evenkeel`",
        "USE `evenkeel`",
        "CREATE TABLE IF NOT EXISTS `rebalance_churn` USING delta LOCATION 's3://bucket/lake/rebalance_churn'",
    ]
    [current] = [statement for statement in sql if " VIEW `lag_current` " in statement]
    assert current.startswith(
        "CREATE OR REPLACE VIEW `lag_current` (\n  `cluster` COMMENT 'Configured name of the cluster',"
    )
    assert current.endswith(f"\nAS {VIEWS['lag_current']}")


def test_databricks_gets_a_schema_of_a_catalog_and_reads_the_log_again() -> None:
    assert statements("databricks", "abfss://c@a.x/lake", "main.evenkeel")[:4] == [
        "CREATE SCHEMA IF NOT EXISTS `main`.`evenkeel`",
        "USE SCHEMA `main`.`evenkeel`",
        "CREATE TABLE IF NOT EXISTS `rebalance_churn` USING delta LOCATION 'abfss://c@a.x/lake/rebalance_churn'",
        "MSCK REPAIR TABLE `rebalance_churn` SYNC METADATA",
    ]


def test_duckdb_gets_views_over_the_tables() -> None:
    sql = statements("duckdb", "s3://bucket/lake", "evenkeel")
    assert sql[:4] == ["INSTALL delta", "LOAD delta", 'CREATE SCHEMA IF NOT EXISTS "evenkeel"', 'USE "evenkeel"']
    columns = ", ".join(f'"{column.name}"' for column in table_named("gaps").columns)
    assert f"CREATE OR REPLACE VIEW \"gaps\" AS SELECT {columns} FROM delta_scan('s3://bucket/lake/gaps')" in sql


@pytest.mark.parametrize(
    ("dialect", "location"),
    [
        ("spark", "'file:///tmp/a \\'b\\' \"c\" `d`\\\\e/lag'"),
        ("databricks", "'file:///tmp/a \\'b\\' \"c\" `d`\\\\e/lag'"),
        ("duckdb", "'/tmp/a ''b'' \"c\" `d`\\e/lag'"),
    ],
)
def test_a_folder_with_quotes_backticks_and_backslashes_stays_one_literal(dialect: Dialect, location: str) -> None:
    sql = statements(dialect, "/tmp/a 'b' \"c\" `d`\\e", "evenkeel")
    assert sum(location in statement for statement in sql) == 1


@pytest.mark.parametrize(("dialect", "name"), [("spark", '`a``b "c`'), ("duckdb", '"a`b ""c"')])
def test_a_hostile_schema_stays_one_name(dialect: Dialect, name: str) -> None:
    assert f"CREATE SCHEMA IF NOT EXISTS {name}" in statements(dialect, "lake", 'a`b "c')


@pytest.mark.parametrize("schema", ["", ".", "main.", ".evenkeel"])
def test_a_schema_without_a_name_is_refused(schema: str) -> None:
    with pytest.raises(SetupError, match="has an empty name"):
        statements("spark", "lake", schema)


def test_duckdb_reads_the_same_rows_through_its_views_from_any_schema(tmp_path: Path) -> None:
    lake = lake_of_five_rows(tmp_path / "l'a \"k` e")
    record_fleet(lake.root, [WatchedCluster("c")], ["c"])
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    # In the place of the extension, which comes from a server. (No file has been removed from these tables.)
    database.execute(
        "CREATE MACRO main.delta_scan(folder) AS TABLE "
        "SELECT * FROM read_parquet(folder || '/**/*.parquet', hive_partitioning = true)"
    )
    # DuckDB reads no table without files, and INSTALL and LOAD are the extension's.
    read = re.compile(r'SCHEMA|USE|CREATE OR REPLACE VIEW "(clusters|lag|rounds|quarantine)(_current)?" ')
    for statement in statements("duckdb", lake.root, "evenkeel"):
        if read.search(statement):
            database.execute(statement)
    database.execute("USE memory.main")
    reader = LakeReader(lake.root)
    for name in ("lag", "lag_current", "rounds_current", "quarantine_current"):
        columns = ", ".join(column for column in reader.rows(f"SELECT * FROM {name} LIMIT 1")[0])
        ours = sorted(map(_plain, database.execute(f"SELECT {columns} FROM evenkeel.{name}").fetchall()))
        assert ours == sorted(_plain(tuple(found.values())) for found in reader.rows(f"SELECT * FROM {name}"))
    assert database.execute("SELECT count(*) FROM evenkeel.lag_current").fetchall() == [(2,)]


def _plain(row: tuple[object, ...]) -> str:
    # One has a zone of its own for UTC.
    return str(list(map(str, row)))


def record(lake: Path, *watched: str, names: tuple[str, ...] = (), old: str | None = None, now: int = 1_000) -> None:
    clusters = [WatchedCluster(name, f"id-{name}", old) for name in watched]
    record_fleet(str(lake), clusters, names or watched, lambda: now)


def closed(lake: Path) -> set[str]:
    return set(FleetLog(str(lake)).closed())


def round_row(cluster: str, number: int, cluster_id: str | None = None) -> dict[str, object]:
    return {
        "cluster": cluster,
        "cluster_id": cluster_id,
        "round": number,
        "round_time": 1_000 * number,
        "event_date": 0,
    }


def write_rounds(lake: Path, *rows: dict[str, object]) -> None:
    to = DeltaLake(str(lake))
    to.create()
    to.append("rounds", named_to_arrow(table_named("rounds"), rows), "job", len(rows))


def present(lake: Path) -> list[str]:
    return [row["cluster"] for row in LakeReader(lake).rows("SELECT cluster FROM rounds_current ORDER BY cluster")]


# What starts one after the other: the clusters that it watches, those of its file, and its clock; then what is closed.
STARTS: dict[str, list[tuple[str, str, int, set[str]]]] = {
    "a cluster that left the file is closed and one that comes back is watched": [
        ("ab", "ab", 1_000, set()),
        ("a", "a", 1_000, {"b"}),
        ("ab", "ab", 1_000, set()),
    ],
    "a process for one cluster of the file does not close the others": [
        ("a", "ab", 1_000, set()),
        ("b", "ab", 1_000, set()),
    ],
    "deployments with a file each over one lake close nothing of each other": [
        ("a", "a", 1_000, set()),
        ("b", "b", 1_000, set()),
        ("ac", "ac", 1_000, set()),
    ],
    "a clock that is behind does not bring an older state back": [
        ("ab", "ab", 50_000, set()),
        ("a", "a", 10, {"b"}),
    ],
}


@pytest.mark.parametrize("case", STARTS)
def test_a_cluster_is_closed_when_its_file_has_left_it_out(tmp_path: Path, case: str) -> None:
    for watched, names, now, expected in STARTS[case]:
        record(tmp_path, *watched, names=tuple(names), now=now)
        assert closed(tmp_path) == expected


def test_what_is_recorded_already_is_not_written_again(tmp_path: Path) -> None:
    record(tmp_path, "a", "b")
    record(tmp_path, "a", "b", now=9_000)
    record_fleet(str(tmp_path), [WatchedCluster("a")], ["a", "b"])
    table = OpenedTable(str(tmp_path), table_named("clusters"))
    table.refresh()
    assert sum(file.rows or 0 for file in table.files()) == 2


def test_the_present_leaves_out_a_closed_cluster_and_history_keeps_it(tmp_path: Path) -> None:
    write_rounds(tmp_path, round_row("a", 1), round_row("b", 1))
    assert present(tmp_path) == ["a", "b"], "in a lake of release 0.6 every cluster with rounds is watched"
    record(tmp_path, "a", "b")
    record(tmp_path, "a")
    assert present(tmp_path) == ["a"]
    assert LakeReader(tmp_path).count("rounds") == 2
    record(tmp_path, "a", "b")
    assert present(tmp_path) == ["a", "b"]


def test_a_new_name_of_a_cluster_that_the_lake_knows_is_refused_with_both_names(tmp_path: Path) -> None:
    write_rounds(tmp_path, round_row("orders", 1), round_row("orders", 2, "k-1"), round_row("payments", 1, "k-2"))
    known = recorded_clusters(str(tmp_path))
    told = rename_problem(WatchedCluster("sales", "k-1"), ["sales", "payments"], known)
    assert "The cluster sales (k-1) is called orders in the lake" in told
    assert 'renamed_from = "orders"' in told


@pytest.mark.parametrize(
    ("cluster", "names"),
    [
        (WatchedCluster("sales", "k-1", "orders"), ("sales",)),
        (WatchedCluster("sales", "k-1"), ("sales", "orders")),
        (WatchedCluster("sales", "k-9"), ("sales",)),
        (WatchedCluster("sales"), ("sales",)),
        (WatchedCluster("orders", "k-1"), ("orders",)),
    ],
    ids=["told so", "the old name is in the file, too", "another cluster", "an unknown id", "a known name"],
)
def test_a_name_is_not_refused(tmp_path: Path, cluster: WatchedCluster, names: tuple[str, ...]) -> None:
    write_rounds(tmp_path, round_row("orders", 1, "k-1"))
    assert rename_problem(cluster, names, recorded_clusters(str(tmp_path))) is None


def test_a_renamed_cluster_closes_its_old_name_also_that_of_a_lake_of_release_0_6(tmp_path: Path) -> None:
    write_rounds(tmp_path, round_row("orders", 1, "k-1"), round_row("sales", 1, "k-1"))
    record(tmp_path, "sales", old="orders")
    assert closed(tmp_path) == {"orders"}
    assert present(tmp_path) == ["sales"]
