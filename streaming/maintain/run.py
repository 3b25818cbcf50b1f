"""`evenkeel maintain`: a lake's maintenance from outside, beside a running job."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from rich.console import Console
from rich.filesize import decimal

from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.maintain.engines import delta_spark
from streaming.maintain.maintainer import maintainer_of
from streaming.maintain.pieces import Done
from streaming.process import MAINTAINER, only_one
from streaming.tables import ALL_TABLES
from streaming.terminal import counted, say


def maintain(settings: Settings, console: Console, *, with_spark: bool = False, master: str | None = None) -> None:
    """Maintain a lake until nothing is left to do, and say what was done.

    Args:
        settings: All settings.
        console: Where it is said.
        with_spark: Spark compacts and vacuums.
        master: Its master, as of `delta_spark`.

    Raises:
        SetupError: There is no lake, a setting names no table, another maintainer is at work, or Spark cannot start.
        NotMaintainedError: A table could not be maintained, or several; all others are. Each was reported.
    """
    lake = settings.lake
    if "://" not in lake and not any((Path(lake) / table.name).is_dir() for table in ALL_TABLES):
        message = f"There are no tables in {lake}: name the lake with --lake, or in the setting `lake`."
        raise SetupError(message)

    def report(table: str, reason: str) -> None:
        say(console, f"{table:<18} not maintained: {reason}")

    with (
        only_one(MAINTAINER, lake, None) as check,
        delta_spark(master, lake) if with_spark else nullcontext() as engine,
    ):
        for piece in maintainer_of(settings, engine=engine, report=report).work():
            check()
            say(console, line_of(piece))
        say(console, "Nothing else is due.")


def line_of(done: Done) -> str:
    """One piece of work as a line for people."""
    match done.what:
        case "compaction":
            text = f"{counted(done.files, 'file')} of {done.day or 'rows without a day'} joined"
        case "retention":
            text = f"{counted(done.rows, 'row')} of days before {done.day} deleted"
        case "history":
            span = f"{done.day}" if done.hour is None else f"{done.hour:%Y-%m-%d %H:00}"
            text = f"{span} rolled up, {counted(done.rows, 'row')}"
        case "advice":
            text = f"{done.day} looked at for advice, {counted(done.rows, 'row')} written"
        case _:
            text = f"checkpoint of the log, {counted(done.files, 'file')} deleted that no reader needs any more"
            if done.size:
                text += f", {decimal(done.size)}"
    return f"{done.table:<18} {text} ({done.seconds:.1f} s)"
