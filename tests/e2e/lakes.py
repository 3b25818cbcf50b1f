"""Lakes as values: every row of every table, all columns, unordered."""

from __future__ import annotations

import base64
import json
import textwrap
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from streaming.tables import TABLES, LakeReader

_RECORDED = Path(__file__).parent / "data"

RELEASES = sorted((path.name for path in _RECORDED.iterdir()), key=lambda name: [int(part) for part in name.split(".")])
"""Releases with a folder in `data`, written by `e2e.record_data`; the newest is the last."""


def read_packed(name: str, release: str = RELEASES[-1]) -> list[Any]:
    """The lines of a file that a release recorded."""
    text = (_RECORDED / release / name).read_text("ascii")
    data = "".join(line for line in text.splitlines() if not line.startswith("#"))
    return [json.loads(line) for line in zlib.decompress(base64.b64decode(data)).splitlines()]


def write_packed(name: str, release: str, origin: str, lines: Iterable[Any]) -> int:
    """Write a file of a release; returns its size in bytes."""
    packed = zlib.compress("\n".join(json.dumps(line) for line in lines).encode(), 9)
    (_RECORDED / release).mkdir(exist_ok=True)
    comment = textwrap.indent(textwrap.fill(origin, 116), "# ")
    data = textwrap.fill(base64.b64encode(packed).decode(), 118)
    return (_RECORDED / release / name).write_text(f"{comment}\n{data}\n", "ascii")


Lake = dict[str, Counter[str]]
"""Rows by table; a row is the text of its columns in order, which shows NULL, types and floats exactly."""


def contents(root: Path | str, where: str = "", without: Mapping[str, Collection[str]] | None = None) -> Lake:
    """All rows of a lake.

    Args:
        root: The lake.
        where: A clause for each table.
        without: Columns to leave out, by table.
    """
    reader = LakeReader(root)
    out = {table.name: set((without or {}).get(table.name, ())) for table in TABLES}
    return {
        name: Counter(
            _text({column: value for column, value in row.items() if column not in left_out})
            for row in reader.rows(f"SELECT * FROM {name} {where}")
        )
        for name, left_out in out.items()
    }


def without_rebuilds(lake: Lake) -> Lake:
    """The rows without those of `gaps` that say that the job's state was rebuilt."""
    gaps = {row: times for row, times in lake["gaps"].items() if "('kind', 'state')" not in row}
    return lake | {"gaps": Counter(gaps)}


def differences(one: Lake, other: Lake) -> dict[str, tuple[list[str], list[str]]]:
    """Rows by table that only one of the two lakes has, a few of each; empty when they are equal."""
    return {
        table: (sorted((one[table] - other[table]).elements())[:3], sorted((other[table] - one[table]).elements())[:3])
        for table in one
        if one[table] != other[table]
    }


def _text(row: dict[str, Any]) -> str:
    return repr(list(row.items()))
