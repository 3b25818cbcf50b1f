"""Requests to the server in this process, without sockets."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp

__all__ = ["Answer", "ask"]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    app: ASGIApp,
    target: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    client: str = "c",
    body: bytes = b"",
) -> Answer:
    """One request for a path with its query."""
    path, _, query = target.partition("?")
    given = {"host": "localhost", **(headers or {})}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": unquote(path), "raw_path": path.encode(), "query_string": query.encode("latin-1", "replace"),
        "root_path": "", "headers": [(k.lower().encode(), v.encode("latin-1")) for k, v in given.items()],
        "client": (client, 1), "server": ("localhost", 80),
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    async def run() -> None:
        await app(scope, receive, send)

    asyncio.run_coroutine_threadsafe(run(), _loop()).result()
    start = sent[0]
    found = {k.decode(): v.decode("latin-1") for k, v in start["headers"]}
    return Answer(start["status"], found, b"".join(m.get("body", b"") for m in sent[1:]))


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """One loop for all requests, as in the server, and in a thread of its own: a browser's test leaves one in its."""
    loop = asyncio.new_event_loop()
    threading.Thread(
        target=loop.run_until_complete, args=(loop.create_future(),), name="requests of tests", daemon=True
    ).start()
    return loop
