"""The process `evenkeel serve`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NoReturn

import uvicorn
from starlette.types import ASGIApp

from dashboards import Site
from streaming.alerts import ALERTS_GRACE_S, AlerterFleet
from streaming.config import ServeSettings, Settings
from streaming.exceptions import SetupError
from streaming.health import listening
from streaming.lifecycle import exit_code, on_stop_signals, room_log, set_up_log
from streaming.serve.app import application
from streaming.serve.metrics import Scrapes
from streaming.serve.model import Model

if TYPE_CHECKING:
    from streaming.serve.metrics.otlp import Push

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
    set_up_log({"uvicorn.error": logging.WARNING, "urllib3": logging.ERROR})  # (whose warnings contain paths of URLs)
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
        model.start()
        if alerters is not None:
            alerters.start()
        server.run(sockets=[listener])
        if alerters is not None:
            alerters.stop(ALERTS_GRACE_S)
        if push is not None:
            push.stop()
        model.stop(_GRACE_S)
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
