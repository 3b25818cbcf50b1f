"""The tables of notes: appended by anybody at any time; mutes are followed by the alerter.

Job, alerter, server and people's commands write at the same time. Each row is one blind append, which Delta lets
through beside any other commit, and a note that was written twice (an answer of the store was lost) has one id.
"""

from __future__ import annotations

import getpass
import socket
import uuid
from dataclasses import asdict
from typing import Final

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from streaming.exceptions import SetupError
from streaming.notes.kinds import Mark, Mute, note_of
from streaming.tables import (
    NOTE_TABLES,
    VIEWS,
    DeltaLake,
    LakeReader,
    OpenedTable,
    append_created,
    table_named,
)
from streaming.terminal import printable
from streaming.times import day_of


def writer() -> str:
    """User and host of this process."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return printable(f"{user}@{socket.gethostname()}"[:120])


def new_id() -> str:
    """An id that no other note has."""
    return uuid.uuid4().hex[:12]


def write_note(lake: str, note: Mute | Mark, now: int, *, ended: bool = False) -> None:
    """Write a note.

    Args:
        lake: Folder or URI.
        note: A mute or a mark.
        now: By the writer's clock, ms.
        ended: The mute ends before its time.

    Raises:
        SetupError: There is no lake.
        LakeUnwritableError: The store cannot be written.
    """
    check_lake(lake)
    row = {**asdict(note), "ended": ended, "written_time": now, "event_date": day_of(now)}
    append_created(lake, NOTE_TABLES, table_named(note.table), [row])


def check_lake(lake: str) -> None:
    """Refuse a folder that is no lake, which is a typing mistake: a lake begins with the job.

    Nobody would read a note written there, and "no mutes" would be no answer.

    Raises:
        SetupError: There is no lake.
    """
    try:
        DeltaTable(DeltaLake(lake).path("rounds"))
    except TableNotFoundError:
        message = f"There is no lake in {printable(lake)} yet: name it with --lake, or EVENKEEL_LAKE."
        raise SetupError(message) from None


# (Without one of these columns a row is no mute.)
_MUTES: Final = (
    f"SELECT * FROM ({VIEWS['mutes_current']}) WHERE cluster = $cluster AND kind IS NOT NULL AND name IS NOT NULL "  # noqa: S608 - our own view
    "AND from_time IS NOT NULL AND until_time IS NOT NULL"
)


def clusters_of(lake: str, name: str) -> list[str]:
    """Names of the clusters that have a living group of this name, or a mute of this id."""
    check_lake(lake)
    sql = (
        "SELECT cluster FROM group_health_current WHERE group_id = $name UNION "
        "SELECT cluster FROM mutes_current WHERE mute_id = $name ORDER BY cluster"
    )
    return [row["cluster"] for row in LakeReader(lake).rows(sql, {"name": name})]


class NoteBook:
    """The mutes of one cluster, read again only when their table has changed. For one thread."""

    def __init__(self, lake: str, cluster: str) -> None:
        """Prepare; nothing is read yet."""
        self._cluster = cluster
        self._table = OpenedTable(lake, table_named(Mute.table))
        self._version: int | None = None
        self._known: tuple[Mute, ...] = ()

    def mutes(self) -> tuple[Mute, ...]:
        """Mutes that were not lifted, also those that are over.

        Raises:
            DeltaError, OSError, LakeUnreadableError: The table cannot be read now.
        """
        if self._table.refresh() and self._table.delta.version() != self._version:
            rows = self._table.ask(_MUTES, {"cluster": self._cluster}, beside_viewers=True)
            self._known = tuple(note_of(Mute, row) for row in rows)
            self._version = self._table.delta.version()
        return self._known
