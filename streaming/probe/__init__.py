"""The probe: a small process beside the cluster that records, in rounds, what the offsets log cannot show."""

from __future__ import annotations

from streaming.probe.exceptions import NoOffsetsLogError, RoundAbandonedError, StopRequestedError
from streaming.probe.inspection import CheckResult, CheckState, tried
from streaming.probe.kafka.run import Probe
from streaming.probe.kafka.source import Source, source_of
from streaming.probe.preflight import check, ensure_ready, inspect
from streaming.probe.run import main

__all__ = [
    "CheckResult",
    "CheckState",
    "NoOffsetsLogError",
    "Probe",
    "RoundAbandonedError",
    "Source",
    "StopRequestedError",
    "check",
    "ensure_ready",
    "inspect",
    "main",
    "source_of",
    "tried",
]
