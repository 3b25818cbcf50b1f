"""The server's view of the lake: one per process, updated by a thread, shared by page, metrics and API.

Viewers are served from memory; the lake is read once, however many viewers there are.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

import pyarrow as pa

from dashboards.query import Query, columns_read, queries, question
from streaming.config import Thresholds
from streaming.exceptions import EvenkeelError
from streaming.tables import ALL_TABLES, TableCache, Wanted, reach_of, reach_of_living

_log = logging.getLogger(__name__)

# Time between two clean-ups of the memory. Each rebuilds the tables of the past, which takes a second or two for a day
# of a thousand groups.
_TIDY_EVERY_S = 1800.0

# A lake that cannot be read is tried again after this time.
_AGAIN_S = 5.0

# A poll that takes longer hangs: the first poll of a lake of ten thousand groups takes half a minute.
_LONGEST_POLL_S = 300.0

# Limit of cached answers: all panels of a few dozen viewers.
_MOST_ANSWERS = 512


# Two synchronised clocks differ by less than this.
_APART_S = 120.0

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class _Newest:
    """A cluster's newest round: its number, when it was read (steady time), and its age at that moment in s."""

    round: int
    at: float
    age_s: float


class PageLake:
    """Answers to the panels' queries.

    Attributes:
        past: How far back charts and timelines go.
        thresholds: The alert rules' thresholds, by which the page chooses colours.
        reach: A living group, and each of its partitions, has a row within this time before the newest round.
    """

    def __init__(
        self,
        root: str,
        past: timedelta,
        heartbeat: timedelta,
        refresh: timedelta,
        thresholds: Thresholds | None = None,
        steady: Callable[[], float] = time.monotonic,
        more: Mapping[str, Query] | None = None,
        changed: Callable[[], None] = lambda: None,
        spans: Mapping[str, timedelta] | None = None,
        again_s: float = _AGAIN_S,
    ) -> None:
        """Prepare; `start` begins to read.

        Args:
            root: Folder or URI of the lake.
            past: How far back charts and timelines go.
            heartbeat: How often the job repeats rows that do not change (`job.heartbeat_ms`).
            refresh: Time between two polls for new files.
            thresholds: The alert rules' thresholds, by which the page chooses colours; None for the defaults.
            steady: A clock in seconds that no adjustment of the system time moves.
            more: Queries that may be asked beside the page's own.
            changed: Called in the thread after each poll.
            spans: How far back the past of a table goes, where it is not `past`.
            again_s: A lake that cannot be read is tried again after this time.
        """
        self.past = past
        self.thresholds = thresholds or Thresholds()
        self._steady = steady
        self._rounds: dict[str, _Newest] = {}
        self.reach = reach_of_living(heartbeat)
        # One sentence by what failed. Each step takes back only its own: else what one says would be gone, for a moment
        # in every cycle, because another one works.
        self._troubles: dict[str, str] = {}
        self._refresh_s = refresh.total_seconds()
        self._again_s = again_s
        self._queries = {**queries(), **(more or {})}
        self._changed = changed
        self._cache = TableCache(root, _wanted(self._queries, past, heartbeat, spans or {}), past)
        self._version = 0
        self._answers: dict[tuple[Any, ...], Any] = {}
        self._lock = threading.Lock()
        self._read = False
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lake", daemon=True)
        self._files = 0
        self._busy_since: float | None = None

    def start(self) -> None:
        """Begin to read, in a thread that ends with the process."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """End the thread, and wait that long for it: it may be in a read that takes longer."""
        self._end.set()
        self._thread.join(seconds)

    @property
    def problem(self) -> str | None:
        """One sentence while the lake cannot be read; answers then come from the rows read before."""
        return next(iter(self._troubles.values()), None)

    def _tell(self, step: str, trouble: str | None) -> None:
        # Other threads read it meanwhile, so it is replaced, not changed.
        others = {name: told for name, told in self._troubles.items() if name != step}
        self._troubles = others if trouble is None else {**others, step: trouble}

    @property
    def lives(self) -> bool:
        """Whether the thread runs and does not hang."""
        since = self._busy_since
        hangs = since is not None and self._steady() - since > _LONGEST_POLL_S
        return self._thread.is_alive() and not hangs

    @property
    def followed(self) -> bool:
        """Whether it lives, and the lake can be read."""
        return self.lives and self.problem is None

    @property
    def present(self) -> bool:
        """Whether the newest rows of everything that lives were read."""
        return self._read and not self._cache.present_behind

    @property
    def version(self) -> int:
        """Grows with every change of what is known."""
        return self._version

    @property
    def unread(self) -> float:
        """Unread share of the files that existed at the start, 0 to 1."""
        if self._files:
            return self._cache.behind / self._files
        return 0.0

    def ask(self, name: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The rows of a query. Callers share the list until something changes, so do not modify it."""
        given = dict(parameters or {})
        return self._answer(question(name, given), lambda: self._cache.rows(self._queries[name].duckdb, given))

    def ask_columns(self, name: str, parameters: Mapping[str, Any]) -> pa.Table:
        """The same as columns: a hundred thousand rows of `groups` take two seconds to become dicts."""
        given = dict(parameters)
        key = ("columns", *question(name, given))
        return self._answer(key, lambda: self._cache.arrow({name: self._queries[name].duckdb}, given)[name])

    def _answer(self, key: tuple[Any, ...], find: Callable[[], _Found]) -> _Found:
        with self._lock:
            version, known = self._version, self._answers.get(key)
        if known is not None:
            return cast("_Found", known)
        found = find()
        with self._lock:
            if version == self._version:
                if len(self._answers) >= _MOST_ANSWERS:
                    self._answers.clear()
                self._answers[key] = found
        return found

    def page(
        self,
        name: str,
        parameters: Mapping[str, Any],
        key: Sequence[str],
        after: Sequence[Any] | None,
        most: int,
        *,
        newest_first: bool = False,
    ) -> list[dict[str, Any]]:
        """Some rows of a query, by the order of a key.

        Args:
            name: The query; it ends with the order of its rows.
            parameters: Values; those that the query does not have are passed over.
            key: Columns that order its rows and that no two rows share.
            after: Values of the key of the row before; None for the first page.
            most: Most rows.
            newest_first: Whether the order is from the largest key to the smallest.
        """
        query = self._queries[name]
        given = {known: value for known, value in parameters.items() if known in query.parameters}
        order = ", ".join(f'"{column}"{" DESC" if newest_first else ""}' for column in key)
        where = ""
        if after is not None:
            given |= {f"after_{place}": value for place, value in enumerate(after)}
            columns, values = (
                ", ".join(f'"{column}"' for column in key),
                ", ".join(f"$after_{place}" for place in range(len(key))),
            )
            where = f"WHERE ({columns}) {'<' if newest_first else '>'} ({values})"
        rows = query.duckdb
        if "most" not in query.parameters:
            # Without the query's own order DuckDB need not sort a million rows of `lag` for the first hundred.
            rows, _, _ = rows.rpartition("ORDER BY")
        sql = f"SELECT * FROM ({rows}) AS page {where} ORDER BY {order} LIMIT {most:d}"  # noqa: S608 - names of ours
        return self._cache.rows(sql, given)

    def columns(self, names: Collection[str]) -> dict[str, pa.Table]:
        """The rows of queries without parameters, as columns, all as of the same update."""
        return self._cache.arrow({name: self._queries[name].duckdb for name in names})

    def quiet_s(self, cluster: str) -> float:
        """Seconds since a round with a new number was read; 0 for an unknown cluster."""
        newest = self._rounds.get(cluster)
        if newest is None:
            return 0.0
        return newest.age_s + self._steady() - newest.at

    def _see_rounds(self) -> None:
        now = datetime.now(UTC)
        for row in self._cache.rows(self._queries["rounds"].duckdb):
            known = self._rounds.get(row["cluster"])
            if known is not None and row["round"] <= known.round:
                continue
            # Only at the start is the clock trusted, and not to the minute: the newest round may be from yesterday.
            age_s = 0.0 if known is not None else (now - row["round_time"]).total_seconds()
            self._rounds[row["cluster"]] = _Newest(row["round"], self._steady(), age_s if age_s > _APART_S else 0.0)

    def poll(self) -> None:
        """Read the new files; the thread calls it again and again."""
        self._busy_since = self._steady()
        try:
            changed = self._cache.update()
            self._see_rounds()
            self._tell("new", None)
            self._read = True
        except EvenkeelError as error:
            changed = "new" not in self._troubles
            self._tell("new", str(error))
        if changed:
            self.forget()

    def read_on(self) -> bool:
        """Read some of the older files; False when nothing is left."""
        # After a failed poll, only the next poll reads on.
        if not self._cache.behind or "new" in self._troubles:
            self._tell("older", None)
            return False
        self._files = max(self._files, self._cache.behind)
        try:
            self._cache.read_on()
        except EvenkeelError as error:
            self._tell("older", str(error))
            return False
        self._tell("older", None)
        self.forget()
        if not self._cache.behind:
            self._cache.tidy()
        return True

    def _run(self) -> None:
        tidied = time.monotonic()
        while not self._end.is_set():
            began = time.monotonic()
            try:
                self.poll()
                while self.read_on():
                    if time.monotonic() - began > self._refresh_s or self._end.is_set():
                        break
                self._changed()
                if time.monotonic() - tidied > _TIDY_EVERY_S:
                    self._cache.tidy()
                    tidied = time.monotonic()
                self._tell("any", None)
            except Exception:  # noqa: BLE001 - the thread must not die: the page would show an old hour as the present
                _log.exception("reading the lake failed")
                self._tell("any", "Reading the lake failed; the server's log has the reason. It will try again.")
            pause = self._again_s if self.problem else self._refresh_s
            self._busy_since = None
            if self.problem or not self._cache.behind:
                self._end.wait(max(0.1, pause - (time.monotonic() - began)))

    def forget(self) -> None:
        """Drop all cached answers."""
        with self._lock:
            self._version += 1
            self._answers.clear()


def since(past: timedelta, now: datetime) -> datetime:
    """Beginning of the past, rounded to the minute, so that queries of the same minute are equal."""
    return (now.astimezone(UTC) - past).replace(second=0, microsecond=0)


def _wanted(
    asked: Mapping[str, Query], past: timedelta, heartbeat: timedelta, spans: Mapping[str, timedelta]
) -> dict[str, Wanted]:
    """Tables and columns that the queries read, and how far back their newest rows can be."""
    read = columns_read(asked.values())
    reach = {table.name: reach_of(table, heartbeat) for table in ALL_TABLES} | {
        "rounds": timedelta(minutes=1),
        # A row at the end of each window of the rates: a heartbeat, or up to half of one more in a group at rest.
        "member_load": 2 * reach_of_living(heartbeat),
        # Advice that holds has a row for each day; a day is looked at when the next one has come.
        "advice": timedelta(days=3),
        "rebalance_churn": past,
        # While rounds come, a batch begins every minute, and its row is written a minute after it: more is an outage.
        "batches": timedelta(hours=1),
    }
    found = {}
    for table in ALL_TABLES:
        current, of_past = read.get(f"{table.name}_current", frozenset()), read.get(table.name, frozenset())
        if current or of_past:
            found[table.name] = Wanted(current, of_past, reach[table.name], spans.get(table.name))
    return found
