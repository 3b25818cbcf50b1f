"""`/health/live` and `/health/ready`: what a supervisor asks a process, and a server of both where there is no other.

A process that is not live is started again, so that speaks of the process alone: a cluster that does not answer is no
reason. Whether it is ready says whether it does its work, and its reasons also name what is wrong beside that.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any, Final

from streaming.exceptions import SetupError

LIVE: Final = "/health/live"
READY: Final = "/health/ready"

# A client that asks nothing holds a thread for so long.
_PATIENCE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Condition:
    """What a process says of itself.

    Attributes:
        holds: Whether it is live, or ready.
        reasons: Sentences: why not, or what somebody should know all the same.
    """

    holds: bool
    reasons: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """The HTTP status."""
        if self.holds:
            return HTTPStatus.OK
        return HTTPStatus.SERVICE_UNAVAILABLE

    def body(self, path: str) -> dict[str, Any]:
        """The answer at a path: {"live" or "ready": bool, "reasons": [sentences]}."""
        return {path.rpartition("/")[2]: self.holds, "reasons": list(self.reasons)}


@contextmanager
def health_served(
    address: tuple[str, int] | None, who: str, setting: str, conditions: Mapping[str, Callable[[], Condition]]
) -> Iterator[None]:
    """Answer on an address of its own, from threads that end with the process; None answers nowhere.

    Args:
        address: Address and port.
        who: Who listens, for the error.
        setting: What sets them, for the error.
        conditions: By path; asked in the threads.

    Raises:
        SetupError: It cannot listen there.
    """
    if address is None:
        yield
        return

    class Answers(BaseHTTPRequestHandler):
        timeout = _PATIENCE_S

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path not in conditions:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            condition = conditions[path]()
            body = json.dumps(condition.body(path)).encode()
            self.send_response(condition.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - its name there

        def log_message(self, *_: object) -> None:
            """Log nothing: supervisors ask every few seconds."""

    # `http.server.HTTPServer` would look up its own name, which takes seconds where there is no name server.
    with listening(address, who, setting) as listener, _Server(address, Answers, bind_and_activate=False) as server:
        server.socket.close()
        server.socket = listener
        server.server_activate()
        threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


class _Server(ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: object) -> None:
        """Say nothing: a client that went away is no news."""


def listening(address: tuple[str, int], who: str, setting: str) -> socket.socket:
    """A socket that is bound to an address and port, where an earlier process may just have ended.

    Args:
        address: Address, without brackets, and port.
        who: Who listens, for the error.
        setting: What sets them, for the error.

    Raises:
        SetupError: It cannot be bound.
    """
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, UnicodeError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        message = (
            f"{who} cannot listen on {where} ({reason}): end what holds the port, or choose another with {setting}."
        )
        raise SetupError(message) from error
    return listener
