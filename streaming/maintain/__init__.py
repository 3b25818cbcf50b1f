"""Maintenance of a lake, in bounded pieces: compaction, retention, vacuum and checkpoints; roll-ups and advice.

What is rolled up (closed hours and days) and advised is said in `streaming/history/` and `streaming/advice/`; here it
is found, computed and committed when it is due.
"""

from __future__ import annotations

from streaming.maintain.done import Done
from streaming.maintain.exceptions import MaintenanceError, NotMaintainedError
from streaming.maintain.maintainer import Maintainer
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
    "NotMaintainedError",
    "Outlook",
    "Pace",
    "line_of",
    "maintain",
    "maintainer_of",
    "repair",
]
