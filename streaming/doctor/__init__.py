"""`evenkeel doctor`: what is well, what is not, and what to do, before and while Evenkeel runs."""

from __future__ import annotations

from streaming.doctor.line import Line, State
from streaming.doctor.run import examine

__all__ = ["Line", "State", "examine"]
