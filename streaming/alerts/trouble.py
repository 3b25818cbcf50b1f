"""Failures of the tables while others write them or a store is away: reported once, with how long they last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import duckdb
import pyarrow as pa
from deltalake.exceptions import DeltaError

from streaming.alerts.exceptions import AnotherAlerterError, LostTrackError
from streaming.lifecycle import room_log
from streaming.process import LeaseStoreError
from streaming.stores import cause_of
from streaming.tables import LakeUnreadableError, LakeUnwritableError
from streaming.terminal import printable

_LOG = room_log(__name__)

PASSING: Final = (
    OSError,
    DeltaError,
    pa.ArrowException,
    duckdb.Error,
    LakeUnreadableError,
    LakeUnwritableError,
    LostTrackError,
    AnotherAlerterError,
    LeaseStoreError,
)
"""Failures that may be over at the next look."""

_Result = TypeVar("_Result")


class Trouble:
    """How long the tables have not been judged, or something beside them not been read.

    In each look, call `attempt` for every step and then `end_of_look`.

    Attributes:
        reason: The first failure of the newest look that had one, on one line; None when all is well.
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
        """Seconds without a look free of failures; 0 when all is well."""
        return 0.0 if self._since is None else self._steady() - self._since

    def attempt(self, step: Callable[[], _Result], otherwise: _Result) -> _Result:
        """Run a step of a look; a temporary failure is noted, and `otherwise` is its result."""
        try:
            return step()
        except PASSING as error:
            self._failed = self._failed or one_line(error)
            return otherwise

    def end_of_look(self) -> None:
        """Log a failure once, not at every look, and once that it is over."""
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
