"""Programs that die with whoever started them."""

from __future__ import annotations

from streaming.leash.leashed import SAFE_PATH, LeashedProcess, last_line, leashed_command

__all__ = ["SAFE_PATH", "LeashedProcess", "last_line", "leashed_command"]
