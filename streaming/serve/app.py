"""The routes."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from dashboards import Site
from streaming.config import ServeSettings
from streaming.serve import api, burrow, health
from streaming.serve.access import Guard
from streaming.serve.metrics import OWN, TEXT, Scrapes
from streaming.serve.model import Model
from streaming.serve.page import page, problem, takes_gzip
from streaming.serve.page import routes as page_routes

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
