"""Maintenance of the lake by its own job, between two batches.

It runs in the thread that waits for the query's end, so no batch waits for it. Both share the machine, so a piece
begins only when it should be done before the next batch. Deleting a large day can take longer than any gap; it begins
in one all the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from streaming.config import Settings
from streaming.exceptions import EvenkeelError, SetupError
from streaming.lifecycle import room_log
from streaming.maintain import Gap, Maintainer, NotMaintainedError, Pace, line_of, maintainer_of
from streaming.process import MAINTAINER, only_one

_LOG = room_log(__name__)

# Tables need joining only after dozens of batches, so a lake without work is looked at this rarely.
_NOTHING_S = 300.0

# After a failure: often enough to recover within the hour, rarely enough for the log. (A busy job, which always has
# something left to do, tries a table again every ten minutes, and tells its failures no more often.)
_FAILED_S = 3_600.0

# A job that has had no gap for this long takes the time: each file makes appends slower, so without maintenance it
# would never have a gap again. One piece every few minutes bounds the number of files.
_STARVED_S = 3_600.0
_FORCED_EVERY_S = 300.0


class JobMaintenance:
    """Maintains the lake while its job waits for the next batch.

    Attributes:
        pace: Must be told when batches begin and end.
    """

    def __init__(
        self, settings: Settings, checkpoint: str | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            settings: All settings.
            checkpoint: Where the job's state is; None for the settings' own place.
            clock: Seconds that only grow.

        Raises:
            SetupError: A setting of the maintenance is wrong.
        """
        self.pace = Pace()
        self._settings = settings
        self._clock = clock
        self._told: dict[str, float] = {}
        self._maintainer = (
            maintainer_of(settings, told=self._tell, in_job=True, checkpoint=checkpoint)
            if settings.maintenance.in_job
            else None
        )
        self._not_before = self._last_gap = clock()
        self._forced_at = self._last_gap + _STARVED_S

    def work(self, stop: threading.Event) -> None:
        """Use the gap until the next batch, if there is one. Failures are logged: the job goes on without maintenance.

        Args:
            stop: Ends the work after the piece in progress.
        """
        now = self._clock()
        if self._maintainer is None or now < self._not_before:
            return
        gap = self.pace.gap(now)
        if gap is not None:
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
        pause = self._pieces(self._maintainer, gap, stop)
        self._not_before = self._clock() + pause

    def _pieces(self, maintainer: Maintainer, gap: Gap | None, stop: threading.Event) -> float:
        """Do what fits into the gap, or one piece without one; returns the seconds until the next look."""
        left, whole = (gap.left, gap.whole) if gap is not None else (0.0, None)
        try:
            with only_one(MAINTAINER, self._settings.lake, None, wait=False) as check:
                for done in maintainer.work(left, whole):
                    _LOG.info("maintenance: %s", line_of(done))
                    check()
                    if stop.is_set() or self.pace.gap(self._clock()) is None:
                        return 0.0
        except SetupError as held:
            _LOG.info("no maintenance by this job for %d minutes: %s", _NOTHING_S / 60, held)
            return _NOTHING_S
        except NotMaintainedError:
            return _FAILED_S
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not end the job
            _warn(str(error) if isinstance(error, EvenkeelError) else f"{type(error).__name__}: {error}")
            return _FAILED_S
        return 0.0 if maintainer.has_more else _NOTHING_S

    def _tell(self, table: str, reason: str) -> None:
        """Log that a table could not be maintained, once an hour for each."""
        now = self._clock()
        if table not in self._told or now - self._told[table] >= _FAILED_S:
            self._told[table] = now
            _warn(reason)


def _warn(reason: str) -> None:
    _LOG.warning("maintenance failed, and is tried again within the hour; the job goes on. %s", reason)
