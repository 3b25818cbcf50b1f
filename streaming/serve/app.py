"""The routes."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from dashboards import Site
from streaming.config import ServeSettings
from streaming.exceptions import EvenkeelError
from streaming.serve import api, burrow
from streaming.serve.access import Guard
from streaming.serve.metrics import OWN, TEXT, ScrapeRefusedError, Scrapes
from streaming.serve.model import Model, round_age_s
from streaming.serve.page import page, problem, takes_gzip
from streaming.serve.page import routes as page_routes

# Paths of clients and scrapers, which get a problem document where people get a page that says what is not there.
_MACHINES = ("/api", "/metrics", "/v3", "/burrow", "/health", "/static")


def application(model: Model, scrapes: Scrapes, settings: ServeSettings, site: Site) -> ASGIApp:
    """The whole server as an ASGI application."""

    async def health(_: Request) -> Response:
        return _health(model)

    async def health_of_alerter(_: Request) -> Response:
        return await run_in_threadpool(_health_of_alerter, model, site)

    async def metrics(request: Request) -> Response:
        return await run_in_threadpool(_metrics, scrapes, request)

    routes = [
        *page_routes(site),
        Route("/health", health),
        Route("/health/alerter", health_of_alerter),
        Route("/metrics", metrics),
        Route("/metrics/{mode}", metrics),
        *api.routes(model, site),
        *(burrow.routes(model) if model.burrow else ()),
    ]

    async def http_error(request: Request, error: Exception) -> Response:
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        if isinstance(error, HTTPException) and error.status_code == 404 and not path.startswith(_MACHINES):
            return await page(site, request)
        return await _http_error(request, error)

    handlers: dict[Any, Any] = {HTTPException: http_error, Exception: _failure}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Guard(app, settings)


def _metrics(scrapes: Scrapes, request: Request) -> Response:
    mode = request.path_params.get("mode") or request.query_params.get("mode") or OWN
    zipped = takes_gzip(request.headers)
    try:
        body = scrapes.scrape(mode, cluster=request.query_params.get("cluster"), zipped=zipped)
    except ScrapeRefusedError as error:
        return problem(error.status, str(error), headers={"Retry-After": "5"} if error.status == 503 else None)
    headers = {"Content-Type": TEXT, "Vary": "Accept-Encoding"}
    return Response(body, headers=headers | ({"Content-Encoding": "gzip"} if zipped else {}))


def _health(model: Model) -> Response:
    """Alive, and whether the lake is followed; without names, because it needs no login."""
    snapshot = model.snapshot
    there = model.there(snapshot) if snapshot else frozenset[str]()
    ages = [round_age_s(snapshot.clusters[name]) for name in there] if snapshot else []
    silent = len(model.silent(snapshot) & there) if snapshot else 0
    followed = model.lake.followed
    status = "ok" if followed and snapshot and not silent else "silent" if followed and snapshot else "starting"
    if snapshot and not ages:
        status = "empty"
    if not followed:
        status = "lake_unreadable"
    body = {
        "status": status,
        "followed": followed,
        "newest_round_age_seconds": round(min(ages), 3) if ages else None,
        "clusters": len(ages),
        "silent_clusters": silent,
    }
    # Silence is the job's trouble: a restart of this server would not mend it.
    return JSONResponse(body, 200 if followed else 503)


def _health_of_alerter(model: Model, site: Site) -> Response:
    """Whether the alerter of every cluster judges rounds, by what it wrote; without names.

    It is unknown for a silent cluster, because an alerter with nothing to judge writes nothing.
    """
    starting = JSONResponse({"status": "starting"}, 503, {"Retry-After": "5"})
    unreadable = JSONResponse({"status": "lake_unreadable"}, 503)
    snapshot = model.snapshot
    if not model.lake.followed:
        return unreadable
    if snapshot is None:
        return starting
    there = model.there(snapshot)
    silent = model.silent(snapshot) & there
    try:
        lives = site.alerters_live(sorted(there - silent))
    except EvenkeelError:
        return unreadable
    if lives is None:
        return starting
    late = sum(one is False for one in lives.values())
    unknown = sum(one is None for one in lives.values()) + len(silent)
    status = "late" if late else "unknown" if unknown or not there else "ok"
    body = {"status": status, "clusters": len(there), "late_clusters": late, "unknown_clusters": unknown}
    return JSONResponse(body, 200 if status == "ok" else 503)


async def _http_error(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = "There is nothing here: / lists what there is." if status == 404 else str(error)
    return problem(status, detail)


async def _failure(_: Request, __: Exception) -> Response:
    # Starlette passes it on to uvicorn, which logs it.
    return problem(500, "The request failed; the server's log has the reason.")
