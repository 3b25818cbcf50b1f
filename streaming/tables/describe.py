"""`docs/tables.md`, written from the schema: `python -m streaming.tables.describe > docs/tables.md`."""

from __future__ import annotations

import sys

from streaming.tables.schema import ALL_TABLES, PROPERTIES, Table

__all__ = ["describe"]

_HEAD = """\
# The tables

<!-- Written by `python -m streaming.tables.describe > docs/tables.md`; a test holds that it is as the schema is. -->

Every table is a Delta table, a folder of its name in the lake. Facts are only appended, never changed: what the tables
said at a time, they said.

- **`<table>_current`** is the newest row of each key, without what has ended (`ended`). It is a view, not a folder:
  `LakeReader` (`streaming.tables`) has it in DuckDB, and `streaming.tables.VIEWS` holds its SQL, which Spark takes as
  well. Most questions are about now, and are asked there.
- **Times** are UTC. `record_time` is the timestamp of the record in Kafka's log, `round_time` the broker's clock at the
  probe's look at the cluster. No column that the job writes holds a clock of Evenkeel's machines, so a job that was
  down for two hours writes the rows that it would have written. (`alerts` and `alert_deliveries` are the alerter's;
  they hold its clock where their columns say so.)
- **A change is a row, and so is a heartbeat** (ten minutes by default) in `lag` and `group_health`. Between two rows
  of a key no round showed a change of it; what is only counted (`commits`) comes with the next row. Whether there were
  rounds in between, and so anybody who looked, `rounds` tells.
- **NULL** means that it is not known, or is not; each column says which.
- **`event_date`** partitions a table: a query over a time should also name its days.
- Readers need no feature of Delta beyond version 1 of the reader protocol: deletion vectors, column mapping and v2
  checkpoints stay off.
"""


def describe() -> str:
    """All tables as Markdown."""
    properties = "\n".join(f"| `{name}` | {value} |" for name, value in PROPERTIES.items())
    index = "\n".join(f"| [`{t.name}`](#{t.name}) | {_cell(t.comment)} |" for t in ALL_TABLES)
    parts = [
        _HEAD,
        f"| table | what |\n|---|---|\n{index}\n",
        *map(_section, ALL_TABLES),
        f"## Properties\n\nOf every table, when it is created:\n\n| property | value |\n|---|---|\n{properties}\n",
    ]
    return "\n".join(parts)


def _section(table: Table) -> str:
    columns = "\n".join(f"| `{c.name}` | `{c.type.sql}` | {_cell(c.comment)} |" for c in table.columns)
    closing = "; a row with `ended` ends its key" if table.closes else ""
    days = f" Partitioned by {_names(table.partition_by)}." if table.partition_by else ""
    return (
        f"## {table.name}\n\n{table.comment}.\n\n"
        f"Key: {_names(table.key)}. The newest by {_names(table.newest_by)} is in `{table.name}_current`{closing}."
        f"{days}\n\n"
        f"| column | type | meaning |\n|---|---|---|\n{columns}\n"
    )


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("__", "\\_\\_")


if __name__ == "__main__":
    sys.stdout.write(describe())
