"""A token endpoint as identity providers have it, for one client."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote_plus

__all__ = ["TokenEndpoint"]


class TokenEndpoint:
    """Runs for the duration of the block; answers the client "me" with `secret`.

    Attributes:
        url: Its address.
        secret: The client's secret.
        answer: Makes an answer, which is sent as JSON.
        asked: The forms that came.
    """

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.secret = "hunter2: 50%"
        self.answer = answer
        self.asked: list[dict[str, list[str]]] = []

    def __enter__(self) -> Self:
        endpoint = self

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                endpoint.asked.append(parse_qs(form))
                scheme, _, text = self.headers["Authorization"].partition(" ")
                login = [unquote_plus(part) for part in base64.b64decode(text).decode().split(":")]
                self.send_response(200 if (scheme, login) == ("Basic", ["me", endpoint.secret]) else 401)
                self.end_headers()
                self.wfile.write(json.dumps(endpoint.answer()).encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/token"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
