"""What the server says of itself, without names, because it needs no login.

A server that is not live is started again, and one that is not ready gets no requests from Kubernetes: so both speak of
the server alone, and a silent job only adds a reason. The page is what shows people that the job is silent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dashboards import Site
from streaming.exceptions import EvenkeelError
from streaming.health import LIVE, READY, Condition
from streaming.serve.model import Model, round_age_s

PATHS: Final = frozenset({"/health", "/health/alerter", LIVE, READY})


def routes(model: Model, site: Site, alerter_lives: Callable[[], bool] | None) -> list[Route]:
    """The routes; `alerter_lives` is None where the server judges no alerts."""

    async def summary(_: Request) -> Response:
        return _summary(model)

    async def of_alerter(_: Request) -> Response:
        return await run_in_threadpool(_of_alerter, model, site)

    async def live(_: Request) -> Response:
        return _answer(LIVE, _live(model, alerter_lives))

    async def ready(_: Request) -> Response:
        return _answer(READY, _ready(model))

    return [
        Route("/health", summary),
        Route("/health/alerter", of_alerter),
        Route(LIVE, live),
        Route(READY, ready),
    ]


def _answer(path: str, condition: Condition) -> Response:
    return JSONResponse(condition.body(path), condition.status)


def _live(model: Model, alerter_lives: Callable[[], bool] | None) -> Condition:
    """Whether the process's threads live."""
    reasons = []
    if not model.lake.lives:
        reasons.append("The thread that reads the tables has ended, or hangs.")
    if alerter_lives is not None and not alerter_lives():
        reasons.append("The thread that judges alerts has ended.")
    return Condition(not reasons, tuple(reasons))


def _ready(model: Model) -> Condition:
    """Whether it can show the present, as far as the tables have it."""
    snapshot = model.snapshot
    if not model.lake.followed:
        return Condition(False, ("The tables cannot be read: the server's log has the reason.",))
    if snapshot is None:
        return Condition(False, ("The tables are still being read.",))
    if not snapshot.clusters:
        said = "There is no round in the tables yet: if probe and job run, check that `lake` is the same for all."
        return Condition(True, (said,))
    there = model.there(snapshot)
    silent = len(model.silent(snapshot) & there)
    if not silent:
        return Condition(True)
    said = f"{silent} of {len(there)} clusters have had no new round for longer than the alert rules allow."
    return Condition(True, (f"{said} Their probe or the job has stopped, and what is shown of them is the past.",))


def _summary(model: Model) -> Response:
    """Alive, and whether the lake is followed; without names, because it needs no login."""
    snapshot = model.snapshot
    there = model.there(snapshot) if snapshot else frozenset[str]()
    ages = [round_age_s(snapshot.clusters[name]) for name in there & snapshot.clusters.keys()] if snapshot else []
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
        "clusters": len(there),
        "silent_clusters": silent,
    }
    # Silence is the job's trouble: a restart of this server would not mend it.
    return JSONResponse(body, 200 if followed else 503)


def _of_alerter(model: Model, site: Site) -> Response:
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
