from __future__ import annotations

from pathlib import Path

from streaming.tables import (
    ADVICE_TABLES,
    ALERT_TABLES,
    ALL_TABLES,
    FLEET_TABLES,
    ITSELF_TABLES,
    NOTE_TABLES,
    TABLES,
    VIEWS,
)
from streaming.tables.describe import describe

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tables.md"


def test_the_page_is_as_the_schema_is() -> None:
    assert PAGE.read_text(encoding="utf-8") == describe(), "run python -m streaming.tables.describe > docs/tables.md"


def test_every_column_of_every_table_is_on_the_page() -> None:
    page = describe()
    for table in ALL_TABLES:
        section = page.split(f"\n## {table.name}\n")[1].split("\n## ")[0]
        rows = [line.split("`")[1] for line in section.splitlines() if line.startswith("- `")]
        shared = section.split("(#columns-of-many-tables): ")[1].split("\n")[0].split("`")[1::2]
        assert sorted([*rows, *shared]) == sorted(column.name for column in table.columns)
        assert (f"`{table.name}_current`" in section) == (f"{table.name}_current" in VIEWS)
    with_present = (*TABLES, *ALERT_TABLES, *ADVICE_TABLES, *NOTE_TABLES, *FLEET_TABLES, *ITSELF_TABLES)
    assert {f"{table.name}_current" for table in with_present} == set(VIEWS)
