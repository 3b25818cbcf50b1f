"""The process `evenkeel serve`: its routes, who may ask, its begin and its end.

Many people and scrapers may come from one address (NAT, a proxy), and any of them may be wrong for days: a scraper with
an old token. So nobody is locked out because of others: a wrong login only waits a second for its answer. Against
clients that open connections and say nothing, put a proxy in front.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NoReturn

import uvicorn
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboards import Site
from streaming.alerts import ALERTS_GRACE_S, AlerterFleet
from streaming.config import ServeSettings, Settings
from streaming.exceptions import SetupError
from streaming.health import listening
from streaming.lifecycle import exit_code, on_stop_signals, room_log, set_up_log
from streaming.serve import burrow, health
from streaming.serve.api import routes as api
from streaming.serve.metrics.exposition import TEXT
from streaming.serve.metrics.modes import OWN
from streaming.serve.metrics.scrapes import Scrapes
from streaming.serve.model import Model
from streaming.serve.page import page, problem
from streaming.serve.page import routes as page_routes

if TYPE_CHECKING:
    from streaming.serve.metrics.otlp import Push


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
                if scope["path"].removeprefix(self._path).startswith("/static/"):
                    # No name is in them: browsers keep them, and ask whether they have changed.
                    headers["Cache-Control"] = "no-cache"
            await send(message)

        # A proxy may take its path off, or leave it.
        if self._path and f"{scope['path']}/".startswith(f"{self._path}/"):
            scope = {**scope, "root_path": self._path, "app_root_path": self._path}
        refused = await self._refusal(scope)
        await (self._app if refused is None else refused)(scope, receive, with_headers)

    async def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        writes = scope["method"] == "POST" and path == api.MARKS
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


# A page takes a fifth of the time of level 9, and is some percent larger.
_ZIP_LEVEL: Final = 4

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
        # Below a mount, `root_path` is the mount's.
        path = request.scope["path"].removeprefix(request.scope.get("app_root_path", ""))
        if error.detail != HTTPStatus.NOT_FOUND.phrase:
            return problem(error.status_code, error.detail, headers=error.headers)
        # It is Starlette's own: no route fits.
        if path.startswith(_MACHINES):
            return problem(404, "There is nothing here: / lists what there is.")
        return await page(site, request)

    handlers: dict[Any, Any] = {HTTPException: refused, Exception: _failure}
    # Expositions zip themselves, each once for all who scrape.
    zipping = Middleware(GZipMiddleware, compresslevel=_ZIP_LEVEL, exclude_content_types=("text/plain",))
    app = Starlette(routes=routes, exception_handlers=handlers, middleware=[zipping])
    app.router.redirect_slashes = False
    return Guard(app, settings)


def _metrics(scrapes: Scrapes, request: Request) -> Response:
    mode = request.path_params.get("mode") or request.query_params.get("mode") or OWN
    encodings = request.headers.get("accept-encoding", "").replace(" ", "")
    zipped = "gzip" in encodings and "gzip;q=0" not in encodings
    body = scrapes.scrape(mode, cluster=request.query_params.get("cluster"), zipped=zipped)
    headers = {"Content-Type": TEXT, "Vary": "Accept-Encoding"}
    return Response(body, headers=headers | ({"Content-Encoding": "gzip"} if zipped else {}))


async def _failure(_: Request, __: Exception) -> Response:
    # Starlette passes it on to uvicorn, which logs it.
    return problem(500, "The request failed; the server's log has the reason.")


_LOG = room_log(__name__)

# Time for answers under way, and then for the thread that reads the lake.
_GRACE_S = 3

_SETTING = "[serve] listen in evenkeel.toml, EVENKEEL_SERVE__LISTEN or --listen"

# A path may name a group of 32,767 bytes, each written as %XX.
_LONGEST_HEAD = 112 * 1024

# Requests beyond this number of connections are refused; a scraper and a few dozen viewers need less.
_MOST_AT_ONCE = 500


class _Server(uvicorn.Server):
    """Ends as our other processes do: a stop signal is no failure."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return on_stop_signals(self._ask)

    def _ask(self, _: int) -> None:
        self.should_exit = True


def main(clusters: Sequence[Settings]) -> int:
    """Serve until SIGINT or SIGTERM, which end the process with exit code 0; returns the exit code of a failure.

    Args:
        clusters: The settings of every cluster. What is shared (lake, server, rules, owners) is the same in each.
    """
    set_up_log({"uvicorn.error": logging.WARNING, "urllib3": logging.ERROR})  # its warnings have paths of URLs
    return exit_code(lambda: _run(clusters))


def _run(clusters: Sequence[Settings]) -> NoReturn:
    # The longest heartbeat says how far back the present of all begins.
    settings = max(clusters, key=lambda one: one.job.heartbeat_ms)
    serve = settings.serve
    alerters = AlerterFleet(clusters) if serve.alerts else None
    with listening(serve.address, "The server", _SETTING) as listener:
        model = Model(settings)
        site = Site(
            model.lake,
            settings.lake,
            settings.owners,
            refresh_ms=serve.refresh_ms,
            rules=settings.alerts.rules,
        )
        scrapes = Scrapes(model, serve, site.alerters_live)
        alerters_live = None if alerters is None else lambda: alerters.live
        server = _Server(_config(application(model, scrapes, serve, site, alerters_live)))
        host, port = listener.getsockname()[:2]
        where = f"{f'[{host}]' if ':' in host else host}:{port}/{serve.path.strip('/')}".rstrip("/")
        _LOG.info("the page is at http://%s, with metrics and API, of the tables in %s", where, settings.lake)
        if serve.token is None and serve.password is None and not serve.own_hosts:
            _LOG.warning("everyone who reaches this address can read it: set EVENKEEL_SERVE__TOKEN, or use a proxy")
        push = _push(scrapes, serve)
        model.lake.start()
        if alerters is not None:
            alerters.start()
        server.run(sockets=[listener])
        if alerters is not None:
            alerters.stop(ALERTS_GRACE_S)
        if push is not None:
            push.stop()
        model.lake.stop(_GRACE_S)
        site.stop()
    # A thread that reads the lake may be inside DuckDB for minutes: the interpreter would wait for it, or print long
    # errors, and there is nothing to save.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _push(scrapes: Scrapes, serve: ServeSettings) -> Push | None:
    """Begin to push metrics, where the settings say so to whom.

    Raises:
        SetupError: OpenTelemetry's packages are not installed.
    """
    if serve.otlp_endpoint is None:
        return None
    try:
        from streaming.serve.metrics.otlp import Push  # noqa: PLC0415 - an extra, which only this needs
    except ModuleNotFoundError as missing:
        message = f"serve.otlp_endpoint needs the package {missing.name}: install evenkeel[otlp]."
        raise SetupError(message) from None
    push = Push(scrapes, serve)
    push.start()
    return push


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_LONGEST_HEAD,
        limit_concurrency=_MOST_AT_ONCE,
        timeout_graceful_shutdown=_GRACE_S,
    )
