"""The probe: a small process beside the cluster that records, in rounds, what the offsets log cannot show."""

from __future__ import annotations

from streaming.probe.deadline import RoundAbandonedError, StopRequestedError
from streaming.probe.inspection import CheckResult, CheckState, tried
from streaming.probe.kafka.run import Probe
from streaming.probe.preflight import check, ensure_ready, inspect
from streaming.probe.run import main

__all__ = [
    "CheckResult",
    "CheckState",
    "Probe",
    "RoundAbandonedError",
    "StopRequestedError",
    "check",
    "ensure_ready",
    "inspect",
    "main",
    "tried",
]
