"""Burrow's judgement of a consumer, as its release 1.9.5 makes it: a pure function, and a line of a pipe."""

from __future__ import annotations

from streaming.burrow.evaluator import Commit, Status, evaluate, status_line

__all__ = ["Commit", "Status", "evaluate", "status_line"]
