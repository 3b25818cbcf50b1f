"""What can go wrong in the probe.

A failure that the next round may not have (`RoundAbandonedError`) is told apart from one that a person must mend
(`SetupError`).
"""

from __future__ import annotations

from kafka.errors import KafkaError

from streaming.exceptions import EvenkeelError
from streaming.terminal import visible

__all__ = ["NoOffsetsLogError", "RoundAbandonedError", "StopRequestedError", "told"]


class RoundAbandonedError(EvenkeelError):
    """This round cannot be completed: it gets no closing record, and the next one starts anew."""


class NoOffsetsLogError(RoundAbandonedError):
    """The cluster has no offsets log yet: no group has ever committed or joined."""


class StopRequestedError(EvenkeelError):
    """The probe was asked to stop while it waited; its round is abandoned."""


def told(error: KafkaError) -> str:
    """An error of kafka-python for people: its class once, and its message (`str` repeats the class)."""
    message = visible(" ".join(str(argument) for argument in error.args if argument))
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
