"""`evenkeel maintain`: a lake's maintenance from outside, beside a running job; and what only people decide.

`--repair` takes data files that are gone out of their tables, so that the others can be read. Their rows are lost by
then; the commit only says so. A file that is gone because a disk or a bucket is not there must not be forgotten for
good, so a table of which every file is gone is refused.

`--forget NAME` deletes everything of a cluster that is watched no more, a table and a day at a time, so
that no more than the files of one day are rewritten at once. Followers of the tables skip these commits, as those of
retention: nothing in them is new.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from contextlib import nullcontext
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from deltalake import CommitProperties
from rich.console import Console
from rich.filesize import decimal

from streaming.catalog import forget_record, recorded_clusters
from streaming.config import Settings, checkpoint_of
from streaming.exceptions import SetupError
from streaming.maintain.engines import Done, delta_spark, one_sentence
from streaming.maintain.maintainer import maintainer_of
from streaming.process import JOB, MAINTAINER, holder_of, only_one
from streaming.stores import on_object_store
from streaming.tables import ALL_TABLES, DAY, RETENTION_COMMIT, TABLES, LakeReader, OpenedTable, Table, note_lost
from streaming.terminal import counted, printable, say


def maintain(settings: Settings, console: Console, *, with_spark: bool = False, master: str | None = None) -> None:
    """Maintain a lake until nothing is left to do, and say what was done.

    Args:
        settings: All settings.
        console: Where it is said.
        with_spark: Spark compacts and vacuums.
        master: Its master, as of `delta_spark`.

    Raises:
        SetupError: There is no lake, a setting names no table, another maintainer is at work, or Spark cannot start.
        MaintenanceError: A table could not be maintained, or several; all others are. Each failure has been printed.
    """
    lake = settings.lake
    if "://" not in lake and not any((Path(lake) / table.name).is_dir() for table in ALL_TABLES):
        message = f"There are no tables in {lake}: name the lake with --lake, or in the setting `lake`."
        raise SetupError(message)

    with (
        only_one(MAINTAINER, lake, None) as check,
        delta_spark(master, lake) if with_spark else nullcontext() as engine,
    ):
        for piece in maintainer_of(settings, engine).work():
            check()
            say(console, line_of(piece))
        say(console, "Nothing else is due.")


def line_of(done: Done) -> str:
    """One piece of work as a line for people."""
    if done.failure:
        return f"{done.table:<18} not maintained: {done.failure}"
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


_FRESH: Final = timedelta(minutes=30)
"""A cluster that nobody has closed is watched while its newest round is younger: rounds may come minutes apart."""


def forget(settings: Settings, names: Collection[str], cluster: str, console: Console) -> None:
    """Delete the rows, the checkpoint and the bus of a cluster, and say how many rows.

    Args:
        settings: Settings of any cluster of the lake.
        names: Names of all clusters of the settings file.
        cluster: The cluster.
        console: Where it is said.

    Raises:
        SetupError: It is watched, or the lake has nothing of it, or another maintainer is at work.
        MaintenanceError: A table could not be written; asking again goes on.
    """
    lake = settings.lake
    recorded = recorded_clusters(lake)
    if cluster not in recorded:
        known = ", ".join(map(printable, sorted(recorded)))
        message = f"The lake {lake} has no cluster named {printable(cluster)}: it has {known}."
        raise SetupError(message)
    if watched := _why_watched(lake, names, cluster, is_closed=recorded[cluster].closed):
        message = f"The cluster {printable(cluster)} is watched ({watched}): remove its entry first, and try again."
        raise SetupError(message)
    with only_one(MAINTAINER, lake, None):
        forget_record(lake, cluster)
        for table in ALL_TABLES:
            if table.name != "clusters" and (rows := _delete(lake, table, cluster)):
                say(console, f"{table.name}: {counted(rows, 'row')} deleted")
    _delete_folders(settings, cluster, console)
    say(console, f"The cluster {cluster} is forgotten. Files go when vacuum finds that no reader needs them any more.")


def _why_watched(lake: str, names: Collection[str], cluster: str, *, is_closed: bool) -> str | None:
    if cluster in names:
        return "the settings file has it"
    if holder := holder_of(JOB, lake, cluster):
        return f"its job is {holder}"
    if is_closed:
        return None
    sql = "SELECT max(round_time) AS newest FROM rounds WHERE cluster = $cluster"
    newest: datetime | None = LakeReader(lake).rows(sql, {"cluster": cluster})[0]["newest"]
    if newest is not None and datetime.now(UTC) - newest < _FRESH:
        return f"its newest round is of {newest:%Y-%m-%d %H:%M:%S} UTC"
    return None


def _delete(lake: str, table: Table, cluster: str) -> int:
    """Delete a cluster's rows from one table; returns how many."""
    opened = OpenedTable(lake, table)
    with one_sentence(opened.uri):
        if not opened.refresh():
            return 0
        mark = CommitProperties(custom_metadata=dict(RETENTION_COMMIT))
        days = {file.day for file in opened.files(cluster=cluster)}
        wheres = [_of_day(table, day) for day in sorted(days, key=str)]
        own = "cluster = '" + cluster.replace("'", "''") + "'"
        found: list[dict[str, Any]] = [opened.delta.delete(own + where, commit_properties=mark) for where in wheres]
    return sum(metrics["num_deleted_rows"] or 0 for metrics in found)


def _of_day(table: Table, day: date | None) -> str:
    if DAY not in table.partition_by:
        return ""
    if day is None:
        return f" AND {DAY} IS NULL"
    return f" AND {DAY} = '{day}'"


def _delete_folders(settings: Settings, cluster: str, console: Console) -> None:
    """Delete the folders of the job's state, and of the bus where that is one, where they are beside the tables."""
    if on_object_store(settings.lake):
        say(
            console,
            "If job.checkpoint of its entry named a place for the job's state, delete that as well, and if "
            f"{settings.lake}/_bus has its name, that.",
        )
        return
    job = settings.job.model_copy(update={"checkpoint": None})
    checkpoint = Path(checkpoint_of(settings.model_copy(update={"cluster": cluster, "job": job})))
    for folder in (checkpoint, Path(settings.lake) / "_bus" / cluster):
        if folder.is_dir():
            shutil.rmtree(folder)
            say(console, f"{folder} deleted")
