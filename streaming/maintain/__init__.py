"""Maintenance of a lake by Delta's own libraries: compaction, retention, vacuum and checkpoints; roll-ups and advice.

What is rolled up (closed hours and days) and advised is said in `streaming/history/` and `streaming/advice/`; here it
is found, computed and committed when it is due.
"""

from __future__ import annotations

from streaming.maintain.engines import Done, MaintenanceError
from streaming.maintain.maintainer import Maintainer, maintainer_of
from streaming.maintain.run import forget, line_of, maintain, repair

__all__ = [
    "Done",
    "Maintainer",
    "MaintenanceError",
    "forget",
    "line_of",
    "maintain",
    "maintainer_of",
    "repair",
]
