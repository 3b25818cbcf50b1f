"""`evenkeel maintain`: a lake's maintenance from outside, beside a running job."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.maintain.done import Done
from streaming.maintain.engines.engine import Engine
from streaming.maintain.maintainer import Maintainer
from streaming.maintain.outlook import Outlook
from streaming.maintain.settings import limits_of, maintainer_of
from streaming.plurals import counted
from streaming.process import MAINTAINER, only_one
from streaming.tables import ALL_TABLES
from streaming.terminal import visible


def maintain(
    settings: Settings, console: Console, *, dry_run: bool = False, with_spark: bool = False, master: str | None = None
) -> None:
    """Maintain a lake until nothing is left to do, and say what was done; with `dry_run` only what would be.

    Args:
        settings: All settings.
        console: Where it is said.
        dry_run: Change nothing.
        with_spark: Spark compacts past days, and vacuums.
        master: Its master, as of `spark_engine`.

    Raises:
        SetupError: There is no lake, a setting names no table, another maintainer is at work, or Spark cannot start.
        NotMaintainedError: A table could not be maintained, or several; all others are. Each was told.
    """
    lake = settings.lake
    if dry_run:
        found = maintainer_of(settings).outlook()
        if not found:
            raise _no_lake(lake)
        _show(found, console)
        return
    if "://" not in lake and not any((Path(lake) / table.name).is_dir() for table in ALL_TABLES):
        raise _no_lake(lake)
    with (
        only_one(MAINTAINER, lake, None) as check,
        _engine(master, settings) if with_spark else nullcontext() as engine,
    ):
        maintainer = maintainer_of(settings, engine=engine, told=_told_on(console))
        outlook = maintainer.outlook()
        if not outlook:
            raise _no_lake(lake)
        done = _run(maintainer, outlook, console, check)
        console.print(_summary(done), highlight=False)


def _engine(master: str | None, settings: Settings) -> AbstractContextManager[Engine]:
    # (Spark's own modules take a second to import.)
    from streaming.maintain.engines.spark_engine import spark_engine  # noqa: PLC0415

    return spark_engine(master, settings.lake, limits_of(settings))


def _run(maintainer: Maintainer, outlook: list[Outlook], console: Console, check: Callable[[], None]) -> list[Done]:
    if not console.is_terminal:
        done = []
        for piece in maintainer.work():
            check()
            console.print(line_of(piece), highlight=False)
            done.append(piece)
        return done
    done = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        size = sum(o.compacted_size + o.sorted_size + o.expired_size for o in outlook if not o.refused)
        task = progress.add_task("looking at the tables", total=size or None)
        for piece in maintainer.work():
            check()
            # (Compacted files may be joined once more, so the bar can be full a little early.)
            moved = piece.size if piece.what in {"compaction", "sorting", "retention"} else 0
            progress.update(task, description=f"{piece.table}: {piece.what}", advance=moved)
            done.append(piece)
            progress.console.print(line_of(piece), highlight=False)
    return done


def _told_on(console: Console) -> Callable[[str, str], None]:
    """Says of each table once that it could not be maintained, when it is found out."""
    failed: set[str] = set()

    def tell(table: str, reason: str) -> None:
        if table not in failed:
            failed.add(table)
            console.print(f"{table:<18} not maintained: {reason}", highlight=False, markup=False, soft_wrap=True)

    return tell


def line_of(done: Done) -> str:
    """One piece of work as a line for people."""
    match done.what:
        case "compaction":
            sizes = f"{decimal(done.size)} to {decimal(done.size_after)}"
            told = f"{counted(done.files, 'file')} of {done.day} joined into one, {sizes}"
        case "sorting":
            told = f"{counted(done.rows, 'row')} of {done.day} sorted by group"
            if done.files:
                told += f", in place of {counted(done.files, 'file')} that had all groups"
        case "retention":
            gone = done.rows - done.rows_after
            told = f"{counted(gone, 'row')} of {done.day} deleted, {done.rows_after:,} stay"
        case "history":
            span = f"{done.day}" if done.hour is None else f"{done.hour:%Y-%m-%d %H:00}"
            told = f"{span} rolled up, {counted(done.rows_after, 'row')} from {done.rows:,}"
        case "advice":
            written = f"{counted(done.rows_after, 'row')} written" if done.rows_after else "some of its groups"
            told = f"{done.day} looked at for advice, {written}"
        case "vacuum":
            told = f"{counted(done.files, 'file')} deleted that no reader needs any more, {decimal(done.size)}"
        case _:
            told = f"checkpoint of the log after {counted(done.files, 'commit')}"
    return f"{done.table:<18} {told} ({done.seconds:.1f} s)"


def _summary(done: list[Done]) -> str:
    if not done:
        return "Nothing to do."
    parts = []
    if joined := [d for d in done if d.what == "compaction"]:
        parts.append(f"{counted(sum(d.files for d in joined), 'file')} joined into {len(joined):,}")
    if sorted_ := sum(d.rows for d in done if d.what == "sorting"):
        parts.append(f"{counted(sorted_, 'row')} sorted by group")
    if rolled := [d for d in done if d.what == "history" and d.hour is not None]:
        parts.append(f"{counted(len(rolled), 'hour')} rolled up")
    if advised := sum(d.what == "advice" and d.rows_after > 0 for d in done):
        parts.append(f"{counted(advised, 'day')} looked at for advice")
    if expired := [d for d in done if d.what == "retention"]:
        parts.append(f"{counted(sum(d.rows - d.rows_after for d in expired), 'row')} past their retention deleted")
    if vacuumed := [d for d in done if d.what == "vacuum"]:
        parts.append(f"{decimal(sum(d.size for d in vacuumed))} of disk freed")
    if not parts:
        parts.append("checkpoints written")
    return f"Done in {sum(d.seconds for d in done):.1f} s: {', '.join(parts)}."


def _show(found: list[Outlook], console: Console) -> None:
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for name, justify in (
        ("table", "left"),
        ("files", "right"),
        ("size", "right"),
        ("rows", "right"),
        ("keep", "right"),
        ("would be done", "left"),
    ):
        grid.add_column(name, justify=justify, no_wrap=name != "would be done")  # type: ignore[arg-type]
    for one in found:
        grid.add_row(
            one.table,
            f"{one.files:,}",
            decimal(one.size),
            f"{one.rows:,}",
            f"{one.keep_days} d",
            Text("; ".join(_would(one)) or "nothing"),
        )
    console.print(grid, highlight=False)


def _would(one: Outlook) -> list[str]:
    if one.refused:
        return [f"not maintained: this release does not know its columns {', '.join(map(visible, one.refused))}"]
    parts = []
    if one.expired_days:
        parts.append(
            f"delete {counted(one.expired_rows, 'row')} of {counted(one.expired_days, 'day')} "
            f"({decimal(one.expired_size)}), except for the present"
        )
    if one.compactions:
        parts.append(
            f"join {counted(one.compacted_files, 'file')} ({decimal(one.compacted_size)}) into {one.compactions:,}"
        )
    if one.sorted_files:
        parts.append(f"sort the rows of {counted(one.sorted_files, 'file')} by group ({decimal(one.sorted_size)})")
    if one.vacuumed_files:
        parts.append(f"vacuum {counted(one.vacuumed_files, 'file')} ({decimal(one.vacuumed_size)})")
    if one.checkpoint:
        parts.append("checkpoint the log")
    return parts


def _no_lake(lake: str) -> SetupError:
    message = f"There are no tables in {lake}: name the lake with --lake, or in the setting `lake`."
    return SetupError(message)
