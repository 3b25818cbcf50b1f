"""Patience: with what comes by and by, and with a query whose Python process was too slow for Spark.

Spark 4.2.0 gives a new Python process ten seconds to connect, which no setting changes, and fails the query if it does
not. `evenkeel up` restarts such a job; tests that run a query in their own session do the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

_ATTEMPTS = 5


def unless_too_busy(act: Callable[[], Result]) -> Result:
    """Run `act`, and run it again if a Python process was too slow for Spark, up to five times in all."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return act()
        except Exception as error:
            if "failed to connect back" not in str(error):
                raise
    return act()


def until(
    done: Callable[[], Result],
    *turns: Callable[[], object],
    seconds: float = 120,
    pause_s: float = 0.05,
    told: str | Callable[[], str] = "it did not come to that in time",
) -> Result:
    """Take turns until something is so, with a pause after each; returns what it then is.

    Args:
        done: Asks whether it is so.
        turns: What is done meanwhile.
        seconds: Limit.
        pause_s: The pause.
        told: What to say at the limit.
    """
    deadline, pause = time.monotonic() + seconds, threading.Event()
    while not (found := done()):
        assert time.monotonic() < deadline, told if isinstance(told, str) else told()
        for turn in turns:
            turn()
        pause.wait(pause_s)
    return found
