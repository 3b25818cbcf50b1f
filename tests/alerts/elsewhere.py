"""A lease as on another machine that shares the lake: without the lock of this one, with a token of its own."""

from __future__ import annotations

from collections.abc import Callable

from streaming.process.lease import ALERTER, TTL_S, Lease, LeaseObjects


def lease_elsewhere(lake: str, cluster: str, machine: str, clock: Callable[[], float], ttl_s: float = TTL_S) -> Lease:
    """The alerter's lease as on another machine."""
    return Lease(ALERTER, LeaseObjects(lake, f"_locks/{cluster}/{ALERTER}"), clock, ttl_s, machine)
