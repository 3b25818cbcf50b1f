"""Maintenance of a lake: compaction, retention, vacuum and checkpoints of the log, in bounded pieces."""

from __future__ import annotations

from streaming.maintain.exceptions import MaintenanceError
from streaming.maintain.maintainer import Done, Maintainer
from streaming.maintain.outlook import Outlook
from streaming.maintain.pace import Gap, Pace
from streaming.maintain.repair import repair
from streaming.maintain.run import line_of, maintain
from streaming.maintain.settings import maintainer_of

__all__ = [
    "Done",
    "Gap",
    "Maintainer",
    "MaintenanceError",
    "Outlook",
    "Pace",
    "line_of",
    "maintain",
    "maintainer_of",
    "repair",
]
