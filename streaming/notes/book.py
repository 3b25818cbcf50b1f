"""The tables of notes: appended by anybody at any time, followed by alerter and server.

Job, alerter, server and people's commands write at the same time. Each row is one blind append, which Delta lets
through beside any other commit, and a note that was written twice (an answer of the store was lost) has one id.
"""

from __future__ import annotations

import getpass
import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from streaming.exceptions import SetupError
from streaming.notes.kinds import Mark, Mute
from streaming.tables import (
    NOTE_TABLES,
    VIEWS,
    DeltaLake,
    all_rows,
    append_once,
    in_memory,
    named_to_arrow,
    patiently,
    table_named,
)
from streaming.terminal import printable
from streaming.times import DAY_MS, epoch_ms


@dataclass(frozen=True, slots=True)
class Wrote:
    """Who writes a note, and when.

    Attributes:
        by: User and host, or "api".
        now: By their clock, ms.
    """

    by: str
    now: int

    @classmethod
    def here(cls, now: int) -> Wrote:
        """The user of this process."""
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            user = "unknown"
        return cls(printable(f"{user}@{socket.gethostname()}"[:120]), now)


def new_id() -> str:
    """An id that no other note has."""
    return uuid.uuid4().hex[:12]


def write_mute(lake: str, mute: Mute, now: int) -> None:
    """Write a mute (`now` in ms).

    Raises:
        SetupError: There is no lake.
        LakeUnwritableError: The store cannot be written.
    """
    _append(lake, "mutes", {**_mute_row(mute), "ended": False, "written_time": now})


def lift(lake: str, mute: Mute, wrote: Wrote) -> None:
    """End a mute before its time; raises as `write_mute`."""
    _append(lake, "mutes", {**_mute_row(mute), "made_by": wrote.by, "ended": True, "written_time": wrote.now})


def write_mark(lake: str, mark: Mark, now: int) -> None:
    """Write a mark (`now` in ms); raises as `write_mute`."""
    row = {
        "mark_id": mark.mark_id,
        "cluster": mark.cluster,
        "text": mark.text,
        "group_id": mark.group_id,
        "made_by": mark.made_by,
        "mark_time": mark.time,
        "written_time": now,
    }
    _append(lake, "marks", row)


def _mute_row(mute: Mute) -> dict[str, Any]:
    return {
        "mute_id": mute.mute_id,
        "cluster": mute.cluster,
        "kind": mute.kind,
        "name": mute.name,
        "reason": mute.reason,
        "made_by": mute.made_by,
        "from_time": mute.since,
        "until_time": mute.until,
        "repeat_ms": mute.repeat_ms,
    }


def check_lake(lake: str) -> None:
    """Refuse a folder that is no lake, which is a typing mistake: a lake begins with the job.

    (Nobody would read a note written there, and "no mutes" would be no answer.)

    Raises:
        SetupError: There is no lake.
    """
    try:
        DeltaTable(DeltaLake(lake).path("rounds"))
    except TableNotFoundError:
        message = f"There is no lake in {printable(lake)} yet: name it with --lake, or EVENKEEL_LAKE."
        raise SetupError(message) from None


def _append(lake: str, name: str, row: Mapping[str, Any]) -> None:
    check_lake(lake)
    to = DeltaLake(lake)

    def attempt() -> bool:
        to.create(NOTE_TABLES)
        rows = named_to_arrow(table_named(name), [{**row, "event_date": row["written_time"] // DAY_MS}])
        return append_once(DeltaTable(to.path(name)), rows, lambda: False)

    patiently(to.path(name), attempt)


class NoteBook:
    """The notes of one cluster, read again only when their table has changed. For one thread."""

    def __init__(self, lake: str, cluster: str) -> None:
        """Prepare; nothing is read yet."""
        self._lake = DeltaLake(lake)
        self._cluster = cluster
        self._tables: dict[str, DeltaTable] = {}
        self._versions: dict[str, int] = {}
        self._mutes: tuple[Mute, ...] = ()
        self._marks: tuple[Mark, ...] = ()

    def mutes(self) -> tuple[Mute, ...]:
        """Mutes that were not lifted, also those that are over.

        Raises:
            DeltaError, OSError, LakeUnreadableError: The table cannot be read now.
        """
        rows = self._changed("mutes")
        if rows is not None:
            self._mutes = tuple(
                Mute(
                    row["mute_id"],
                    row["cluster"],
                    row["kind"] or "",
                    row["name"] or "",
                    row["reason"] or "",
                    row["made_by"] or "",
                    epoch_ms(row["from_time"]),
                    epoch_ms(row["until_time"]),
                    row["repeat_ms"],
                )
                for row in rows
                if row["from_time"] is not None and row["until_time"] is not None
            )
        return self._mutes

    def marks(self) -> tuple[Mark, ...]:
        """Marks, the oldest first; raises as `mutes`."""
        rows = self._changed("marks")
        if rows is not None:
            found = (
                Mark(
                    row["mark_id"],
                    row["cluster"],
                    row["text"] or "",
                    row["group_id"],
                    row["made_by"] or "",
                    epoch_ms(row["mark_time"]),
                )
                for row in rows
                if row["mark_time"] is not None
            )
            self._marks = tuple(sorted(found, key=lambda mark: mark.time))
        return self._marks

    def _changed(self, name: str) -> Sequence[Mapping[str, Any]] | None:
        """The cluster's rows of a table; None while it is the same as before, or not there."""
        table = self._tables.get(name)
        if table is None:
            try:
                table = self._tables[name] = DeltaTable(self._lake.path(name))
            except TableNotFoundError:
                return None
        else:
            table.update_incremental()
        version = table.version()
        if version == self._versions.get(name):
            return None
        with in_memory() as connection:
            connection.register(name, all_rows(table_named(name), table, self._lake.path(name)))
            sql = f"SELECT * FROM ({VIEWS[f'{name}_current']}) WHERE cluster = ?"  # noqa: S608 - our own view
            rows: list[dict[str, Any]] = connection.sql(sql, params=[self._cluster]).to_arrow_table().to_pylist()
        self._versions[name] = version
        return rows
