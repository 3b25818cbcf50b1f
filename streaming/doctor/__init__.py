"""`evenkeel doctor`: what is well, what is not, and what to do, before and while Evenkeel runs."""

from __future__ import annotations

from streaming.doctor.run import examine

__all__ = ["examine"]
