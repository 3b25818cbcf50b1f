"""Maintenance of the lake by its own job.

It runs in the thread that waits for the query's end, a piece at a time on one core, so no batch waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from streaming.config import Settings
from streaming.exceptions import EvenkeelError, SetupError
from streaming.lifecycle import room_log
from streaming.maintain import MaintenanceError, line_of, maintainer_of
from streaming.process import MAINTAINER, only_one

_LOG = room_log(__name__)

# An open day is joined once an hour, so a lake without work is looked at this rarely.
_NOTHING_S = 300.0

# After a failure: often enough to recover within the hour, rarely enough for the log.
_FAILED_S = 3_600.0


class JobMaintenance:
    """Maintains the lake beside the batches of its job."""

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
        self._maintainer = maintainer_of(settings) if settings.maintenance.in_job else None
        self._not_before = clock()

    def work(self, stop: threading.Event) -> None:
        """Do what is due. Failures are logged: the job goes on without maintenance.

        Args:
            stop: Ends the work after the piece in progress.
        """
        if self._maintainer is None or self._clock() < self._not_before:
            return
        pause = _NOTHING_S
        try:
            with only_one(MAINTAINER, self._settings.lake, None, wait=False) as check:
                for piece in self._maintainer.work(lambda: not stop.is_set()):
                    if piece.failure:
                        _warn(piece.failure)
                    # The daily upkeep of tables without files to delete is no news.
                    elif piece.files or piece.rows:
                        _LOG.info("maintenance: %s", line_of(piece))
                    check()
        except SetupError as held:
            _LOG.info("no maintenance by this job for %d minutes: %s", _NOTHING_S / 60, held)
        except MaintenanceError:
            pause = _FAILED_S
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not end the job
            _warn(str(error) if isinstance(error, EvenkeelError) else f"{type(error).__name__}: {error}")
            pause = _FAILED_S
        self._not_before = self._clock() + pause


def _warn(reason: str) -> None:
    _LOG.warning("maintenance failed, and is tried again within the hour; the job goes on. %s", reason)
