"""The start of the job: Spark begins while Python still imports what the job needs, two seconds each."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from streaming.config import Settings, checkpoint_of
from streaming.job.session import start_session


def run_job(
    settings: Settings,
    *,
    available_now: bool = False,
    checkpoint: str | None = None,
    rebuild_state: bool = False,
    done: Callable[[int, dict[str, int]], None] | None = None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """As `streaming.job.run.run`, for a process of its own."""
    place = checkpoint_of(settings, checkpoint)
    with ThreadPoolExecutor(1, "spark") as beside:
        session = beside.submit(start_session, settings, f"evenkeel {settings.cluster}", place)
        from streaming.job.run import run  # noqa: PLC0415

        run(
            settings,
            available_now=available_now,
            checkpoint=checkpoint,
            rebuild_state=rebuild_state,
            done=done,
            check=check,
            session=session.result,
        )
