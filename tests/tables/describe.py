"""`docs/tables.md`, written from the schema: `python -m tests.tables.describe > docs/tables.md`."""

from __future__ import annotations

import sys
from collections import Counter

from streaming.tables.schema import ALL_TABLES, Column, Table

# A column that means the same in this many tables is explained once.
_MANY = 3

# A table that shares this many further columns with an earlier one refers to it: those of history by hour and by day.
_ALIKE = 10

_HEAD = """\
# The tables

<!-- Written by `python -m tests.tables.describe > docs/tables.md`; a test compares the two. -->

Every table is a Delta table, a folder of its name in the lake. Rows are only appended, never changed, but for the
tables of [history](history.md) and advice, which are computed again after late rows.

- **`<table>_current`** is the newest row of each key, without keys that have ended (`ended`). It is a view:
  `LakeReader` (`streaming.tables`) has it in DuckDB, `streaming.tables.VIEWS` holds its SQL, also for Spark, and
  `evenkeel tables --ddl` registers it ([lake.md](lake.md#in-a-catalog)).
- **All tables exist**, with all columns, from the job's first start on; those without rows yet are empty. Queries with
  `:parameters` need [a setting](lake.md#spark) in a Spark that has Delta's extension.
- **Times** are UTC. `record_time` is the timestamp of the record in Kafka's log, `round_time` the broker's clock when
  the round was opened. The job writes no time of its own machine.
- **A change is a row, and so is a heartbeat** (ten minutes by default) in `lag` and `group_health`. Between two
  rows of a key, no round showed a change; counters (`commits`) come with the next row. `rounds` shows whether there
  were rounds in between at all.
- **NULL** means that a value is not known or does not exist; each column says which.
- **`event_date`** partitions a table: a query over a time span should also filter by day.
- Readers need no feature of Delta beyond version 1 of the reader protocol.
"""

_PROPERTIES = """\
## Retention and properties

Days further back than a table keeps them are deleted as a whole, once their history is there
([how to keep more or less](operations.md#maintenance)). What lives has a row in the last days: `lag`, `group_health`,
`member_load` and `topics` repeat theirs at a heartbeat, `members` and `open_transactions` once a day
(`repeat`). A reader that has opened a version of a table can read it for at least `delta.deletedFileRetentionDuration`.
"""


def describe() -> str:
    """All tables as Markdown."""
    index = ", ".join(f"[`{t.name}`](#{t.name})" for t in ALL_TABLES)
    occurrences = Counter(column for table in ALL_TABLES for column in table.columns)
    shared = [column for column, times in occurrences.items() if times >= _MANY]
    parts = [
        _HEAD,
        f"{index}.\n",
        f"## Columns of many tables\n\n{_columns(shared)}\n",
        *(_section(table, shared) for table in ALL_TABLES),
        _properties(),
    ]
    return "\n".join(parts)


def _section(table: Table, shared: list[Column]) -> str:
    own = [column for column in table.columns if column not in shared]
    others = tuple(column.name for column in table.columns if column in shared)
    elsewhere = f" [Of many tables](#columns-of-many-tables): {_names(others)}." if others else ""
    for earlier in ALL_TABLES[: ALL_TABLES.index(table)]:
        alike = tuple(column.name for column in own if column in earlier.columns)
        if len(alike) >= _ALIKE:
            elsewhere += f" As in [{earlier.name}](#{earlier.name}): {_names(alike)}."
            own = [column for column in own if column not in earlier.columns]
    closing = "; a row with `ended` ends its key" if table.closes else ""
    newest = (
        f" The newest by {_names(table.newest_by)} is in `{table.name}_current`{closing}." if table.newest_by else ""
    )
    days = f" Partitioned by {_names(table.partition_by)}." if table.partition_by else ""
    return (
        f"## {table.name}\n\n{table.comment}.\n\n"
        f"Key: {_names(table.key)}.{newest}{days}{elsewhere}\n\n"
        f"{_columns(own)}\n"
    )


def _columns(columns: list[Column]) -> str:
    return "\n".join(f"- `{c.name}` `{c.type.sql}`: {_text(c.comment)}" for c in columns)


def _properties() -> str:
    names = [f"`{name}`" for name in ALL_TABLES[0].properties]
    head = f"| kept, in days | {' | '.join(names)} | tables |\n|---:|{'---|' * len(names)}---|"
    alike: dict[tuple[str, ...], list[str]] = {}
    for table in sorted(ALL_TABLES, key=lambda t: (t.keep_days is None, t.keep_days, t.name)):
        kept = "for ever" if table.keep_days is None else str(table.keep_days)
        alike.setdefault((kept, *table.properties.values()), []).append(table.name)
    rows = "\n".join(f"| {' | '.join(values)} | {_names(tuple(tables))} |" for values, tables in alike.items())
    return f"{_PROPERTIES}\n{head}\n{rows}\n"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _text(text: str) -> str:
    return text.replace("<", "&lt;").replace("__", "\\_\\_")


if __name__ == "__main__":
    sys.stdout.write(describe())
