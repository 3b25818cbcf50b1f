"""`evenkeel maintain --forget NAME`: delete everything of a cluster that is watched no more.

Rows are deleted a table and a day at a time, so that no more than the files of one day are rewritten at once. Followers
of the tables skip these commits, as those of retention: nothing in them is new.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from deltalake import CommitProperties
from rich.console import Console

from streaming.catalog import forget_record, recorded_clusters
from streaming.config import Settings, checkpoint_of
from streaming.exceptions import SetupError
from streaming.maintain.pieces import one_sentence
from streaming.process import JOB, MAINTAINER, holder_of, only_one
from streaming.stores import on_object_store
from streaming.tables import ALL_TABLES, DAY, RETENTION_COMMIT, LakeReader, OpenedTable, Table
from streaming.terminal import counted, printable, say

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
