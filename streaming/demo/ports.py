"""Ports for servers that the demo and the tests start."""

from __future__ import annotations

import random
import socket

from streaming.exceptions import SetupError

_HOST = "127.0.0.1"

_PORTS = (20_000, 32_000)
"""Below the ranges that Linux (32768 and up) and macOS (49152 and up) use for outgoing connections."""

# The system's random numbers, because test libraries (pytest-random-order, Hypothesis) seed Python's shared ones, and
# with the same seed in every process: all of them would draw the same ports at the same time.
_RANDOM = random.SystemRandom()


def free_port(neighbours: int = 0, within: tuple[int, int] = _PORTS) -> int:
    """A free port that no outgoing connection can take while its server restarts.

    Args:
        neighbours: How many ports right below it must be free as well.
        within: The first and the last port to choose from.
    """
    while True:
        port = _RANDOM.randint(*within)
        try:
            for needed in range(port - neighbours, port + 1):
                check_port_is_free(needed)
        except SetupError:
            continue
        return port


def check_port_is_free(port: int) -> None:
    """Make sure that nothing listens on a port of 127.0.0.1.

    Raises:
        SetupError: Something does.
    """
    with socket.socket() as probe:
        # As the JVM does on Unix: connections of a server that just ended (TIME_WAIT) do not count as taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError as error:
            message = f"Port {port} of {_HOST} is in use: stop the program that uses it, or choose another port."
            raise SetupError(message) from error
