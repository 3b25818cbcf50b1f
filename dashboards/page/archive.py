"""Questions about what is not held in memory: roll-ups of months, decisions of any age.

The lake may be far away and large, so nobody waits for long: a question is given to one thread, and who asks gets the
rows, or None and asks again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from dataclasses import dataclass
from typing import Any, Final

from dashboards.query import history_queries, queries, question
from streaming.catalog import Contents, contents
from streaming.exceptions import EvenkeelError
from streaming.tables import DataFile, DeltaLogTail, LakeReader, OpenedTable, alerter_place, limited, table_named

_log = logging.getLogger(__name__)

# Who asks waits so long; a page that is there within a second feels immediate.
_PATIENCE_S = 0.7

# An answer is good for so long: the newest hour of history comes once an hour, and a new decision is looked for in
# memory first.
_GOOD_S = 60.0

# How long the sizes of all tables are good: opening a lake that nobody maintains takes seconds.
_TABLES_GOOD_S = 300.0

# Answers that are kept, of a few thousand rows each at the most.
_MOST_ANSWERS = 64

# Questions that wait. More than a handful of people at once ask for different months only in an attack.
_MOST_WAITING: Final = 16


# Queries over raw rows of one group in a stretch of time, with the only table that each reads: all others read tables
# with far fewer rows. Only files that can hold any of it are opened, or a day that nobody compacted would take minutes.
_STRETCHES: Final[Mapping[str, str]] = {
    "lag_map": "lag",
    "load_steps": "group_health",
    "states": "group_health",
}

# Batches by which their delay is told.
_NEWEST_MS: Final = 600_000


@dataclass(frozen=True, slots=True)
class Signs:
    """Signs of life in the tables' logs; no row is read for them.

    Attributes:
        written: The newest files of `rounds` that batches wrote; their times are those of `closed_time`.
        judged: By cluster the number of the round up to which its alerts were decided; None where nothing ever was.
    """

    written: Sequence[DataFile]
    judged: Mapping[str, int | None]


@dataclass(slots=True)
class _Answer:
    found: Future[Any]
    asked_at: float


class Archive:
    """Rows of the queries over the whole lake, read from the lake when somebody asks."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._reader: LakeReader | None = None
        self._refreshed = 0.0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="archive")
        # Threads of their own, so that no chart of the last hour waits until a large lake is open.
        self._stretches = {name: OpenedTable(root, table_named(name)) for name in _STRETCHES.values()}
        self._stretching = ThreadPoolExecutor(1, thread_name_prefix="stretch")
        self._answers: OrderedDict[tuple[Any, ...], _Answer] = OrderedDict()
        self._lock = threading.Lock()

    def ask(self, name: str, **parameters: Any) -> list[dict[str, Any]] | None:
        """The rows of a query; None while they are still being read.

        Raises:
            EvenkeelError: The lake cannot be read.
        """
        key = question(name, parameters)
        rows: list[dict[str, Any]] | None
        if name in _STRETCHES:
            rows = self._found(key, _GOOD_S, lambda: self._stretch(name, parameters), self._stretching)
        else:
            rows = self._found(key, _GOOD_S, lambda: _rows(self._whole(), name, parameters))
        return rows

    def known(self, name: str, **parameters: Any) -> list[dict[str, Any]] | None:
        """The rows of a question that was answered lately, of whatever age; None if they are not kept."""
        with self._lock:
            answer = self._answers.get(question(name, parameters))
        if answer is None or not answer.found.done() or answer.found.exception() is not None:
            return None
        rows: list[dict[str, Any]] = answer.found.result()
        return rows

    def tables(self) -> list[Contents] | None:
        """Every table, some minutes old; None while their logs are still being read.

        Raises:
            EvenkeelError: The lake cannot be read.
        """
        found: list[Contents] | None = self._found(("",), _TABLES_GOOD_S, lambda: contents(self._root))
        return found

    def signs(self, clusters: Sequence[str]) -> Signs | None:
        """Signs of life; None while they are still being read.

        Args:
            clusters: Names of clusters.

        Raises:
            EvenkeelError: The lake cannot be read.
        """
        found: Signs | None = self._found(("signs", *clusters), _GOOD_S, lambda: self._read_signs(clusters))
        return found

    def _found(
        self, key: tuple[Any, ...], good_s: float, read: Callable[[], Any], thread: ThreadPoolExecutor | None = None
    ) -> Any:
        with self._lock:
            known = self._answers.get(key)
            if known is None or (known.found.done() and time.monotonic() - known.asked_at > good_s):
                waiting = sum(not answer.found.done() for answer in self._answers.values())
                if waiting >= _MOST_WAITING:
                    return None
                known = _Answer((thread or self._thread).submit(read), time.monotonic())
                self._answers[key] = known
                while len(self._answers) > _MOST_ANSWERS:
                    self._answers.popitem(last=False)
        try:
            return known.found.result(_PATIENCE_S)
        except NotYetError:
            return None
        except Exception as error:
            with self._lock:
                self._answers.pop(key, None)
            if isinstance(error, EvenkeelError):
                raise
            _log.exception("reading the archive failed")
            message = "Reading older rows failed; the server's log has the reason."
            raise EvenkeelError(message) from error

    def stop(self) -> None:
        """Take no more questions."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._stretching.shutdown(wait=False, cancel_futures=True)

    def _whole(self) -> LakeReader:
        """All tables, at most a minute old; for the archive's own thread."""
        if self._reader is None:
            self._reader = LakeReader(self._root, limited())
        elif time.monotonic() - self._refreshed > _GOOD_S:
            self._reader.refresh()
        self._refreshed = time.monotonic()
        return self._reader

    def _read_signs(self, clusters: Sequence[str]) -> Signs:
        reader = self._whole()
        judged = {cluster: reader.transaction("alerts", alerter_place(cluster)) for cluster in clusters}
        # By commits: compaction writes old rows into new files.
        commits = DeltaLogTail(self._root, table_named("rounds"), "closed_time")
        begin = time.time_ns() // 1_000_000 - _NEWEST_MS
        commits.go_on_since(begin)
        return Signs([file for file in commits.read_new_files().files if file.written > begin], judged)

    def _stretch(self, name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Rows of a query over one stretch; for the thread of stretches."""
        since, until = parameters["since"], parameters["until"]
        table = self._stretches[_STRETCHES[name]]
        if not table.refresh():
            return []
        days = since.date(), until.date()
        files = table.files(days, parameters["cluster"], parameters["group_id"], times=(since, until))
        return table.ask(history_queries()[name].duckdb, parameters, files)


def _rows(reader: LakeReader, name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    return reader.rows((queries() | history_queries())[name].duckdb, dict(parameters))
