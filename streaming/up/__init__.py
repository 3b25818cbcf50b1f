"""Everything on one machine: probe and job as supervised processes, and the tables in the terminal."""

from __future__ import annotations

from streaming.up.live import lines, print_summary
from streaming.up.run import JOB, PROBE, SERVER, page_url, stop_signals, up, watch

__all__ = [
    "JOB",
    "PROBE",
    "SERVER",
    "lines",
    "page_url",
    "print_summary",
    "stop_signals",
    "up",
    "watch",
]
