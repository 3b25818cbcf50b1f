"""Ports for servers that tests start."""

from __future__ import annotations

from streaming.demo import ports

__all__ = ["free_port"]

_PORTS = (15_000, 19_999)
"""Below the ports of outgoing connections, many of which belong to tests that run at the same time, and below those of
brokers (`EmbeddedBroker`): nobody takes a port between the check and the server's start.
"""


def free_port() -> int:
    """A port that nothing listens on."""
    return ports.free_port(within=_PORTS)
