"""Programs that die with whoever started them."""

from __future__ import annotations

from streaming.leash.leashed import LeashedProcess

__all__ = ["LeashedProcess"]
