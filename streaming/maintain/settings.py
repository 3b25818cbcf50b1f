"""A maintainer with the user's settings."""

from __future__ import annotations

from collections.abc import Callable

from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.maintain.engines.engine import Engine
from streaming.maintain.maintainer import Maintainer
from streaming.maintain.table.plan import Limits
from streaming.tables import ALL_TABLES

# Below this a retention makes no sense: the alerter goes back to its oldest pending alert, the page a day.
_LEAST_DAYS = 2

# A shorter heartbeat of now may have been a longer one when the rows were written; the default is 10 minutes.
_LEAST_HEARTBEAT_MS = 600_000


def maintainer_of(
    settings: Settings,
    *,
    in_job: bool = False,
    checkpoint: str | None = None,
    engine: Engine | None = None,
    told: Callable[[str, str], None] = lambda _table, _reason: None,
) -> Maintainer:
    """Prepare a maintainer of the lake.

    Args:
        settings: All settings.
        in_job: It works between a job's batches, so its pieces are bounded by time as well (`piece_seconds`).
        checkpoint: Where the job's state is; None for the settings' own place.
        engine: Compacts past days, and vacuums; None does so here.
        told: Called at each failure, as by `Maintainer`.

    Raises:
        SetupError: A setting names no table, or keeps one for too short a time.
    """
    place = checkpoint or settings.job.checkpoint
    return Maintainer(
        settings.lake,
        _keep_days(settings),
        limits_of(settings),
        piece_seconds=settings.maintenance.piece_seconds if in_job else None,
        engine=engine,
        checkpoints={} if place is None else {settings.cluster: place},
        told=told,
        carry_ms=2 * max(settings.job.heartbeat_ms, _LEAST_HEARTBEAT_MS) + 60_000,
    )


def limits_of(settings: Settings) -> Limits:
    """Bounds of a piece of maintenance."""
    chosen = settings.maintenance
    return Limits(piece_bytes=chosen.piece_mb * 1024 * 1024, piece_rows=chosen.piece_rows, sort_rows=chosen.piece_rows)


def _keep_days(settings: Settings) -> dict[str, int]:
    names = [table.name for table in ALL_TABLES]
    for name, days in settings.maintenance.keep_days.items():
        if name not in names:
            message = (
                f"The setting maintenance.keep_days names {name}, which is not a table: use one of {', '.join(names)}."
            )
            raise SetupError(message)
        if days < _LEAST_DAYS:
            message = (
                f"The setting maintenance.keep_days keeps {name} for {days} days, but the alerter and the page need "
                f"{_LEAST_DAYS}: keep it for longer."
            )
            raise SetupError(message)
    return dict(settings.maintenance.keep_days)
