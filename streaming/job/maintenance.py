"""Maintenance of the lake by its own job, between two batches.

It runs in the thread that waits for the query's end, so no batch waits for it; both share the machine, so a piece
begins only between two batches.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from streaming.config import Settings
from streaming.exceptions import EvenkeelError, SetupError
from streaming.lifecycle import room_log
from streaming.maintain import NotMaintainedError, line_of, maintainer_of
from streaming.process import MAINTAINER, only_one

_LOG = room_log(__name__)

# An open day is joined once an hour, so a lake without work is looked at this rarely.
_NOTHING_S = 300.0

# After a failure: often enough to recover within the hour, rarely enough for the log.
_FAILED_S = 3_600.0

# After so long without a pause between batches, one piece runs beside a batch every few minutes, which bounds the
# number of files. Every file makes appends slower, so a job that waited on would never have a pause again.
_STARVED_S = 3_600.0
_FORCED_EVERY_S = 300.0


class JobMaintenance:
    """Maintains the lake while its job waits for the next batch; another thread reports the batches."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare; nothing is read yet.

        Args:
            settings: All settings.
            clock: Seconds that only grow.

        Raises:
            SetupError: A setting of the maintenance is wrong.
        """
        self._settings = settings
        self._clock = clock
        self._reported_at: dict[str, float] = {}
        self._maintainer = maintainer_of(settings, report=self._report) if settings.maintenance.in_job else None
        self._is_between = False
        self._not_before = self._last_gap = clock()
        self._forced_at = self._last_gap + _STARVED_S

    def batch_runs(self, runs: bool) -> None:
        """A batch begins, or is written; nothing is known before the first one."""
        self._is_between = not runs

    def work(self, stop: threading.Event) -> None:
        """Do what is due as long as no batch runs. Failures are logged: the job goes on without maintenance.

        Args:
            stop: Ends the work after the piece in progress.
        """
        now = self._clock()
        if self._maintainer is None or now < self._not_before:
            return
        forced = not self._is_between
        if not forced:
            self._last_gap, self._forced_at = now, now + _STARVED_S
        elif now >= self._forced_at:
            self._forced_at = now + _FORCED_EVERY_S
            _LOG.warning(
                "no time for maintenance between batches for %d minutes, so one piece runs beside a batch: give the "
                "job more of the machine, or run evenkeel maintain from outside.",
                (now - self._last_gap) / 60,
            )
        else:
            return
        self._not_before = self._clock() + self._pieces(stop, forced=forced)

    def _pieces(self, stop: threading.Event, *, forced: bool) -> float:
        """Do pieces until a batch begins, or one piece beside a batch; returns the seconds until the next look."""
        assert self._maintainer is not None  # noqa: S101 - `work` has looked
        done = 0

        def may_go_on() -> bool:
            return not stop.is_set() and (done == 0 if forced else self._is_between)

        try:
            with only_one(MAINTAINER, self._settings.lake, None, wait=False) as check:
                for piece in self._maintainer.work(may_go_on):
                    done += 1
                    _LOG.info("maintenance: %s", line_of(piece))
                    check()
        except SetupError as held:
            _LOG.info("no maintenance by this job for %d minutes: %s", _NOTHING_S / 60, held)
            return _NOTHING_S
        except NotMaintainedError:
            return _FAILED_S
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not end the job
            _warn(str(error) if isinstance(error, EvenkeelError) else f"{type(error).__name__}: {error}")
            return _FAILED_S
        return _NOTHING_S if may_go_on() else 0.0

    def _report(self, table: str, reason: str) -> None:
        """Log that a table could not be maintained, once an hour for each."""
        now = self._clock()
        if table not in self._reported_at or now - self._reported_at[table] >= _FAILED_S:
            self._reported_at[table] = now
            _warn(reason)


def _warn(reason: str) -> None:
    _LOG.warning("maintenance failed, and is tried again within the hour; the job goes on. %s", reason)
