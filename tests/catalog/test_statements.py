from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from streaming.catalog import WatchedCluster, record_fleet
from streaming.catalog.run import Dialect, statements
from streaming.exceptions import SetupError
from streaming.tables import VIEWS, LakeReader, table_named
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
    # (DuckDB reads no table without files, and INSTALL and LOAD are the extension's.)
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
    # (One has a zone of its own for UTC.)
    return str(list(map(str, row)))
