"""`evenkeel maintain --repair`: take data files that are gone out of their tables, so that the others can be read.

Their rows are lost by then; the commit only says so. A file that is gone because a disk or a bucket is not there must
not be forgotten for good, so a table of which every file is gone is refused.
"""

from __future__ import annotations

from rich.console import Console

from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.process import MAINTAINER, only_one
from streaming.tables import ALL_TABLES, TABLES, OpenedTable, Table, note_lost
from streaming.terminal import counted, say


def repair(settings: Settings, console: Console) -> None:
    """Take out what is gone, and say what it was.

    Raises:
        SetupError: Every file of a table is gone, or another maintainer is at work.
    """
    with only_one(MAINTAINER, settings.lake, None):
        lost = {table.name: _repaired(settings.lake, table, console) for table in ALL_TABLES}
    if not any(lost.values()):
        say(console, "No data file is gone.")
    elif any(lost[table.name] for table in TABLES):
        say(console, "Run evenkeel run --rebuild-state to write the rows again, as far as Kafka holds the records.")


def _repaired(lake: str, table: Table, console: Console) -> int:
    """Repair one table; returns how many of its files are gone."""
    opened = OpenedTable(lake, table)
    if not opened.refresh():
        return 0
    paths = set(opened.delta.repair(dry_run=True)["files_removed"])
    files = opened.files()
    gone = [file for file in files if file.path in paths]
    for file in gone:
        rows = "unknown rows" if file.rows is None else counted(file.rows, "row")
        rounds = "" if file.rounds is None else f" of rounds {file.rounds[0]} to {file.rounds[1]}"
        say(console, f"{table.name}: {file.path} is gone, {rows}{rounds}")
    if gone:
        if len(gone) == len(files):
            message = (
                f"Every data file of {opened.uri} is gone: if a disk or bucket is not mounted, mount it; if they were "
                "deleted, delete the folder of the table, too, and run evenkeel run --rebuild-state."
            )
            raise SetupError(message)
        note_lost(lake, table.name, (file.path for file in gone))
        opened.delta.repair()
    return len(gone)
