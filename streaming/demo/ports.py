"""Ports for servers that the demo and the tests start."""

from __future__ import annotations

import contextlib
import random
import socket

from streaming.exceptions import SetupError

_HOST = "127.0.0.1"

_PORTS = (20_000, 32_000)
"""Below the ranges that Linux (32768 and up) and macOS (49152 and up) use for outgoing connections."""

# The system's random numbers: Python's shared ones may be seeded (by test libraries such as Hypothesis), and what is
# drawn from them must not depend on how many ports were needed before.
_RANDOM = random.SystemRandom()

_claims: list[socket.socket] = []
"""Sockets that keep the ports given out, until this process ends: each is bound to the UDP port of the same number.

Seconds pass between the choice of a port and the moment its server listens there. A claim does not get in the way of
that server, which uses TCP.
"""


def free_port(neighbours: int = 0) -> int:
    """A free port that no outgoing connection can take while its server restarts, given to one caller only.

    It belongs to the calling process until that process ends: neither a second call nor another process that chooses
    its ports here gets the same one.

    Args:
        neighbours: How many ports right below it must be free as well.
    """
    while True:
        port = _RANDOM.randint(*_PORTS)
        with contextlib.ExitStack() as undo, contextlib.suppress(OSError, SetupError):
            claims = [undo.enter_context(_claim(needed)) for needed in range(port - neighbours, port + 1)]
            undo.pop_all()
            _claims.extend(claims)
            return port


def _claim(port: int) -> socket.socket:
    """Hold a port for this process.

    Raises:
        OSError: It is held already.
        SetupError: A server listens there.
    """
    check_port_is_free(port)
    claim = socket.socket(type=socket.SOCK_DGRAM)
    try:
        claim.bind((_HOST, port))
    except OSError:
        claim.close()
        raise
    return claim


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
