"""What can go wrong in the probe.

A failure that the next round may not have (`RoundAbandonedError`) is told apart from one that a person must mend
(`SetupError`).
"""

from __future__ import annotations

from streaming.exceptions import EvenkeelError

__all__ = ["NoOffsetsLogError", "RoundAbandonedError", "StopRequestedError"]


class RoundAbandonedError(EvenkeelError):
    """This round cannot be completed: it gets no closing record, and the next one starts anew."""


class NoOffsetsLogError(RoundAbandonedError):
    """The cluster has no offsets log yet: no group has ever committed or joined."""


class StopRequestedError(EvenkeelError):
    """The probe was asked to stop while it waited; its round is abandoned."""
