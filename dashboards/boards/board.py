"""What a board is: one address, one template, and the function that fills it from the rows of its queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.address import Address
from dashboards.boards.archive import Archive
from dashboards.lake import PageLake, since
from streaming.config import Owner, owner_of
from streaming.terminal import age

__all__ = ["HEALTH", "Board", "Clock", "NotThereError", "Row", "View"]

Row = Mapping[str, Any]

HEALTH: Final = {3: "critical", 2: "warning", 1: "unknown", 0: "ok", -1: "no members"}
"""Words for the column `health` of groups.sql."""


class NotThereError(Exception):
    """The address names something that is not there; the text is one sentence."""


class Clock(words.Clock):
    """Times as marks that the template turns into `<time>`: the browser knows the viewer's zone, the server does not.

    So one rendering serves all viewers. A mark is two private characters around the time; `visible` escapes those in
    names, so no name can pass for one.
    """

    def time(self, moment: datetime | None, *, exact: bool = True) -> str:
        """A mark for a time of day."""
        return words.DASH if moment is None else mark(moment, "s" if exact else "m")

    def whole(self, moment: datetime | None) -> str:
        """The full moment as text, in UTC: the browser adds the viewer's own."""
        return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"

    def ago(self, moment: datetime | None) -> str:
        """How long ago: "3 min ago"."""
        return words.DASH if moment is None else f"{age(self.now - moment)} ago"


def mark(moment: datetime, style: str) -> str:
    """A time as the mark that `markup.said` turns into `<time>`."""
    return f"\ue000{int(moment.timestamp() * 1000)}{style}\ue001"


@dataclass(frozen=True, slots=True)
class View:
    """One rendering of one board.

    Attributes:
        lake: The present, and the past that is held in memory.
        archive: Everything else, read when asked for.
        now: Time of the rendering.
        address: What was asked for.
        owners: Teams and their groups.
    """

    lake: PageLake
    archive: Archive
    now: datetime
    address: Address
    owners: Sequence[Owner] = field(default=())

    @property
    def clock(self) -> Clock:
        """The clock of the rendering."""
        return Clock(self.now, UTC, self.lake.past)

    @property
    def since(self) -> datetime:
        """Beginning of the past that is held in memory."""
        return since(self.lake.past, self.now)

    @property
    def cluster(self) -> str | None:
        """The chosen cluster; None for all."""
        return self.address.text("cluster") or None

    def ask(self, query: str, **parameters: Any) -> list[dict[str, Any]]:
        """Rows of a query over what is held in memory."""
        return self.lake.ask(query, parameters)

    def groups(self, cluster: str | None = None) -> list[dict[str, Any]]:
        """The living groups of a cluster, or of all."""
        return self.ask("groups", cluster=cluster, group_id=None, imbalance=self.lake.thresholds.imbalance)

    def owner(self, group: str) -> str:
        """The team that owns a group; "" when no entry names it."""
        return owner_of(group, self.owners) or ""


@dataclass(frozen=True, slots=True)
class Board:
    """One board.

    Attributes:
        path: Its address: fixed segments, and names in braces for any segment.
        template: File in `templates/boards/`.
        fill: Values for the template. It raises NotThereError and WrongAddressError.
        title: Title of the browser's window; `{name}` stands for a segment.
        word: Its word in the navigation; "" keeps it out.
        parameters: Names of the query that it reads, beside `cluster`.
    """

    path: tuple[str, ...]
    template: str
    fill: Callable[[View], Mapping[str, Any]]
    title: str
    word: str = ""
    parameters: frozenset[str] = frozenset()

    def fits(self, path: tuple[str, ...]) -> bool:
        """Whether an address is this board's."""
        return len(path) == len(self.path) and all(
            own.startswith("{") or own == given for own, given in zip(self.path, path, strict=True)
        )
