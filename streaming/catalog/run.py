"""`evenkeel tables`: what a lake holds, and the statements that register it elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Any

from rich.console import Console
from rich.filesize import decimal
from rich.table import Table as Grid

from streaming.catalog.contents import Contents, LakeIncompleteError, behind, contents, faults
from streaming.catalog.statements import Dialect, statements
from streaming.exceptions import SetupError
from streaming.terminal import age, visible


def list_tables(
    lake: str, console: Console, *, as_json: bool = False, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> None:
    """Print a line for each table of a lake, or all of them as one JSON object.

    Args:
        lake: Folder or URI.
        console: Where to print.
        as_json: Print JSON: `lake` and `tables`, with sizes in bytes, and days and times in ISO 8601, UTC.
        now: The clock, aware, for ages.

    Raises:
        SetupError: There is no table in the lake.
        LakeIncompleteError: Everything is printed, and a table is unreadable, or deleted.
    """
    found = _there(lake)
    if as_json:
        document = {"lake": lake, "tables": list(map(_entry, found))}
        console.out(json.dumps(document, indent=2), highlight=False)
    else:
        _show(found, console, now())
    if wrong := faults(found):
        raise LakeIncompleteError(_sentence(lake, wrong))


def print_ddl(lake: str, dialect: Dialect, schema: str, write: Callable[[str], object]) -> None:
    """Print the statements that register a lake's tables and views, each with a semicolon.

    Args:
        lake: Folder or URI.
        dialect: Whose SQL.
        schema: Schema to register them in.
        write: Takes each statement.

    Raises:
        SetupError: There is no table in the lake.
        LakeIncompleteError: A table is unreadable, missing, or of an older release; nothing is printed.
    """
    found = _there(lake)
    if unreadable := [one for one in found if one.state == "unreadable"]:
        raise LakeIncompleteError(_sentence(lake, unreadable))
    if older := behind(found):
        message = (
            f"Missing in {lake}, or of an older release there: {', '.join(older)}. The job creates all tables when it "
            "starts: start it once with this release."
        )
        raise LakeIncompleteError(message)
    for statement in statements(dialect, lake, schema):
        write(f"{statement};")


def _there(lake: str) -> list[Contents]:
    found = contents(lake)
    if all(one.state == "missing" for one in found):
        message = f"There are no tables in {lake}: name the lake with --lake, or in the setting `lake`."
        raise SetupError(message)
    return found


def _show(found: Sequence[Contents], console: Console, now: datetime) -> None:
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for name, justify in (
        ("table", "left"),
        ("rows", "right"),
        ("files", "right"),
        ("size", "right"),
        ("days", "left"),
        ("newest commit", "right"),
    ):
        grid.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for one in found:
        if one.state == "ok":
            grid.add_row(one.table, *_cells(one, now))
        else:
            grid.add_row(one.table, *("-" for _ in range(3)), one.state, "-")
    console.print(grid, highlight=False)
    for one in found:
        if one.table == "rounds" and (at := one.newest_round_time) is not None:
            console.print(f"Newest round: {at:%Y-%m-%d %H:%M:%S} UTC, {age(now - at)} ago.", highlight=False)


def _cells(one: Contents, now: datetime) -> tuple[str, ...]:
    days = [str(day) for day in (one.oldest_day, one.newest_day) if day is not None]
    return (
        f"{one.rows:,}",
        f"{one.files:,}",
        decimal(one.size_bytes or 0),
        " to ".join(dict.fromkeys(days)) or "-",
        "-" if one.newest_commit is None else f"{age(now - one.newest_commit)} ago",
    )


_UNLISTED = ("columns", "oldest_round_time")


def _entry(one: Contents) -> dict[str, Any]:
    shown = {name: value for name, value in asdict(one).items() if name not in _UNLISTED}
    return {name: value.isoformat() if isinstance(value, date) else value for name, value in shown.items()}


def _sentence(lake: str, wrong: Sequence[Contents]) -> str:
    """A sentence for each reason why tables are not as they should be."""
    reasons: dict[str, list[str]] = {}
    for one in wrong:
        if one.state == "unreadable":
            reasons.setdefault(visible(one.reason or "", 300), []).append(one.table)
    lines = [
        f"Unreadable in {lake}: {', '.join(tables)} ({reason}). Check that the folder of each is whole and readable."
        for reason, tables in reasons.items()
    ]
    if gone := [one.table for one in wrong if one.state == "missing"]:
        lines.append(f"Missing in {lake}: {', '.join(gone)}. The job creates them when it starts again.")
    return "\n".join(lines)
