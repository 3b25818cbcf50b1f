"""Failures of maintenance."""

from __future__ import annotations

from streaming.exceptions import EvenkeelError


class MaintenanceError(EvenkeelError):
    """A piece of maintenance could not be done; the table is as it was."""
