"""Maintenance of a lake: compaction, retention, vacuum and checkpoints of the log, in bounded pieces."""

from __future__ import annotations

from streaming.maintain.exceptions import MaintenanceError
from streaming.maintain.maintainer import Done, Maintainer, Outlook
from streaming.maintain.run import maintain

__all__ = ["Done", "Maintainer", "MaintenanceError", "Outlook", "maintain"]
