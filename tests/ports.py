"""Ports for servers that tests start."""

from __future__ import annotations

import random
import socket

__all__ = ["free_port"]

_PORTS = (15_000, 19_999)
"""Below the ports of outgoing connections, many of which belong to tests that run at the same time, and below those of
brokers (`EmbeddedBroker`): nobody takes a port between the check and the server's start.
"""

# pytest-random-order and Hypothesis seed the module's own functions, alike in every process.
_RANDOM = random.SystemRandom()


def free_port() -> int:
    """A port that nothing listens on."""
    while True:
        port = _RANDOM.randint(*_PORTS)
        with socket.socket() as trial:
            # Like servers: a connection that just ended (TIME_WAIT) does not count as taken.
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
