"""Programs that end with the process that started them."""

from __future__ import annotations

from streaming.process.guarded import SAFE_PATH, GuardedProcess
from streaming.process.lease import (
    ALERTER,
    JOB,
    MAINTAINER,
    Lease,
    LeaseLostError,
    LeaseStoreError,
    holder_of,
    lease_of,
    only_one,
)
from streaming.process.logs import LogFollower, hold_logs, logs_of
from streaming.process.programs import Program, Programs

__all__ = [
    "ALERTER",
    "JOB",
    "MAINTAINER",
    "SAFE_PATH",
    "GuardedProcess",
    "Lease",
    "LeaseLostError",
    "LeaseStoreError",
    "LogFollower",
    "Program",
    "Programs",
    "hold_logs",
    "holder_of",
    "lease_of",
    "logs_of",
    "only_one",
]
