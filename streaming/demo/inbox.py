"""A receiver of alerts on loopback, so that the demo can show what was sent: one JSON object per line of a file."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

_LONGEST = 1_000_000


class Inbox:
    """Takes what a target `json://` sends. A context manager."""

    def __init__(self, file: Path) -> None:
        """Prepare.

        Args:
            file: Each message is a line of it.
        """
        lock = threading.Lock()
        file.touch()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = min(int(self.headers.get("Content-Length") or 0), _LONGEST)
                message = json.loads(self.rfile.read(length))
                with lock, file.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(message) + "\n")
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="inbox")

    @property
    def url(self) -> str:
        """Its URL as a target of alerts."""
        return f"json://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
