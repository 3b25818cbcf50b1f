"""Web servers on loopback: one for which a test answers, and a token endpoint as identity providers have it."""

from __future__ import annotations

import base64
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qs, unquote_plus


class Asked(NamedTuple):
    """A request: its path has the query."""

    path: str
    headers: Message
    body: bytes


class Loopback(ABC):
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

    @abstractmethod
    def answer(self, asked: Asked) -> tuple[int, bytes]:
        """Status and body of the answer."""

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


class TokenEndpoint(Loopback):
    """Runs for the duration of the block; answers the client "me" with `secret`.

    Attributes:
        url: Its address.
        secret: The client's secret.
        reply: Makes an answer, which is sent as JSON.
        asked: The forms that came.
    """

    def __init__(self, reply: Callable[[], Any]) -> None:
        super().__init__()
        self.url = f"http://127.0.0.1:{self.port}/token"
        self.secret = "hunter2: 50%"
        self.reply = reply
        self.asked: list[dict[str, list[str]]] = []

    def answer(self, asked: Asked) -> tuple[int, bytes]:
        self.asked.append(parse_qs(asked.body.decode()))
        scheme, _, text = asked.headers["Authorization"].partition(" ")
        login = [unquote_plus(part) for part in base64.b64decode(text).decode().split(":")]
        is_known = (scheme, login) == ("Basic", ["me", self.secret])
        return 200 if is_known else 401, json.dumps(self.reply()).encode()
