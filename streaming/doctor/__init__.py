"""`evenkeel doctor`: what is well, what is not, and what to do, before and while Evenkeel runs; `evenkeel init`."""

from __future__ import annotations

from streaming.doctor.init import write_first_settings
from streaming.doctor.run import examine

__all__ = ["examine", "write_first_settings"]
