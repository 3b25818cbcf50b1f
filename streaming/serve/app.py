"""The routes."""

from __future__ import annotations

from html import escape
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from streaming.config import ServeSettings
from streaming.serve import api, burrow
from streaming.serve.access import Guard
from streaming.serve.metrics import (
    MODES,
    OPEN_METRICS,
    OWN,
    TEXT,
    NoRoundsError,
    Scrapes,
    StartingError,
    WhichClusterError,
    takes_gzip,
    wants_open_metrics,
)
from streaming.serve.model import Model, round_age_s
from streaming.serve.problems import problem, quoted
from streaming.serve.slow_clients import SharedBody

_NO_ROUNDS = "There is no round in the lake yet: if the job is running, check that `lake` is the same for both."

_STARTING = "The tables are still being read: ask again in some seconds."


def application(model: Model, scrapes: Scrapes, settings: ServeSettings) -> ASGIApp:
    """The whole server as an ASGI application."""
    places = [("metrics", "our own metrics"), *((f"metrics/{mode}", f"metrics as {mode} names them") for mode in MODES)]
    places.append((f"{api.PREFIX[1:]}/openapi.json", "the API's description"))
    places.append(("health", "whether this server follows the lake"))
    index = _index(places)

    async def root(_: Request) -> Response:
        return HTMLResponse(index)

    async def health(_: Request) -> Response:
        return _health(model)

    async def metrics(request: Request) -> Response:
        return await run_in_threadpool(_metrics, scrapes, request)

    routes = [
        Route("/", root),
        Route("/health", health),
        Route("/metrics", metrics),
        Route("/metrics/{mode}", metrics),
        *api.routes(model),
        *(burrow.routes(model) if model.burrow else ()),
    ]
    handlers: dict[Any, Any] = {HTTPException: _http_error, Exception: _failure}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Guard(app, settings)


def _metrics(scrapes: Scrapes, request: Request) -> Response:
    mode = request.path_params.get("mode") or request.query_params.get("mode") or OWN
    if mode != OWN and mode not in MODES:
        return problem(404, f"There is no mode {quoted(mode)}: it may be {', '.join((OWN, *MODES))}.")
    cluster = request.query_params.get("cluster")
    open_metrics = wants_open_metrics(request.headers.get("accept", ""))
    zipped = takes_gzip(request.headers.get("accept-encoding", ""))
    try:
        body = scrapes.scrape(mode, open_metrics=open_metrics, cluster=cluster, zipped=zipped)
    except StartingError:
        return problem(503, _STARTING, headers={"Retry-After": "5"})
    except NoRoundsError:
        return problem(503, _NO_ROUNDS, headers={"Retry-After": "5"})
    except WhichClusterError:
        return problem(400, f"The names of {mode} have no label for the cluster: add ?cluster= and its name.")
    if body is None:
        return problem(404, f"There is no cluster {quoted(cluster or '')} in the lake.")
    headers = {"Content-Type": OPEN_METRICS if open_metrics else TEXT, "Vary": "Accept, Accept-Encoding"}
    return SharedBody(body, headers=headers | ({"Content-Encoding": "gzip"} if zipped else {}))


def _health(model: Model) -> Response:
    """Alive, and whether the lake is followed; without names, because it needs no login."""
    snapshot = model.snapshot
    ages = [round_age_s(cluster) for cluster in snapshot.clusters.values()] if snapshot else []
    silent = len(model.silent(snapshot)) if snapshot else 0
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


def _index(places: list[tuple[str, str]]) -> str:
    # (Relative, so that they hold under any path of a proxy.)
    items = "".join(f'<li><a href="{escape(path)}">{escape(path)}</a>: {escape(what)}</li>' for path, what in places)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Evenkeel</title></head>'
        f"<body><h1>Evenkeel</h1><ul>{items}</ul></body></html>"
    )


async def _http_error(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = "There is nothing here: / lists what there is." if status == 404 else str(error)
    return problem(status, detail)


async def _failure(_: Request, __: Exception) -> Response:
    # (Starlette passes it on to uvicorn, which logs it.)
    return problem(500, "The request failed; the server's log has the reason.")
