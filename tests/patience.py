"""Restarts a query whose Python process was too slow for Spark.

Spark 4.2.0 gives a new Python process ten seconds to connect, which no setting changes, and fails the query if it does
not. `evenkeel up` restarts such a job; tests that run a query in their own session do the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["unless_too_busy"]

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
