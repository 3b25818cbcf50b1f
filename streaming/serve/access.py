"""Who may ask, and what every answer says to browsers: an ASGI layer around everything else."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping
from typing import Final

from pydantic import SecretStr
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streaming.config import ServeSettings
from streaming.serve.api import MARKS
from streaming.serve.guesses import Guesses
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

OPEN: Final = frozenset({"/health", "/health/alerter", "/burrow/admin", "/burrow/admin/ready"})
"""Paths without a login: they tell that the server runs, and no names."""


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
            if not await self._guesses.may_try(address):
                return problem(429, "Too many wrong logins from your address: try again.", headers={"Retry-After": "1"})
            given = _given(login)
            if given is not None and any(hmac.compare_digest(given, secret) for secret in secrets):
                return None
            self._guesses.was_wrong(address, login)
        return problem(401, "This server needs a login.", headers={"WWW-Authenticate": scheme})


def _secrets(settings: ServeSettings) -> list[bytes]:
    found = []
    if settings.token is not None:
        found.append(_bearer(settings.token))
    if settings.password is not None:
        found.append(b"basic " + f"{settings.user}:{settings.password.get_secret_value()}".encode())
    return found


def _bearer(token: SecretStr) -> bytes:
    return b"bearer " + token.get_secret_value().encode()


def _given(header: str) -> bytes | None:
    scheme, _, rest = header.partition(" ")
    kind = scheme.lower()
    if kind == "bearer":
        # (Starlette decodes headers as Latin-1.)
        return b"bearer " + rest.strip(" \t").encode("latin-1")
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
