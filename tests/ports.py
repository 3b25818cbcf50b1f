"""Ports for servers that tests start."""

from __future__ import annotations

import random
import socket

__all__ = ["free_port"]

_PORTS = (15_000, 19_999)
"""Below those that outgoing connections get, of which tests that run beside have many, and those of brokers
(`EmbeddedBroker`): nobody takes one between the look and the server's start.
"""


def free_port() -> int:
    """A port on which nothing listens."""
    while True:
        port = random.randint(*_PORTS)
        with socket.socket() as trial:
            # As servers do: connections of one that just ended (TIME_WAIT) do not count as taken.
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
