"""Everything on one machine: probe and job as supervised processes, and the tables in the terminal."""

from __future__ import annotations

from streaming.up.cells import lines
from streaming.up.run import ALERTER, JOB, PAGE, PROBE, environment_of, page_url, stop_signals, up, watch
from streaming.up.summary import print_summary

__all__ = [
    "ALERTER",
    "JOB",
    "PAGE",
    "PROBE",
    "environment_of",
    "lines",
    "page_url",
    "print_summary",
    "stop_signals",
    "up",
    "watch",
]
