"""What a board is: an address, a template, and the function that fills it from the rows of its queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from dashboards import format as words
from dashboards.format import Clock, Row
from dashboards.lake import PageLake, since
from dashboards.page.address import Address, RefusedError
from dashboards.page.archive import Archive
from dashboards.query import history_queries, queries
from dashboards.spans import LIVE, MINUTE, RANGES, Range
from streaming.config import Owner, owner_of
from streaming.tables import computed

HEALTH: Final = {3: "critical", 2: "warning", 1: "unknown", 0: "ok", -1: "no members"}
"""Words for the column `health` of groups.sql."""

TIMES: Final = frozenset({"range", "from", "to"})
"""Parameters of a board that shows a time."""

# The beginning of the past in memory moves on while the page is looked at.
_SLACK: Final = timedelta(minutes=2)

# People scan a hundred rows; a thousand still scroll well, and make a page of half a megabyte.
_SHOWN: Final = ("100", "1000")


class NotThereError(RefusedError):
    """The address names something that is not there."""


@dataclass(frozen=True, slots=True)
class View:
    """One rendering of one board. The macros of the templates ask it, too.

    Attributes:
        lake: The present, and the past that is held in memory.
        archive: Everything else, read when asked for.
        now: Time of the rendering.
        address: What was asked for.
        owners: Teams and their groups.
        rules_file: The alert rules; None finds them as the alerter does.
        unread: Queries that are still being read.
    """

    lake: PageLake
    archive: Archive
    now: datetime
    address: Address
    owners: Sequence[Owner] = field(default=())
    rules_file: Path | None = None
    unread: set[str] = field(default_factory=set)

    @property
    def clock(self) -> Clock:
        """The clock of the rendering."""
        return Clock(self.now, self.lake.past)

    @property
    def span(self) -> Range:
        """The time that the address asks for."""
        return self.address.range(self.now)

    @property
    def compared(self) -> bool:
        """Whether the time before is asked for, too."""
        return self.address.one_of("compare", ("before",)) == "before"

    @property
    def cluster(self) -> str | None:
        """The chosen cluster; None for all."""
        return self.address.text("cluster") or None

    @property
    def clusters(self) -> list[str]:
        """The watched clusters, also those without a round yet."""
        return sorted(row["cluster"] for name in ("rounds", "unstarted") for row in self.rows(name))

    @property
    def most(self) -> int:
        """Most rows of a long table."""
        return int(self.address.one_of("most", _SHOWN) or _SHOWN[0])

    @property
    def everything(self) -> str:
        """The link to this board without any choice; "" where nothing is chosen."""
        chosen = self.address.given.keys() - {"sort", "most", "compare", *TIMES}
        if chosen:
            return self.address.link(*self.address.path)
        return ""

    def rows(self, name: str, span: Range | None = None, **given: Any) -> list[dict[str, Any]]:
        """Rows of a query: from memory, or from the lake where the query or the span is of history.

        Args:
            name: The query.
            span: The time that it asks for, as `since` and `until`; None for what is held in memory.
            given: Other parameters; `cluster` is the chosen one, `group_id` all where they are not given.

        Returns:
            The rows; none while they are still being read, which `unread` says then.
        """
        asked = self._asked(name, span, given)
        if name in queries() and (span is None or self.in_memory(span)):
            return self.lake.ask(name, asked)
        found = self.archive.ask(name, **asked)
        if found is None:
            self.unread.add(name)
        return found or []

    def columns(self, name: str, **given: Any) -> pa.Table:
        """Rows of a query of what is held in memory, as columns: for queries with a row of every group."""
        return self.lake.ask_columns(name, self._asked(name, None, given))

    def _asked(self, name: str, span: Range | None, given: Mapping[str, Any]) -> dict[str, Any]:
        query = queries().get(name) or history_queries()[name]
        known = {
            "cluster": self.cluster,
            "group_id": None,
            "since": since(self.lake.past, self.now),
            "imbalance": self.lake.thresholds.imbalance,
        }
        if span is not None:
            asked = span.whole(MINUTE)
            known |= {"since": asked.begin, "until": asked.end}
        return {name: value for name, value in known.items() if name in query.parameters} | dict(given)

    def newest(self, name: str, step: timedelta, **given: Any) -> list[dict[str, Any]]:
        """Rows of a query of history up to now; those of a step ago, if they are known, while the newest are read."""
        found = self.archive.ask(name, **given)
        if found is None:
            earlier = {"since": given["since"] - step, "until": given["until"] - step}
            found = self.archive.known(name, **{**given, **earlier})
        if found is None:
            self.unread.add(name)
        return found or []

    def in_memory(self, span: Range) -> bool:
        """Whether all of a span is held in memory."""
        return span.begin >= self.now - self.lake.past - _SLACK

    def newest_round(self, cluster: str) -> datetime:
        """Time of a cluster's newest round; never later than now, because a broker's clock may be ahead."""
        times: list[datetime] = [row["round_time"] for row in self.rows("rounds") if row["cluster"] == cluster]
        return min([self.now, *times])

    def owner(self, group: str) -> str:
        """The team that owns a group; "" when no entry names it."""
        return owner_of(group, self.owners) or ""

    def owned(self, rows: Iterable[Row]) -> list[Row]:
        """The rows of the chosen owner's groups; all where none is chosen."""
        owner = self.address.text("owner")
        return [row for row in rows if not owner or self.owner(row["group_id"]) == owner]

    def group(self, row: Row, *path: str) -> str:
        """The link to a row's group; "" where the row is of none."""
        group = row["group_id"]
        if group:
            return self.address.link("groups", group, *path, cluster=row["cluster"])
        return ""

    def decision(self, row: Row, number: int) -> str:
        """The link to a decision of a row's group."""
        return self.group(row, "decisions", str(number))

    def ordered(self, rows: Sequence[Row], sorts: Mapping[str, tuple[str, bool]]) -> list[Row]:
        """Rows by the column that `sort` names, which may be descending; those without a value last."""
        word = self.address.one_of("sort", sorts)
        if not word:
            return list(rows)
        column, largest = sorts[word]
        known = sorted((row for row in rows if row[column] is not None), key=lambda row: row[column], reverse=largest)
        return [*known, *(row for row in rows if row[column] is None)]

    def chips(
        self, name: str, values: Iterable[str], counts: Mapping[str, int] | None = None, *, first: str = ""
    ) -> list[dict[str, Any]]:
        """Choices of a parameter, for the macro `chosen`: each is a link to this address with the parameter changed.

        Args:
            name: The parameter. A chosen value that is no choice is listed as well, so that it can be removed.
            values: What it can be.
            counts: How many rows each value has.
            first: What holds where nothing is chosen; "" for all.
        """
        chosen = self.address.text(name) or first
        return [
            {
                "word": value,
                "chosen": value == chosen,
                "href": self.address.here(**{name: None if value in {chosen, first} else value}),
                "n": None if counts is None else counts.get(value, 0),
            }
            for value in dict.fromkeys([*values, *([chosen] if chosen else [])])
        ]

    def cluster_chips(self) -> list[dict[str, Any]]:
        """The watched clusters; nothing where there is only one to choose."""
        clusters = self.clusters
        if len(clusters) > 1 or self.cluster:
            return self.chips("cluster", clusters)
        return []

    def owner_chips(self, groups: Iterable[str]) -> list[dict[str, Any]]:
        """The teams of some groups, by their ids, with how many each has; nothing where no team is configured."""
        counts = Counter(self.owner(group) for group in groups) if self.owners else Counter[str]()
        if self.owners:
            return self.chips("owner", sorted(name for name in counts if name), counts)
        return []

    def range_chips(self) -> list[dict[str, Any]]:
        """The spans before now."""
        return [
            {"word": name, "chosen": name == self.span.name, "href": self.address.here(range=name, from_=None, to=None)}
            for name in RANGES
        ]

    def meant(self, rows: Callable[[str | None], Sequence[Row]], column: str) -> Sequence[Row]:
        """Rows of the name that the address has, or whose digest it has; `rows` as of `named`."""
        asked = self.address.path[1]
        found = rows(asked)
        if not found and asked.startswith(words.DIGEST):
            found = [row for row in rows(None) if words.key_of(row[column]) == asked]
        return found

    def named(self, rows: Callable[[str | None], Sequence[Row]], kind: str) -> Row:
        """The living group or topic that the address names.

        Args:
            rows: Rows of all that may be meant; of one name, or of all names with None.
            kind: group or topic.

        Raises:
            NotThereError: There is none, or several clusters have one.
        """
        asked, found = self.address.path[1], self.meant(rows, "group_id" if kind == "group" else kind)
        if not found:
            where = f" in {words.cut(self.cluster)}" if self.cluster else ""
            what = "active group" if kind == "group" else kind
            message = (
                f"No {what} is called {words.cut(asked, 120)}{where}: it was deleted, is not watched, or never was."
            )
            raise NotThereError(message)
        if len(found) > 1:
            clusters = ", ".join(words.cut(row["cluster"]) for row in found)
            message = f"Several clusters have this {kind} ({clusters}): add ?cluster= and a name to the address."
            raise NotThereError(message)
        return found[0]


def key(row: Row) -> tuple[str, str]:
    """Cluster and id of a row's group."""
    return row["cluster"], row["group_id"]


def rows_of(table: pa.Table, *columns: str) -> list[dict[str, Any]]:
    """Some columns as rows."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*(table[c].to_pylist() for c in columns), strict=True)]


def name_of(row: Row) -> dict[str, Any]:
    """Cluster and id of a row's group, as parameters."""
    return {"cluster": row["cluster"], "group_id": row["group_id"]}


def by_group(rows: Iterable[Row]) -> dict[tuple[str, str], Row]:
    """Rows by cluster and group."""
    return {key(row): row for row in rows}


def total(rows: Iterable[Row], column: str) -> Any:
    """The sum of a column where it is known; None where it is of no row."""
    known = [row[column] for row in rows if row[column] is not None]
    if known:
        return sum(known)
    return None


def grouped(rows: Sequence[Row], sql: str, **given: object) -> list[dict[str, Any]]:
    """Rows of a query put together by another one, which calls them `found`.

    For what no query can put together by itself, because the rows were chosen by owner, which is in no table.

    Args:
        rows: The rows; without one there is none.
        sql: The query; columns that all rows lack are NULL.
        given: Its parameters by name.
    """
    if not rows:
        return []
    found: list[dict[str, Any]] = computed({"found": pa.Table.from_pylist([*rows])}, sql, given).to_pylist()
    return found


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
