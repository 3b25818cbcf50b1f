"""Programs that die with whoever started them."""

from __future__ import annotations

from streaming.leash.leashed import LeashedProcess, last_line, leashed_command

__all__ = ["LeashedProcess", "last_line", "leashed_command"]
