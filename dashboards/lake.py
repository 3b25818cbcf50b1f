"""The page's view of the lake: one per process, kept fresh by a thread, shared by all viewers.

A viewer's refresh asks memory; the lake is read once, however many look at it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from dashboards.query import columns_read, queries
from streaming.config import Thresholds
from streaming.exceptions import EvenkeelError
from streaming.tables import ALL_TABLES, TableCache, Wanted

__all__ = ["PageLake"]

_log = logging.getLogger(__name__)

# Between two tidyings of what grows in memory; each rebuilds the tables of the past (a second or two for a day of a
# thousand groups).
_TIDY_EVERY_S = 1800.0

# A lake that cannot be read is tried again after this time.
_AGAIN_S = 5.0

# Answers that are kept: all panels of a few dozen viewers.
_MOST_ANSWERS = 512


# Two clocks that are kept at all are closer than this.
_APART_S = 120.0


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest round of a cluster: its number, when it was read (steady time), and how old it was then, s."""

    round: int
    at: float
    age_s: float


class PageLake:
    """Answers to the panels' queries.

    Attributes:
        past: How far back it goes.
        thresholds: Bounds by which the page colours, as the alert rules have them.
        reach: Within this time of the newest round a living group, and each of its partitions, has a row.
        problem: One sentence when the lake cannot be read now; what was read before is still answered from.
    """

    def __init__(
        self,
        root: str,
        past: timedelta,
        heartbeat: timedelta,
        refresh: timedelta,
        thresholds: Thresholds | None = None,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; `start` begins to read.

        Args:
            root: Folder or URI of the lake.
            past: How far back charts and timelines go.
            heartbeat: How often the job repeats rows that do not change (`job.heartbeat_ms`).
            refresh: Time between two looks for new files.
            thresholds: The alert rules' bounds, by which the page colours; None for the defaults.
            steady: Seconds that no setting of a clock moves.
        """
        self.past = past
        self.thresholds = thresholds or Thresholds()
        self._steady = steady
        self._rounds: dict[str, _Newest] = {}
        # A living group and partition has a row every heartbeat; the rest forgives slow rounds.
        self.reach = 1.25 * heartbeat + timedelta(minutes=1)
        self.problem: str | None = None
        self._refresh_s = refresh.total_seconds()
        self._cache = TableCache(root, _wanted(past, self.reach), past)
        self._version = 0
        self._answers: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._read_once = threading.Event()
        self._files = 0

    def start(self) -> None:
        """Begin to read, in a thread that ends with the process."""
        threading.Thread(target=self._run, name="lake", daemon=True).start()

    def wait_for_first_look(self, seconds: float) -> bool:
        """Wait until the newest rows were read, or could not be; False when the time is up."""
        return self._read_once.wait(seconds)

    @property
    def unread(self) -> float:
        """Share of the files there were at the start that are not read yet, 0 to 1."""
        return self._cache.behind / self._files if self._files else 0.0

    def ask(self, name: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The rows of a query; the same list as long as nothing has changed, so do not change it."""
        given = dict(parameters or {})
        key = (name, *sorted((k, str(v)) for k, v in given.items()))
        with self._lock:
            version, known = self._version, self._answers.get(key)
        if known is not None:
            return known
        rows = self._cache.rows(queries()[name].duckdb, given)
        with self._lock:
            if version == self._version:
                if len(self._answers) >= _MOST_ANSWERS:
                    self._answers.clear()
                self._answers[key] = rows
        return rows

    def quiet_s(self, cluster: str) -> float:
        """Seconds for which no round of a new number was read, as far as the page knows; 0 for an unknown cluster."""
        newest = self._rounds.get(cluster)
        return 0.0 if newest is None else newest.age_s + self._steady() - newest.at

    def _see_rounds(self) -> None:
        now = datetime.now(UTC)
        for row in self._cache.rows(queries()["rounds"].duckdb):
            known = self._rounds.get(row["cluster"])
            if known is not None and row["round"] <= known.round:
                continue
            # Only a start must believe the clocks, and not to the minute: what it finds may be of yesterday.
            age_s = 0.0 if known is not None else (now - row["round_time"]).total_seconds()
            self._rounds[row["cluster"]] = _Newest(row["round"], self._steady(), age_s if age_s > _APART_S else 0.0)

    def look(self) -> None:
        """Take in what is new: what the thread does again and again."""
        try:
            changed = self._cache.update()
            self._see_rounds()
            self.problem = None
        except EvenkeelError as error:
            changed = self.problem is None
            self.problem = str(error)
        if changed:
            self.forget()

    def read_on(self) -> bool:
        """Read some of what lies further back; False when nothing is left."""
        if not self._cache.behind:
            return False
        self._files = max(self._files, self._cache.behind)
        try:
            self._cache.read_on()
        except EvenkeelError as error:
            self.problem = str(error)
            return False
        self.forget()
        if not self._cache.behind:
            self._cache.tidy()
        return True

    def _run(self) -> None:
        tidied = time.monotonic()
        while True:
            began = time.monotonic()
            try:
                self.look()
                self._read_once.set()
                while self.read_on():
                    if time.monotonic() - began > self._refresh_s:
                        break
                if time.monotonic() - tidied > _TIDY_EVERY_S:
                    self._cache.tidy()
                    tidied = time.monotonic()
            except Exception:  # noqa: BLE001 - the thread must not die: the page would show an old hour as the present
                _log.exception("reading the lake failed")
                self.problem = "Reading the lake failed; the page's log says why. It is tried again."
            pause = _AGAIN_S if self.problem else self._refresh_s
            if not self._cache.behind:
                time.sleep(max(0.1, pause - (time.monotonic() - began)))

    def forget(self) -> None:
        """Let every question be answered is_snapshot."""
        with self._lock:
            self._version += 1
            self._answers.clear()


def since(past: timedelta, now: datetime) -> datetime:
    """Where the past begins, to the minute, so that questions of one minute are the same."""
    return (now.astimezone(UTC) - past).replace(second=0, microsecond=0)


def _wanted(past: timedelta, of_living: timedelta) -> dict[str, Wanted]:
    """What the queries read, and how far back the newest rows of it can lie."""
    read = columns_read(queries().values())
    reach = {
        "group_health": of_living,
        "lag": of_living,
        "rounds": timedelta(minutes=1),
        "rebalance_churn": past,
    }
    found = {}
    for table in ALL_TABLES:
        current, of_past = read.get(f"{table.name}_current", frozenset()), read.get(table.name, frozenset())
        if current or of_past:
            found[table.name] = Wanted(current, of_past, reach.get(table.name))
    return found
