"""A web server on loopback for which a test answers."""

from __future__ import annotations

import threading
from contextlib import suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Self

__all__ = ["Asked", "Loopback"]


class Asked(NamedTuple):
    """A request: its path has the query."""

    path: str
    headers: Message
    body: bytes


class Loopback:
    """Answers whatever is asked as `answer` says. A context manager."""

    def __init__(self) -> None:
        answer = self.answer

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                code, said = answer(Asked(self.path, self.headers, body))
                with suppress(OSError):  # whose question it was did not wait, or was killed
                    self.send_response(code)
                    self.send_header("Content-Length", str(len(said)))
                    self.end_headers()
                    self.wfile.write(said)

            do_POST = do_PUT = do_GET  # noqa: N815 - their names there

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def answer(self, asked: Asked) -> tuple[int, bytes]:
        """Status and body of the answer."""
        raise NotImplementedError

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._server.server_port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
