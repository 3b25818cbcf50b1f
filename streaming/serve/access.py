"""Who may ask, and what every answer says to browsers: an ASGI layer around everything else."""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streaming.config import ServeSettings
from streaming.serve.problems import problem

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

# Ten wrong passwords a minute and address: nobody guesses a secret so, and a scraper with an old one is let in again a
# minute after it was mended.
_MOST_FAILURES = 10
_WINDOW_S = 60.0
# Addresses that are remembered; the oldest is forgotten first.
_MOST_ADDRESSES = 10_000

OPEN: Final = frozenset({"/health", "/burrow/admin", "/burrow/admin/ready"})
"""Paths without a login: they tell that the server runs, and no names."""


class Guard:
    """Lets through what may be asked: GET and HEAD, under our names, with the token or password where one is set."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, steady: Callable[[], float] = time.monotonic) -> None:
        """Prepare.

        Args:
            app: What answers.
            settings: Token, password, hosts.
            steady: A clock in seconds.
        """
        self._app = app
        self._hosts = frozenset(host.lower() for host in settings.own_hosts)
        self._secrets = tuple(_secrets(settings))
        self._basic = settings.password is not None
        self._path = "/" + settings.path.strip("/") if settings.path.strip("/") else ""
        self._failures: OrderedDict[str, list[float]] = OrderedDict()
        self._steady = steady

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
        refused = self._refusal(scope)
        await (self._app if refused is None else refused)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        if scope["method"] not in {"GET", "HEAD"}:
            return problem(405, "This server only answers GET and HEAD.", headers={"Allow": "GET, HEAD"})
        if self._hosts and _host(headers.get("host", "")) not in self._hosts:
            return problem(421, "This server is not asked under that name: add it to serve.hosts.")
        if not self._secrets or scope["path"].removeprefix(scope.get("root_path", "")) in OPEN:
            return None
        client = scope.get("client")
        return self._login(headers, client[0] if client else "")

    def _login(self, headers: Headers, address: str) -> ASGIApp | None:
        failures = [at for at in self._failures.get(address, ()) if self._steady() - at < _WINDOW_S]
        if len(failures) >= _MOST_FAILURES:
            return problem(429, "Too many wrong logins: wait a minute.", headers={"Retry-After": str(int(_WINDOW_S))})
        given = _given(headers.get("authorization", ""))
        if given is not None and any(hmac.compare_digest(given, secret) for secret in self._secrets):
            self._failures.pop(address, None)
            return None
        if headers.get("authorization"):
            self._failures[address] = [*failures, self._steady()]
            self._failures.move_to_end(address)
            while len(self._failures) > _MOST_ADDRESSES:
                self._failures.popitem(last=False)
        scheme = 'Basic realm="evenkeel", charset="UTF-8"' if self._basic else "Bearer"
        return problem(401, "This server needs a login.", headers={"WWW-Authenticate": scheme})


def _secrets(settings: ServeSettings) -> list[bytes]:
    found = []
    if settings.token is not None:
        found.append(b"bearer " + settings.token.get_secret_value().encode())
    if settings.password is not None:
        found.append(b"basic " + f"{settings.user}:{settings.password.get_secret_value()}".encode())
    return found


def _given(header: str) -> bytes | None:
    scheme, _, rest = header.partition(" ")
    kind = scheme.lower()
    if kind == "bearer":
        # (Starlette decodes headers as Latin-1.)
        return b"bearer " + rest.strip().encode("latin-1")
    if kind == "basic":
        try:
            return b"basic " + base64.b64decode(rest.strip(), validate=True)
        except (binascii.Error, ValueError):
            return None
    return None


def _host(header: str) -> str:
    """A Host header without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()
