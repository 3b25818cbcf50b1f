"""What a board is: one address, one template, and the function that fills it from the rows of its queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from dashboards.format import Clock, Row
from dashboards.lake import PageLake, since
from dashboards.page.address import Address
from dashboards.page.archive import Archive
from dashboards.page.rules import RulesFile
from dashboards.spans import LIVE
from streaming.config import Owner, owner_of

__all__ = ["HEALTH", "Board", "Clock", "NotThereError", "Row", "View"]


HEALTH: Final = {3: "critical", 2: "warning", 1: "unknown", 0: "ok", -1: "no members"}
"""Words for the column `health` of groups.sql."""


class NotThereError(Exception):
    """The address names something that is not there; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class View:
    """One rendering of one board.

    Attributes:
        lake: The present, and the past that is held in memory.
        archive: Everything else, read when asked for.
        now: Time of the rendering.
        address: What was asked for.
        owners: Teams and their groups.
        rules: The alert rules.
    """

    lake: PageLake
    archive: Archive
    now: datetime
    address: Address
    owners: Sequence[Owner] = field(default=())
    rules: RulesFile = field(default_factory=RulesFile)

    @property
    def clock(self) -> Clock:
        """The clock of the rendering."""
        return Clock(self.now, self.lake.past)

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
        span: The span that it shows where the address asks for none.
    """

    path: tuple[str, ...]
    template: str
    fill: Callable[[View], Mapping[str, Any]]
    title: str
    word: str = ""
    parameters: frozenset[str] = frozenset()
    span: str = LIVE

    def fits(self, path: tuple[str, ...]) -> bool:
        """Whether an address is this board's."""
        return len(path) == len(self.path) and all(
            own.startswith("{") or own == given for own, given in zip(self.path, path, strict=True)
        )
