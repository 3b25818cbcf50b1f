"""Programs that end with the process that started them."""

from __future__ import annotations

from streaming.process.guarded import SAFE_PATH, GuardedProcess
from streaming.process.lease import LeaseLostError
from streaming.process.lease_store import try_store
from streaming.process.lock import ALERTER, JOB, MAINTAINER, UP, holder_of, only_one
from streaming.process.logs import LogFollower, logs_of
from streaming.process.programs import Program, Programs

__all__ = [
    "ALERTER",
    "JOB",
    "MAINTAINER",
    "SAFE_PATH",
    "UP",
    "GuardedProcess",
    "LeaseLostError",
    "LogFollower",
    "Program",
    "Programs",
    "holder_of",
    "logs_of",
    "only_one",
    "try_store",
]
