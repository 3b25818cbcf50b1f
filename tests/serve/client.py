"""The server, asked in this process without sockets or as users start it, and what a reader sees of its answers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_from_bytes, unquote

from hypothesis import strategies as st
from starlette.types import ASGIApp

from streaming.demo.ports import free_port
from streaming.serve.api.listings import encode_cursor
from streaming.serve.metrics.scrapes import Scrapes
from streaming.serve.model import Model
from tests.dashboards.made_lake import CLUSTER, HOSTILE, MadeLake
from tests.started import EVENKEEL, Started, get


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
    request_is_read = asyncio.Event()

    async def receive() -> Any:
        if not request_is_read.is_set():
            request_is_read.set()
            return {"type": "http.request", "body": body, "more_body": False}
        return await asyncio.Future()  # the client stays

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


@dataclass
class Served:
    lake: MadeLake
    model: Model
    scrapes: Scrapes
    app: ASGIApp
    quiet_s: dict[str, float]
    steady_s: float = 1_000.0

    def poll(self) -> None:
        """One poll of the lake, as the thread does it."""
        self.model.lake.poll()
        while self.model.lake.read_on():
            pass
        self.model.renew_snapshot()

    def get(self, target: str, **more: Any) -> Answer:
        return ask(self.app, target, **more)

    def metric(self, line: str, target: str = "/metrics") -> float:
        """The value of one series, by the beginning of its line."""
        found = [text for text in self.get(target).text.split("\n") if text.startswith(f"{line} ")]
        assert len(found) == 1, (line, found)
        return float(found[0].rpartition(" ")[2])


def add_other_cluster(lake: MadeLake, name: str) -> None:
    """A round of now of another cluster."""
    now = int(lake.end.timestamp() * 1000)
    lake.add("rounds", {"cluster": name, "event_date": now // 86_400_000, "round": 1, "round_time": now})


class Seen(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def links(self) -> list[str]:
        return [attrs["href"] or "" for tag, attrs in self.tags if tag == "a" and "href" in attrs]


def answered(served: Served, target: str) -> Answer:
    """The answer of a board that waits no longer for its older rows: they are there, or it cannot be shown."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        answer = served.get(target)
        if "Older rows are being read" not in answer.text:
            return answer
        # A rendering is kept until something changes.
        served.model.lake.forget()
    raise AssertionError(f"{target} never had its older rows")


def shown(served: Served, target: str) -> str:
    """A board once its older rows are there."""
    answer = answered(served, target)
    assert answer.status == 200, (target, answer.text[-900:])
    return answer.text


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


_PAUSE_S = 0.05
"""Without a pause, the asking takes as much processor time as the answer."""


@contextmanager
def running(
    lake: Path | str, log: Path, *, until: str = "ok silent", **environment: str
) -> Iterator[tuple[str, Started]]:
    """The process, once `/health` says one of some words; yields its address."""
    port = free_port()
    given = {**os.environ, "EVENKEEL_SERVE__REFRESH_MS": "500", "EVENKEEL_SERVE__ALERTS": "false", **environment}
    command = [EVENKEEL, "serve", "--lake", str(lake), "--listen", f"127.0.0.1:{port}"]
    with Started(command, log, given) as process:
        address = f"http://127.0.0.1:{port}"
        process.until(lambda: _status(address) in until.split())
        yield address, process


def pause() -> None:
    """Between two questions of a test that asks until the answer is there."""
    threading.Event().wait(_PAUSE_S)


def _status(address: str) -> str:
    status, said = get(f"{address}/health")
    return str(json.loads(said)["status"]) if status == 200 else ""


TEXTS = st.one_of(
    st.text(max_size=60).map(lambda text: quote(text.encode("utf-8", "surrogatepass"))),
    st.binary(max_size=60).map(quote_from_bytes),
    st.sampled_from([*map(quote, HOSTILE), CLUSTER, "null", "0", "-1", "1000", "1" * 400, "1e9", "NaN", "%00", "+"]),
    st.datetimes().map(lambda time: quote(f"{time.isoformat()}Z")),
    st.lists(st.one_of(st.text(max_size=9), st.integers(), st.floats(allow_nan=False), st.none()),
             max_size=5).map(encode_cursor),
)  # fmt: skip
