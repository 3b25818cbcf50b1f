"""A sign of life for somebody outside: a URL that is asked after looks that have judged something.

The service behind it (healthchecks.io, Uptime Kuma, Dead Man's Snitch, a cron monitor) alerts when it is not asked for
a while: nobody inside can say that everything inside has stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import requests

from streaming.lifecycle import room_log

_LOG = room_log(__name__)

_STOP_S: Final = 1.0


class Heartbeat:
    """Asks a URL now and then, in a thread of its own. `beat` may be called from any thread."""

    def __init__(self, url: str, every_s: float, timeout_s: float, steady: Callable[[], float]) -> None:
        """Prepare; `start` begins.

        Args:
            url: Asked with GET; it may contain a secret and is never logged.
            every_s: At most this often.
            timeout_s: For an answer.
            steady: Seconds that no change of the clock affects.
        """
        self._url, self._every_s, self._timeout_s, self._steady = url, every_s, timeout_s, steady
        self._last: float | None = None
        self._wanted = threading.Event()
        self._stopped = False
        self._failed = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="heartbeat")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; a question that is under way is not waited for."""
        self._stopped = True
        self._wanted.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_S)

    def beat(self) -> None:
        """Ask, unless that was done a moment ago."""
        now = self._steady()
        if self._last is None or now - self._last >= self._every_s:
            self._last = now
            self._wanted.set()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._stopped:
                return
            self._ask()

    def _ask(self) -> None:
        try:
            answer = requests.get(self._url, timeout=self._timeout_s)
            trouble = None if answer.ok else f"it answered HTTP {answer.status_code}"
        except requests.RequestException as error:
            # (Only the type: the text contains the URL.)
            trouble = f"it could not be reached ({type(error).__name__})"
        if (trouble is not None) != self._failed:
            self._failed = trouble is not None
            if trouble is not None:
                _LOG.warning("the heartbeat URL did not take a sign of life: %s", trouble)
            else:
                _LOG.info("the heartbeat URL answers again")
