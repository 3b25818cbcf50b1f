"""Exceptions of the core."""

from __future__ import annotations

from streaming.exceptions import EvenkeelError

__all__ = ["UnknownStateVersion"]


class UnknownStateVersion(EvenkeelError):
    """The state in the checkpoint was written by a later release."""
