"""Failures of the core that a caller may want to tell apart."""

from __future__ import annotations

from streaming.exceptions import EvenkeelError

__all__ = ["UnknownStateVersion"]


class UnknownStateVersion(EvenkeelError):
    """The state in the checkpoint was written by a later release."""
