"""Advice: what one day of it costs with a thousand groups, each with twenty rebalances a day.

The rows of a week are made with SQL. A process of its own looks at the last day of it, as the maintenance does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from streaming.maintain import advising
from streaming.tables import ALL_TABLES, DeltaLake, OpenedTable, Table, limited, table_named
from tests.benchmarks.figure import Figure, Say

__all__ = ["advice"]

_DAY = date(2026, 6, 1)
_DAYS = 7
_GROUPS = 1_000
_REBALANCES = 20
_MEMBERS = 10

# Rows of a day by table: a member restarts in every third rebalance, a strategy beats another, a partition is hot.
_ROWS = {
    "group_daily": """
        SELECT 1 AS source_rows, 86400.0 AS observed_seconds, 5 AS commits, 4 AS members_max, 4.0 AS members_mean,
          86400.0 AS members_known_seconds FROM groups""",
    "group_health": """
        SELECT h AS round, 'classic' AS group_type, 'consumer' AS protocol_type, 'range' AS strategy, 10 AS partitions
        FROM groups, range(144) AS t(h)""",
    "rebalance_churn": """
        SELECT $first::BIGINT + d AS decision, r AS revision, 'rebalance' AS kind, 'range' AS strategy,
          'eager' AS rebalance_protocol,
          $start + INTERVAL (d // 2 * 60 + d % 2) MINUTE / 2 AS record_time, 3 AS partitions_stopped_unmoved,
          1 AS partitions_moved, 2.0 AS unassigned_partition_seconds_min,
          [{'cause': CASE WHEN d % 2 = 0 THEN 'member_left' ELSE 'member_joined' END}] AS causes,
          CASE WHEN d % 2 = 0 THEN ['m' || d // 2] ELSE [] END AS "left",
          CASE WHEN d % 2 = 1 THEN ['m' || (d // 2 + 1)] ELSE [] END AS joined
        FROM groups, range($rebalances) AS t(d), range(1, 3) AS u(r)""",
    "drift": """
        SELECT $first::BIGINT + d AS decision, d AS round, 'identical' AS verdict, 'java:3.4' AS matching_library
        FROM groups, range($rebalances) AS t(d)""",
    "members": """
        SELECT $first::BIGINT + d AS decision, 'm' || CASE WHEN m = 0 THEN d // 2 ELSE 1000 + m END AS member_id,
          d % 2 = 0 AND m = 0 AS ended,
          'app-' || m AS client_id, '/10.0.0.1' AS client_host, 45000 AS session_timeout_ms
        FROM groups, range($rebalances) AS t(d), range($members) AS u(m)""",
    "what_if": """
        SELECT $first::BIGINT + d AS decision, s AS strategy, s = 'range' AS runs, 'java:3.4' AS library,
          CASE WHEN s = 'range' THEN 4 ELSE 1 END AS partitions_moved, 0.5 AS imbalance
        FROM groups, range($rebalances) AS t(d),
          (SELECT unnest(['range', 'roundrobin', 'sticky', 'cooperative-sticky']) AS s)""",
    "partition_hourly": """
        SELECT 't' AS topic, p AS partition, CASE WHEN p = 0 THEN 9000 ELSE 1000 END AS high_watermark_growth
        FROM groups, range(24) AS t(h), range(10) AS u(p)""",
}


def advice(say: Say) -> list[Figure]:
    """Run the benchmark."""
    with TemporaryDirectory(prefix="evenkeel-advice-") as folder:
        rows = _write(Path(folder) / "lake", say)
        say("looking at a day")
        command = [sys.executable, "-m", "tests.benchmarks.advice", f"{folder}/lake"]
        done = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    size = f"{_GROUPS:,} groups, {_REBALANCES * _DAYS} rebalances each, {rows:,} rows of a week"
    return [
        Figure(
            "one day of advice",
            f"{done['seconds']:.1f} s",
            "",
            f"{size}: {done['rows']:,} rows of advice",
        ),
        Figure("its processor time", f"{done['processor']:.1f} s", "", ""),
        Figure("its memory", f"{done['megabytes']:,.0f} MB", "", f"{done['before']:,.0f} MB before it began"),
    ]


def _write(root: Path, say: Say) -> int:
    lake = DeltaLake(str(root))
    lake.create(ALL_TABLES)
    rows = 0
    for number in range(_DAYS):
        day = _DAY - timedelta(days=_DAYS - 1 - number)
        say(f"making {day}")
        for name, sql in _ROWS.items():
            given = {"first": number * _REBALANCES, "start": day, "rebalances": _REBALANCES, "members": _MEMBERS}
            used = {key: value for key, value in given.items() if f"${key}" in sql}
            table = table_named(name)
            with limited() as connection:
                groups = f"(SELECT 'group-' || g AS group_id FROM range({_GROUPS}) AS g(g)) AS groups"
                made = sql.replace("SELECT", "SELECT group_id,", 1).replace("FROM groups", f"FROM {groups}")
                found = connection.sql(made, params=used).to_arrow_table()
            found = found.append_column("cluster", pa.repeat("bench", found.num_rows))
            found = found.append_column("event_date", pa.repeat(pa.scalar(day), found.num_rows))
            lake.append(name, _whole(table, found), "bench", number)
            rows += found.num_rows
    return rows


def _whole(table: Table, found: pa.Table) -> pa.Table:
    """The columns of the table; those that were not made are NULL."""
    count = found.num_rows
    columns = []
    for field in table.arrow_schema:
        if field.name not in found.column_names:
            columns.append(pa.nulls(count, field.type))
        elif field.name == "causes":
            columns.append(pa.array(found["causes"].to_pylist(), field.type))
        else:
            columns.append(found[field.name].cast(field.type))
    return pa.Table.from_arrays(columns, names=table.arrow_schema.names)


def _look(root: str) -> dict[str, float]:
    def opened(name: str) -> OpenedTable | None:
        table = OpenedTable(root, table_named(name))
        return table if table.refresh() else None

    work = advising.Advising(root, opened, {table.name: 90 for table in ALL_TABLES}).work(lambda: _DAY)
    before = _megabytes()
    began, used = time.monotonic(), time.process_time()
    for done in work:
        if done.day == _DAY:
            break
        began, used = time.monotonic(), time.process_time()
    seconds, processor = time.monotonic() - began, time.process_time() - used
    return {
        "seconds": seconds,
        "processor": processor,
        "rows": done.rows,
        "megabytes": _megabytes(),
        "before": before,
    }


def _megabytes() -> float:
    # (`ru_maxrss` would begin with that of the process that started this one.)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_look(sys.argv[1])))
