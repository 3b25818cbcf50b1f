"""Failures of maintenance."""

from __future__ import annotations

from streaming.exceptions import EvenkeelError


class MaintenanceError(EvenkeelError):
    """A piece of maintenance could not be done; the table is as it was."""


class GroupsUnknownError(MaintenanceError):
    """Nobody can tell which groups live, so retention must wait; all else can be done."""


class NotMaintainedError(MaintenanceError):
    """Some tables could not be maintained, and all others are. Each failure was told when it happened."""
