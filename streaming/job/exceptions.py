"""Failures of the job."""

from __future__ import annotations

from streaming.exceptions import EvenkeelError

__all__ = ["QueryEndedError"]


class QueryEndedError(EvenkeelError):
    """The streaming query failed; its text names the cause in one sentence."""
