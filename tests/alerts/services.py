"""The services that receive alerts, as recorders on loopback: the real plug-ins' messages by real HTTP and SMTP."""

from __future__ import annotations

import email
import json
import socketserver
import threading
from dataclasses import dataclass
from email.message import Message as Mail
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

from tests.loopback import Asked, Loopback


class Receiver(Loopback):
    """Receives JSON messages; a context manager.

    Attributes:
        messages: Complete messages in order, including those answered with an error.
        arrived: Released once per message.
        codes: HTTP codes of the next answers; then 200.
        answers: While it is cleared, all answers are held back.
    """

    def __init__(self, *codes: int) -> None:
        super().__init__()
        self.messages: list[dict[str, Any]] = []
        self.arrived = threading.Semaphore(0)
        self.codes = list(codes)
        self.answers = threading.Event()
        self.answers.set()

    def answer(self, asked: Asked) -> tuple[int, bytes]:
        self.messages.append(json.loads(asked.body))
        code = self.codes.pop(0) if self.codes else 200
        self.arrived.release()
        self.answers.wait(60)
        return code, b""

    @property
    def url(self) -> str:
        """Its Apprise URL, which contains secrets."""
        return f"json://user:hunter2secret@127.0.0.1:{self.port}/hook/t0ken-in-the-path?-key=s3cret-param"

    def wait(self, count: int = 1) -> None:
        """Wait for messages."""
        for _ in range(count):
            assert self.arrived.acquire(timeout=60), f"only {len(self.messages)} messages arrived"

    def states_of_groups(self) -> list[tuple[str, str]]:
        """State and group of each message."""
        return [(m["state"], m.get("group_id", "")) for m in self.messages]

    def __exit__(self, *_: object) -> None:
        self.answers.set()
        super().__exit__()


# Answers of services that are queried before a message is sent, and of the one that answers "ok" as text.
_ANSWERS: dict[str, bytes] = {
    "/_matrix/": json.dumps(
        {"user_id": "@e:m", "access_token": "a", "home_server": "m", "room_id": "!r:m", "joined_rooms": ["!r:m"]}
    ).encode(),
    "/services/": b"ok",
    "/jsm/": b'{"requestId": "1"}',
}


@dataclass(frozen=True)
class Request:
    """One request that was sent.

    Attributes:
        host: The original host.
        path: Path, without the query.
        body: Its body.
    """

    host: str
    path: str
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, str]:
        """The body as a form."""
        return {name: values[0] for name, values in parse_qs(self.body.decode()).items()}


class Services(Loopback):
    """Receives all HTTP(S) requests to any host; a context manager.

    Attributes:
        requests: Requests with a body, in order.
        codes: HTTP codes of the next answers; then 200.
    """

    def __init__(self, *codes: int) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self.codes = list(codes)
        self._patch = pytest.MonkeyPatch()

    def answer(self, asked: Asked) -> tuple[int, bytes]:
        host, path = str(asked.headers["X-Host"]), urlsplit(asked.path).path
        if asked.body:
            self.requests.append(Request(host, path, asked.body))
        code = self.codes.pop(0) if asked.body and self.codes else 200
        return code, next((said for start, said in _ANSWERS.items() if path.startswith(start)), b"{}")

    def __enter__(self) -> Self:
        sent = requests.adapters.HTTPAdapter.send

        # Replaced is the last step of `requests` before the network: plug-ins, URLs and bodies are the real ones.
        def to_us(adapter: Any, request: requests.PreparedRequest, **named: Any) -> requests.Response:
            asked = urlsplit(request.url or "")
            request.headers["X-Host"] = str(asked.netloc)
            request.url = f"http://127.0.0.1:{self.port}{asked.path}?{asked.query}"
            return sent(adapter, request, **{**named, "proxies": {}})

        self._patch.setattr(requests.adapters.HTTPAdapter, "send", to_us)
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        self._patch.undo()
        super().__exit__()


class MailServer:
    """Receives mail over SMTP; a context manager.

    Attributes:
        mails: Received mails, in order.
    """

    def __init__(self) -> None:
        self.mails: list[Mail] = []
        mails = self.mails

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self._say("220 here")
                while line := self.rfile.readline():
                    word = line[:4].upper().strip()
                    if word == b"DATA":
                        self._say("354 go on")
                        mails.append(email.message_from_bytes(b"".join(iter(self.rfile.readline, b".\r\n"))))
                    self._say("221 bye" if word == b"QUIT" else "250 ok")
                    if word == b"QUIT":
                        return

            def _say(self, line: str) -> None:
                self.wfile.write(f"{line}\r\n".encode())

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Apprise URL."""
        return f"mailto://127.0.0.1:{self._server.server_address[1]}?from=evenkeel@example.org&to=ops@example.org"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
