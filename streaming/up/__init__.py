"""Everything on one machine: probe, job and server as supervised processes, their logs as one stream."""

from __future__ import annotations

from streaming.up.run import JOB, PROBE, SERVER, page_url, probe_of, stop_signals, up

__all__ = [
    "JOB",
    "PROBE",
    "SERVER",
    "page_url",
    "probe_of",
    "stop_signals",
    "up",
]
