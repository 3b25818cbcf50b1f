"""Failures of the probe.

A failure that may be gone by the next round (`RoundAbandonedError`) is kept apart from one that a person must fix
(`SetupError`).
"""

from __future__ import annotations

from streaming.exceptions import EvenkeelError
from streaming.terminal import visible


class RoundAbandonedError(EvenkeelError):
    """This round cannot be completed: it gets no closing record, and the next one starts from scratch."""


class AnotherProbeError(EvenkeelError):
    """Another probe makes the rounds of the cluster: this one stands by."""


class StopRequestedError(EvenkeelError):
    """The probe was asked to stop while it waited; its round is abandoned."""


def error_text(error: Exception) -> str:
    """An error as a readable text: its class once, and its message (`str` repeats the class for kafka-python's)."""
    message = visible(" ".join(str(argument) for argument in error.args if argument))
    if message:
        return f"{type(error).__name__}: {message}"
    return type(error).__name__
