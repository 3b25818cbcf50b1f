"""The routes, and who may ask.

Many people and scrapers may come from one address (NAT, a proxy), and any of them may be wrong for days: a scraper with
an old token. So nobody is locked out because of others: a wrong login only waits a second for its answer. Against
clients that open connections and say nothing, put a proxy in front.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboards import Site
from streaming.config import ServeSettings
from streaming.serve import api, burrow, health
from streaming.serve.api import MARKS
from streaming.serve.metrics import OWN, TEXT, Scrapes
from streaming.serve.model import Model
from streaming.serve.page import page, problem, takes_gzip
from streaming.serve.page import routes as page_routes

# A wrong login is answered after this time; a scraper's timeout is longer.
_PAUSE_S: Final = 1.0

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

OPEN: Final = health.PATHS | {"/burrow/admin", "/burrow/admin/ready"}
"""Paths without a login: they say that the server runs, and show no names."""


class Guard:
    """Lets through what may be asked, under our names.

    GET and HEAD, with the token or password where one is set, and one POST where it has a token of its own.
    """

    def __init__(
        self, app: ASGIApp, settings: ServeSettings, pause: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        """Prepare.

        Args:
            app: What answers.
            settings: Token, password, hosts.
            pause: Waits for some seconds.
        """
        self._app = app
        self._hosts = frozenset(host.lower() for host in settings.own_hosts)
        self._secrets = tuple(_secrets(settings))
        self._writes = None if settings.marks_token is None else _bearer(settings.marks_token)
        self._basic = settings.password is not None
        self._path = "/" + settings.path.strip("/") if settings.path.strip("/") else ""
        self._pause = pause

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
        writes = scope["method"] == "POST" and path == MARKS
        if scope["method"] not in {"GET", "HEAD"} and not writes:
            return problem(405, "This server only answers GET and HEAD.", headers={"Allow": "GET, HEAD"})
        if self._hosts and _host(headers.get("host", "")) not in self._hosts:
            return problem(421, "This server is not asked under that name: add it to serve.hosts.")
        if writes:
            if self._writes is None:
                return problem(403, "This server takes no marks: set EVENKEEL_SERVE__MARKS_TOKEN.")
            return await self._login(headers.get("authorization", ""), (self._writes,), "Bearer")
        if not self._secrets or path in OPEN:
            return None
        scheme = 'Basic realm="evenkeel", charset="UTF-8"' if self._basic else "Bearer"
        return await self._login(headers.get("authorization", ""), self._secrets, scheme)

    async def _login(self, login: str, secrets: tuple[bytes, ...], scheme: str) -> ASGIApp | None:
        if login:
            given = _given(login)
            if any(hmac.compare_digest(given, secret) for secret in secrets):
                return None
            await self._pause(_PAUSE_S)
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


# Paths of clients and scrapers, which get a problem document where people get a page that says what is not there.
_MACHINES = ("/api", "/metrics", "/v3", "/burrow", "/health", "/static")


def application(
    model: Model, scrapes: Scrapes, settings: ServeSettings, site: Site, alerter_lives: Callable[[], bool] | None = None
) -> ASGIApp:
    """The whole server as an ASGI application; `alerter_lives` is None where it judges no alerts."""

    async def metrics(request: Request) -> Response:
        return await run_in_threadpool(_metrics, scrapes, request)

    routes = [
        *page_routes(site),
        *health.routes(model, site, alerter_lives),
        Route("/metrics", metrics),
        Route("/metrics/{mode}", metrics),
        *api.routes(model, site),
        *(burrow.routes(model) if model.burrow else ()),
    ]

    async def refused(request: Request, error: HTTPException) -> Response:
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        if error.detail != HTTPStatus.NOT_FOUND.phrase:
            return problem(error.status_code, error.detail, headers=error.headers)
        # It is Starlette's own: no route fits.
        if path.startswith(_MACHINES):
            return problem(404, "There is nothing here: / lists what there is.")
        return await page(site, request)

    handlers: dict[Any, Any] = {HTTPException: refused, Exception: _failure}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Guard(app, settings)


def _metrics(scrapes: Scrapes, request: Request) -> Response:
    mode = request.path_params.get("mode") or request.query_params.get("mode") or OWN
    zipped = takes_gzip(request.headers)
    body = scrapes.scrape(mode, cluster=request.query_params.get("cluster"), zipped=zipped)
    headers = {"Content-Type": TEXT, "Vary": "Accept-Encoding"}
    return Response(body, headers=headers | ({"Content-Encoding": "gzip"} if zipped else {}))


async def _failure(_: Request, __: Exception) -> Response:
    # Starlette passes it on to uvicorn, which logs it.
    return problem(500, "The request failed; the server's log has the reason.")
