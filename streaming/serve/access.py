"""Who may ask, what every answer says to browsers, and what those may cost who guess a login or read slowly.

Many people and scrapers may come from one address (NAT, a proxy), and any of them may be wrong for days: a scraper with
an old token. So nobody is locked out because of others: a wrong login only waits a second for its answer. A client that
sends or reads slowly costs a connection for some seconds, and no copy of a body.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from pydantic import SecretStr
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from streaming.config import ServeSettings
from streaming.serve.api import MARKS
from streaming.serve.page import problem

_SLICE: Final = 64 * 1024


class TimedConnection(H11Protocol):
    """uvicorn's connection, which by itself waits for ever for a head and for a reader.

    Without these limits a client that opens connections and says nothing would use up `limit_concurrency`.

    Attributes:
        head_s: A request's head must be there within this time after the connection, or after the answer before.
        read_s: What is buffered of an answer, some 64 KB, must be read within this time.
    """

    head_s = 10.0
    read_s = 30.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a head."""
        super().connection_made(transport)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._expect("head", self.head_s)

    def data_received(self, data: bytes) -> None:
        """Take bytes; a head that comes byte by byte gets no more time."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget("head")
        else:
            self._expect("head", self.head_s)

    def pause_writing(self) -> None:
        """The buffer is full: the reader has some time."""
        super().pause_writing()
        self._expect("reader", self.read_s)

    def resume_writing(self) -> None:
        """The buffer was read."""
        super().resume_writing()
        self._forget("reader")

    def timeout_keep_alive_handler(self) -> None:
        """No further request came. A close waits until everything was read, so that, too, gets a limit."""
        super().timeout_keep_alive_handler()
        self._expect("reader", self.read_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        super().connection_lost(exc)
        self._forget("head")
        self._forget("reader")

    def _expect(self, what: str, seconds: float) -> None:
        """End the connection after some seconds, unless what is expected comes; they may have begun already."""
        if what not in self._timers:
            self._timers[what] = self.loop.call_later(seconds, self.transport.abort)

    def _forget(self, what: str) -> None:
        timer = self._timers.pop(what, None)
        if timer is not None:
            timer.cancel()


class SharedBody(Response):
    """Bytes that many answers share: sent in slices, so that a slow reader holds one slice and not a copy."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        """Send."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body: Any = memoryview(self.body)
        for begin in range(0, len(body), _SLICE):
            part = bytes(body[begin : begin + _SLICE])
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


# A wrong login is answered after this time, and an address has this many of them under way: 20 a second guess nothing
# that deserves the name of a secret, and a scraper's timeout is longer than a second.
_PAUSE_S: Final = 1.0
_MOST_WAITING: Final = 20


class Guesses:
    """Wrong logins that wait for their answer, by address."""

    def __init__(self, pause: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        """Begin with none; `pause` waits for some seconds."""
        self._pause = pause
        self._waiting: Counter[str] = Counter()

    def too_many(self, address: str) -> bool:
        """Whether so many of an address wait that no other login of it is looked at."""
        return self._waiting[address] >= _MOST_WAITING

    async def was_wrong(self, address: str) -> None:
        """Let a wrong login wait."""
        self._waiting[address] += 1
        try:
            await self._pause(_PAUSE_S)
        finally:
            self._waiting[address] -= 1
            if not self._waiting[address]:
                del self._waiting[address]


# Nothing from elsewhere, nothing inline, in no frame, no address told to others.
_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

OPEN: Final = frozenset({"/health", "/health/alerter", "/burrow/admin", "/burrow/admin/ready"})
"""Paths without a login: they say that the server runs, and show no names."""


class Guard:
    """Lets through what may be asked, under our names.

    GET and HEAD, with the token or password where one is set, and one POST where it has a token of its own.
    """

    def __init__(self, app: ASGIApp, settings: ServeSettings, guesses: Guesses | None = None) -> None:
        """Prepare.

        Args:
            app: What answers.
            settings: Token, password, hosts.
            guesses: What slows down who guesses; None for one of its own.
        """
        self._app = app
        self._hosts = frozenset(host.lower() for host in settings.own_hosts)
        self._secrets = tuple(_secrets(settings))
        self._writes = None if settings.marks_token is None else _bearer(settings.marks_token)
        self._basic = settings.password is not None
        self._path = "/" + settings.path.strip("/") if settings.path.strip("/") else ""
        self._guesses = guesses or Guesses()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        # A proxy may take its path off, or leave it.
        if self._path and f"{scope['path']}/".startswith(f"{self._path}/"):
            scope = {**scope, "root_path": self._path}
        refused = await self._refusal(scope)
        await (self._app if refused is None else refused)(scope, receive, with_headers)

    async def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        client = scope.get("client")
        address = client[0] if client else ""
        writes = scope["method"] == "POST" and path == MARKS
        if scope["method"] not in {"GET", "HEAD"} and not writes:
            return problem(405, "This server only answers GET and HEAD.", headers={"Allow": "GET, HEAD"})
        if self._hosts and _host(headers.get("host", "")) not in self._hosts:
            return problem(421, "This server is not asked under that name: add it to serve.hosts.")
        if writes:
            if self._writes is None:
                return problem(403, "This server takes no marks: set EVENKEEL_SERVE__MARKS_TOKEN.")
            return await self._login(headers.get("authorization", ""), address, (self._writes,), "Bearer")
        if not self._secrets or path in OPEN:
            return None
        scheme = 'Basic realm="evenkeel", charset="UTF-8"' if self._basic else "Bearer"
        return await self._login(headers.get("authorization", ""), address, self._secrets, scheme)

    async def _login(self, login: str, address: str, secrets: tuple[bytes, ...], scheme: str) -> ASGIApp | None:
        if login:
            if self._guesses.too_many(address):
                return problem(429, "Too many wrong logins from your address: try again.", headers={"Retry-After": "1"})
            given = _given(login)
            if any(hmac.compare_digest(given, secret) for secret in secrets):
                return None
            await self._guesses.was_wrong(address)
        return problem(401, "This server needs a login.", headers={"WWW-Authenticate": scheme})


def _secrets(settings: ServeSettings) -> list[bytes]:
    found = []
    if settings.token is not None:
        found.append(_bearer(settings.token))
    if settings.password is not None:
        login = f"{settings.user}:{settings.password.get_secret_value()}"
        found.append(b"basic " + base64.b64encode(login.encode()))
    return found


def _bearer(token: SecretStr) -> bytes:
    return b"bearer " + token.get_secret_value().encode()


_BLANKS: Final = " \t"


def _given(header: str) -> bytes:
    scheme, _, rest = header.partition(" ")
    # Starlette decodes headers as Latin-1, of which some letters are blanks to Python.
    return f"{scheme.lower()} {rest.strip(_BLANKS)}".encode("latin-1")


def _host(header: str) -> str:
    """A Host header without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()
