"""The notes that people leave: marks of what they did, and mutes, while which nothing is sent about some alerts.

A mute hides no transition, only its delivery: what still fires when the mute ends is delivered then. The tables are
appended by anybody at any time; mutes are followed by the alerter.

Job, alerter, server and people's commands write at the same time. Each row is one blind append, which Delta lets
through beside any other commit, and a note that was written twice (an answer of the store was lost) has one id.
"""

from __future__ import annotations

import getpass
import socket
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, ClassVar, Final, TypeVar

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from streaming.config import fits
from streaming.exceptions import SetupError
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
from streaming.times import DAY_MS, day_of, epoch_ms

LONGEST_TEXT: Final = 200
"""Characters of a mark's text: a line in a chart and in a message. Longer ones are refused, not cut."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark.

    Attributes:
        mark_id: Its id.
        cluster: The cluster.
        text: What was done.
        group_id: The group that it concerns; None for the whole cluster.
        made_by: User and host, or "api".
        mark_time: When it was done, ms.
    """

    table: ClassVar[str] = "marks"

    mark_id: str
    cluster: str
    text: str
    group_id: str | None
    made_by: str
    mark_time: int


GROUP: Final = "group"
RULE: Final = "rule"
OWNER: Final = "owner"
SEVERITY: Final = "severity"

KINDS: Final = (GROUP, RULE, OWNER, SEVERITY)

REPEATS_MS: Final = {"day": DAY_MS, "week": 7 * DAY_MS}
"""How often a mute may begin again. Days and weeks of UTC: where clocks are set, it begins an hour earlier or later."""

LONGEST_MS: Final = 366 * DAY_MS
"""A mute for longer is a rule that should be removed; rows of mutes are kept for 400 days."""


@dataclass(frozen=True, slots=True)
class Mute:
    """One mute.

    Attributes:
        mute_id: Its id.
        cluster: Whose alerts.
        kind: GROUP, RULE, OWNER or SEVERITY.
        name: Name of the group, rule, team or severity; of groups also a regular expression between slashes.
        reason: Why, as written.
        made_by: User and host.
        from_time: When it begins for the first time, ms.
        until_time: When it ends for the first time, ms.
        repeat_ms: It begins again this often, for a year; None for once.
    """

    table: ClassVar[str] = "mutes"

    mute_id: str
    cluster: str
    kind: str
    name: str
    reason: str
    made_by: str
    from_time: int
    until_time: int
    repeat_ms: int | None = None

    @property
    def over_at(self) -> int:
        """When it ends for the last time, ms."""
        if self.repeat_ms is None:
            return self.until_time
        return self.from_time + LONGEST_MS

    def holds_until(self, now: int) -> int | None:
        """When the mute ends that holds at a moment, ms; None when none does."""
        if not self.from_time <= now < self.over_at:
            return None
        passed = now - self.from_time
        begun = passed if self.repeat_ms is None else passed % self.repeat_ms
        length = self.until_time - self.from_time
        if begun < length:
            return now - begun + length
        return None

    def covers(self, rule: str, severity: str, group: str | None, owner: str | None) -> bool:
        """Whether it mutes an alert of a rule about a group (None: the cluster) that a team owns (None: nobody)."""
        if self.kind in {RULE, SEVERITY}:
            return self.name == (rule if self.kind == RULE else severity)
        if self.kind == OWNER:
            return owner is not None and self.name == owner
        # A pattern in the table may be anybody's: one that does not compile matches nothing.
        try:
            return group is not None and fits(group, self.name)
        except ValueError:
            return False


MuteOrMark = TypeVar("MuteOrMark", Mute, Mark)


def note_of(kind: type[MuteOrMark], row: Mapping[str, Any]) -> MuteOrMark:
    """A mute or a mark of its row, in which the columns that it needs are not NULL."""
    given: dict[str, Any] = {one.name: row[one.name] for one in fields(kind)}
    given |= {name: epoch_ms(value) for name, value in given.items() if isinstance(value, datetime)}
    return kind(**given)


def muting(
    mutes: Iterable[Mute], now: int, rule: str, severity: str, group: str | None, owner: str | None
) -> tuple[Mute, int] | None:
    """The mute that holds back an alert now (ms), and when it ends, ms; the last to end where several do."""
    holding = [
        (mute, until)
        for mute in mutes
        if (until := mute.holds_until(now)) is not None and mute.covers(rule, severity, group, owner)
    ]
    return max(holding, key=lambda one: one[1], default=None)


def whole(mute: Mute) -> str:
    """What a mute is about: "group billing"."""
    return f"{mute.kind} {mute.name}"


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


# Without one of these columns a row is no mute.
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
