"""What the alerter knows of itself: whether rounds still come, whether the tables can be judged, and are maintained.

No clock is compared with another: a broker whose clock is a day ahead, or a machine of ours that is 45 s off, changes
nothing here. The only measure of silence is when a round with a new number was read, by steady time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from streaming.alerts.exceptions import AnotherAlerterError
from streaming.alerts.judging.firing import FeedRound
from streaming.alerts.rules.rules import MOST_FILES, MOST_FILES_TABLE
from streaming.lifecycle import room_log
from streaming.process import LeaseStoreError
from streaming.stores import cause_of
from streaming.tables import ALL_TABLES, DeltaLogTail, LakeUnreadableError, LakeUnwritableError, table_named
from streaming.terminal import printable

# The pace of the rounds is measured over this time: long enough for three rounds of the default interval.
_PACE_S: Final = 60.0

# Rounds that advance their own time by more than this per second of ours are a backlog, not the present.
_BACKLOG_PACE: Final = 1.5


class NewestRound:
    """The number of the newest round in the lake, read from `rounds` alone, whatever is wrong with other tables."""

    def __init__(self, lake: str, cluster: str) -> None:
        """Prepare; nothing is read before `read`."""
        self._of_cluster = pc.field("cluster") == cluster
        self._log_tail = DeltaLogTail(lake, table_named("rounds"))

    def read(self) -> int | None:
        """The largest number in files that are new since the last call (at first: in the newest); None without one.

        Raises:
            LakeUnreadableError: The table, or one of these files, cannot be read.
        """
        new = self._log_tail.read_new_files()
        files = new.files[:1] if new.is_snapshot else new.files
        if not files:
            return None
        newest: pa.Scalar = pc.max(self._log_tail.read(files, ("round",), self._of_cluster)["round"])
        found: int | None = newest.as_py()
        return found


class Liveness:
    """The time since a new round was read, and whether the rounds show the present.

    Call `saw` with the largest known round number after each check for it, and `judged` with the newest round that the
    rules were judged by.
    """

    def __init__(self, steady: Callable[[], float], grace_s: float) -> None:
        """Begin to wait.

        Args:
            steady: Seconds that no change of a clock affects.
            grace_s: Before the first new round silence counts this much less: probe and job may have started with us.
        """
        self._steady = steady
        self._grace_s = grace_s
        self._since = steady()
        self._newest: int | None = None
        self._has_looked = False
        self.has_seen_new = False
        """Whether a round has come that was not there at our start."""
        # When rounds were read, in steady seconds, and their elapsed time, ms.
        self._reads: deque[tuple[float, int]] = deque()

    def saw(self, number: int | None) -> None:
        """Take the largest round number found; the first call only sets the starting point."""
        first, self._has_looked = not self._has_looked, True
        if number is None or (self._newest is not None and number <= self._newest):
            return
        self._newest = number
        if not first:
            self._since = self._steady()
            self.has_seen_new = True

    @property
    def silent_s(self) -> float:
        """Seconds since a new round was read; before the first, since the start, minus the grace."""
        waited = self._steady() - self._since
        if self.has_seen_new:
            return waited
        return max(0.0, waited - self._grace_s)

    def judged(self, newest: FeedRound | None) -> None:
        """Take the newest round that the rules were judged by."""
        if newest is None:
            return
        if not self._reads or newest.elapsed != self._reads[-1][1]:
            self._reads.append((self._steady(), newest.elapsed))
        while len(self._reads) > 2 and self._reads[1][0] <= self._steady() - _PACE_S:
            self._reads.popleft()

    def is_present(self, recent_s: float) -> bool:
        """Whether the newest round shows the present: it came within so many seconds, and rounds keep their pace."""
        if not self.has_seen_new or self.silent_s > recent_s or len(self._reads) < 2:
            return False
        (first_at, first), (last_at, last) = self._reads[0], self._reads[-1]
        took = last_at - first_at
        return took >= _PACE_S / 2 and (last - first) / 1000 <= _BACKLOG_PACE * took


# Maintenance joins files every few minutes. Counting opens every table, up to a second for a neglected lake.
_EVERY_S = 600.0


class Upkeep:
    """Counts the files of a lake's tables now and then."""

    def __init__(self, lake: str, steady: Callable[[], float]) -> None:
        """Prepare; nothing is read yet.

        Args:
            lake: Folder or URI.
            steady: Seconds that no change of a clock affects.
        """
        self._lake = lake.rstrip("/")
        self._steady = steady
        self._next = steady()
        self.largest: Mapping[str, Any] = {}
        """The table with the most files at the last count, and how many; nothing before the first."""

    def count_files(self) -> None:
        """Count again, unless that was a few minutes ago. A table that cannot be read now is left out."""
        if self._steady() < self._next:
            return
        counted = {table.name: self._count(table.name) for table in ALL_TABLES}
        table, files = max(counted.items(), key=lambda found: found[1])
        self.largest = {MOST_FILES: files, MOST_FILES_TABLE: table} if files else {}
        self._next = self._steady() + _EVERY_S

    def _count(self, table: str) -> int:
        try:
            return len(DeltaTable(f"{self._lake}/{table}").file_uris())
        except (DeltaError, OSError):
            # Not there yet, or broken: `unjudged` reports that of a table that rules read.
            return 0


_LOG = room_log(__name__)

PASSING: Final = (
    OSError,
    DeltaError,
    pa.ArrowException,
    duckdb.Error,
    LakeUnreadableError,
    LakeUnwritableError,
    AnotherAlerterError,
    LeaseStoreError,
)
"""Failures that may be over at the next poll."""

_Result = TypeVar("_Result")


class Trouble:
    """How long the tables have not been judged, or something beside them not been read.

    In each poll, call `attempt` for every step and then `end_poll`.

    Attributes:
        reason: The first failure of the newest poll that had one, on one line; None when all is well.
    """

    def __init__(self, steady: Callable[[], float], what: str = "the tables", done: str = "evaluated") -> None:
        """Start without trouble.

        Args:
            steady: Seconds that no change of the clock affects.
            what: What fails, for the log.
            done: What cannot be done with it.
        """
        self.reason: str | None = None
        self._steady = steady
        self._what, self._done = what, done
        self._since: float | None = None
        self._failed: str | None = None

    @property
    def lasts_s(self) -> float:
        """Seconds without a poll free of failures; 0 when all is well."""
        if self._since is None:
            return 0.0
        return self._steady() - self._since

    def attempt(self, step: Callable[[], _Result], otherwise: _Result) -> _Result:
        """Run a step of a poll; a temporary failure is noted, and `otherwise` is its result."""
        try:
            return step()
        except PASSING as error:
            self._failed = self._failed or one_line(error)
            return otherwise

    def end_poll(self) -> None:
        """Log a failure once, not at every poll, and once that it is over."""
        if self._failed is not None and self._since is None:
            _LOG.warning("%s cannot be %s now, retrying in a moment: %s", self._what, self._done, self._failed)
            self._since = self._steady()
        elif self._failed is None and self._since is not None:
            _LOG.info("%s can be %s again, after %.0f s", self._what, self._done, self.lasts_s)
            self._since = None
        self.reason, self._failed = self._failed, None


def one_line(error: Exception) -> str:
    """An exception as one line of text: control characters of paths and names in it are escaped."""
    return printable(f"{type(error).__name__}: {cause_of(error)}"[:300])
