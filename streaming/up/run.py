"""`evenkeel up`: probe and job against a cluster, and the live view, until Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import SecretStr
from rich.console import Console
from rich.live import Live

from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.probe import check
from streaming.tables import LakeReader
from streaming.up.live import render
from streaming.up.processes import Program, Programs

__all__ = ["JOB", "PROBE", "environment_of", "stop_signals", "up", "watch"]

PROBE = Program("probe", ("-m", "streaming.probe"), grace_s=15)
JOB = Program("job", ("-m", "streaming.job"), grace_s=90)  # longer than any batch: it stops between two

_REFRESH_S = 2.0


def up(settings: Settings, console: Console) -> None:
    """Run everything until SIGINT or SIGTERM.

    Raises:
        SetupError: The cluster cannot be reached, or a right is missing: one sentence each.
    """
    problems = check(settings)
    if problems:
        raise SetupError("\n".join(map(str, problems)))
    logs = Path(settings.lake) / "_logs" if "://" not in settings.lake else Path("logs")
    notices: deque[str] = deque(maxlen=1)
    console.print(f"tables in {settings.lake}, logs in {logs}", highlight=False)
    with stop_signals() as stop, Programs(logs, environment_of(settings), notices.append) as programs:
        programs.start(PROBE)
        programs.start(JOB)
        watch(settings.lake, console, stop, lambda: _look(programs, notices))
        console.print("stopping: the job ends between two batches …")


def _look(programs: Programs, notices: deque[str]) -> str:
    programs.look()
    return notices[-1] if notices else ""


def watch(lake: str, console: Console, stop: threading.Event, look: Callable[[], str]) -> None:
    """Show the tables until told to stop; without a terminal only wait.

    Args:
        lake: The lake.
        console: Where to draw.
        stop: Ends it.
        look: Called at every refresh; what it returns is shown as a notice.
    """
    reader = LakeReader(lake)
    if not console.is_terminal:
        while not stop.wait(_REFRESH_S):
            look()
        return
    with Live(console=console, auto_refresh=False, screen=True) as live:
        while not stop.is_set():
            notice = look()
            reader.refresh()
            live.update(render(reader, console.height, notice), refresh=True)
            stop.wait(_REFRESH_S)


def environment_of(settings: Settings) -> dict[str, str]:
    """The settings as environment variables for the programs, secrets among them; files stay files."""
    variables = {"EVENKEEL_CLUSTER": settings.cluster, "EVENKEEL_LAKE": settings.lake}
    for section in ("kafka", "filters", "probe", "job"):
        model = getattr(settings, section)
        for name in type(model).model_fields:
            value = getattr(model, name)
            if value is None:
                continue
            variables[f"EVENKEEL_{section}__{name}".upper()] = _as_text(value)
    if settings.strategies:
        variables["EVENKEEL_STRATEGIES"] = _as_text([rule.model_dump() for rule in settings.strategies])
    return variables


def _as_text(value: object) -> str:

    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value)
    return json.dumps(value) if isinstance(value, bool) else str(value)


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Turn SIGINT and SIGTERM into an event; a second one ends the process at once."""
    stop = threading.Event()

    def ask(number: int, _frame: object) -> None:
        if stop.is_set():
            sys.stderr.write("ended at once\n")
            os._exit(128 + number)  # the leashes end the children
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
