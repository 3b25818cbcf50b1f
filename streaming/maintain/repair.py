"""`evenkeel maintain --repair`: take data files that are gone out of their tables, so that the others can be read.

Their rows are lost by then; the commit only says so. A file that is gone because a disk or a bucket is not there must
not be forgotten for good, so a table of which every file is gone is refused.
"""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from rich.console import Console

from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.process import MAINTAINER, only_one
from streaming.tables import ALL_TABLES, TABLES, LostFile, note_lost
from streaming.terminal import counted


def repair(settings: Settings, console: Console, *, dry_run: bool = False) -> None:
    """Take out what is gone, and say what it was; with `dry_run` only say it.

    Raises:
        SetupError: Every file of a table is gone, or another maintainer is at work.
    """
    with only_one(MAINTAINER, settings.lake, None):
        lost = {table.name: _repaired(settings.lake, table.name, console, dry_run=dry_run) for table in ALL_TABLES}
    if not any(lost.values()):
        console.print("No data file is gone.", highlight=False)
    elif not dry_run and any(lost[table.name] for table in TABLES):
        console.print(
            "Run evenkeel run --rebuild-state to write the rows again, as far as Kafka holds the records.",
            highlight=False,
            soft_wrap=True,
        )


def _repaired(lake: str, table: str, console: Console, *, dry_run: bool) -> int:
    """Repair one table; returns how many of its files are gone."""
    uri = f"{lake.rstrip('/')}/{table}"
    try:
        opened = DeltaTable(uri)
    except TableNotFoundError:
        return 0
    paths = opened.repair(dry_run=True)["files_removed"]
    if not paths:
        return 0
    files = [_lost(action) for action in pa.table(opened.get_add_actions(flatten=True)).to_pylist()]
    gone = [file for file in files if file.path in paths]
    for file in gone:
        rows = "unknown rows" if file.rows is None else counted(file.rows, "row")
        rounds = "" if file.first_round is None else f" of rounds {file.first_round} to {file.last_round}"
        console.print(f"{table}: {file.path} is gone, {rows}{rounds}", highlight=False, soft_wrap=True)
    if not dry_run:
        if len(gone) == len(files):
            message = (
                f"Every data file of {uri} is gone: if a disk or bucket is not mounted, mount it; if they were "
                "deleted, delete the folder of the table, too, and run evenkeel run --rebuild-state."
            )
            raise SetupError(message)
        note_lost(lake, table, gone)
        opened.repair()
    return len(gone)


def _lost(action: dict[str, object]) -> LostFile:
    names = ("path", "num_records", "min.round", "max.round", "min.group_id", "max.group_id")
    return LostFile(*(action.get(name) for name in names))  # type: ignore[arg-type]
