"""A web server on loopback that receives messages, and fails on request."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

__all__ = ["Receiver"]


class Receiver:
    """Receives JSON messages; a context manager.

    Attributes:
        messages: Complete messages in order, including those answered with an error.
        arrived: Released once per message.
        codes: HTTP codes of the next answers; then 200.
        answers: While it is cleared, all answers are held back.
    """

    def __init__(self, *codes: int) -> None:
        self.messages: list[dict[str, Any]] = []
        self.arrived = threading.Semaphore(0)
        self.codes = list(codes)
        self.answers = threading.Event()
        self.answers.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.messages.append(json.loads(body))
                code = receiver.codes.pop(0) if receiver.codes else 200
                receiver.arrived.release()
                receiver.answers.wait(60)
                try:
                    self.send_response(code)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except OSError:
                    pass  # the alerter did not wait, or was killed

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._server.server_port

    @property
    def url(self) -> str:
        """Its Apprise URL, which contains secrets."""
        return f"json://user:hunter2secret@127.0.0.1:{self.port}/hook/t0ken-in-the-path?-key=s3cret-param"

    def wait(self, count: int = 1) -> None:
        """Wait for messages."""
        for _ in range(count):
            assert self.arrived.acquire(timeout=60), f"only {len(self.messages)} messages arrived"

    def told(self) -> list[tuple[str, str]]:
        """State and group of each message."""
        return [(m["state"], m.get("group_id", "")) for m in self.messages]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()
