"""`evenkeel up`: all processes against a cluster, and the live view (or the logs, without a terminal), until Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from io import TextIOWrapper
from pathlib import Path

import duckdb
from deltalake.exceptions import DeltaError
from rich.console import Console, RenderableType
from rich.live import Live

from streaming.config import (
    KAFKA_SECRETS,
    ROCKETMQ_SECRETS,
    Settings,
    Thresholds,
    checkpoint_of,
    environment_of,
    secret_variable,
)
from streaming.lifecycle import STANDING_BY, TOOK_OVER, on_stop_signals
from streaming.probe import WATCHING, RoundAbandonedError, ensure_ready, source_of
from streaming.process import LogFollower, Program, Programs, hold_logs, logs_of
from streaming.stores import cause_of
from streaming.tables import LakeUnreadableError
from streaming.terminal import printable, read_by_nobody
from streaming.up.live import Quiet, lines, live_rows, render

# Each program gets only the secrets that it needs.
_ROCKETMQ = tuple(secret_variable(name, "rocketmq") for name in ROCKETMQ_SECRETS)
_CLUSTERS = tuple(secret_variable(name, section) for section in ("kafka", "bus") for name in KAFKA_SECRETS) + _ROCKETMQ
_TARGETS = ("EVENKEEL_ALERTS__TARGETS", "EVENKEEL_ALERTS__HEARTBEAT_URL")
_LOGIN = ("EVENKEEL_SERVE__TOKEN", "EVENKEEL_SERVE__PASSWORD", "EVENKEEL_SERVE__MARKS_TOKEN")
_STORES = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_", "GOOGLE_SERVICE_ACCOUNT")

PROBE = Program("probe", ("-m", "streaming.probe"), grace_s=15, without=_TARGETS + _STORES + _LOGIN)
# Longer than any batch: the job stops between two.
JOB = Program("job", ("-m", "streaming.job"), grace_s=90, without=_TARGETS + _LOGIN + _ROCKETMQ)
# Longer than a slow target may take to answer, and then the thread that reads the lake.
SERVER = Program("server", ("-m", "streaming.serve"), grace_s=35, without=_CLUSTERS)

PROGRAMS = (PROBE, JOB, SERVER)
"""In starting order; they stop in reverse."""

_REFRESH_S = 2.0

# The rows of the live view are cleared of what is too old now and then.
_TIDY_EVERY_S = 1_800.0

# Errors of the tables while a store is away, or after somebody turned on a feature that none of our readers has.
_PASSING = (OSError, DeltaError, duckdb.Error, LakeUnreadableError)

_WHY = 200
"""Characters of an exception's own text in a log: it may quote a row."""

# "probe   | 2026-11-25 13:00:00,000 INFO streaming.probe: Standing by: ..."
_TURN = re.compile(rf"(\w+) +\| \S+ \S+ INFO streaming\.\w+: (({STANDING_BY}|{TOOK_OVER}|{WATCHING}).*)")

_LONGEST = 300
"""Characters of such a sentence that are shown; ours have some 200."""

_NOTICES = 3
"""Lines of the live view about the processes, more only where more are down; `up.log` has all of them."""


def up(settings: Settings, console: Console) -> None:
    """Run everything until SIGINT or SIGTERM.

    Raises:
        SetupError: The cluster cannot be reached, or a right is missing: one sentence each; or the rules file is wrong.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        # A name in a log line need not be in its encoding: a character of it must not end what is monitored.
        sys.stdout.reconfigure(errors="backslashreplace")
    thresholds = Thresholds.load(settings.alerts.rules)
    checkpoint_of(settings)  # (refuses a lake on an object store without one)
    ensure_ready(settings)
    logs = logs_of(settings.lake, settings.cluster)
    page = page_url(settings)
    console.print(lines(f"tables in {settings.lake}, logs in {logs}, page at {page}"), soft_wrap=True)
    console.print(lines(_source_sentence(settings)), soft_wrap=True)
    notices: deque[str] = deque(maxlen=_NOTICES)
    printer, standing_by = _Printer(), StandingBy()
    follower = LogFollower(logs, standing_by.read if console.is_terminal else printer.print)
    with hold_logs(logs), stop_signals() as stop, closing(follower):
        with Programs(logs, environment_of(settings), notices.append) as programs:
            for program in PROGRAMS:
                if stop.is_set():
                    break
                programs.start(program)

            printer.note = programs.note

            def poll() -> str:
                programs.poll()
                follower.poll()
                waiting = (f"{name}: {sentence}" for name, sentence in standing_by.sentences.items())
                return "\n".join([f"page at {page}", *notices_shown(programs.down(), notices), *waiting])

            heartbeat = timedelta(milliseconds=settings.job.heartbeat_ms)
            watch(settings.lake, settings.cluster, console, stop, poll, programs.note, heartbeat, thresholds)
            with suppress(OSError):
                console.print("stopping: the job ends between two batches; a second Ctrl-C stops everything at once …")
        if console.is_terminal:
            for notice in notices:
                console.print(lines(notice), soft_wrap=True)
    with suppress(OSError):
        console.print("all processes have ended")


def _source_sentence(settings: Settings) -> str:
    """Where groups are read from, and what that means.

    Raises:
        SetupError: The source of the rounds so far cannot be used any more.
    """
    if settings.rocketmq is not None:
        return (
            "groups are asked for, at every name server, broker and client of RocketMQ: how often offsets were "
            "committed, and generations, are not known (docs/rocketmq.md)"
        )
    try:
        source = source_of(settings)
    except RoundAbandonedError as error:
        return f"where groups are read from is not known yet ({error}): probe.log will tell"
    return "the cluster has no groups yet" if source is None else source.sentence


def page_url(settings: Settings) -> str:
    """The page's address for a browser on this machine."""
    return f"http://{settings.serve.listen}/{settings.serve.path.strip('/')}".rstrip("/")


def notices_shown(down: Sequence[str], notices: Sequence[str]) -> list[str]:
    """What the live view shows of the processes: first what is down now, however long ago that was said.

    Args:
        down: A sentence for each program that is down.
        notices: What was said, the newest last.
    """
    others = [notice for notice in notices if notice not in down]
    return [*down, *others[max(0, len(others) - max(0, _NOTICES - len(down))) :]]


class StandingBy:
    """Which programs stand by for another machine's, as their logs say: nothing else comes from a child process.

    Attributes:
        sentences: By program why it does not work.
    """

    def __init__(self) -> None:
        self.sentences: dict[str, str] = {}

    def read(self, line: str) -> None:
        """Read a line of `LogFollower`."""
        if turn := _TURN.match(line):
            name, sentence, how = turn.groups()
            if how == STANDING_BY:
                self.sentences[name] = printable(sentence)[:_LONGEST]
            else:
                self.sentences.pop(name, None)


class _Printer:
    """Prints log lines. One that standard output does not take (its disk is full, its reader is gone) ends nothing.

    Attributes:
        note: Called with a sentence about the first of them; None before there is somebody to call.
    """

    def __init__(self) -> None:
        self.note: Callable[[str], None] | None = None

    def print(self, line: str) -> None:
        """Print a line, which ends with a line break."""
        try:
            sys.stdout.write(line)
            sys.stdout.flush()
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                read_by_nobody()
            if self.note is not None:
                self.note(f"log lines cannot be printed ({error}): they are in the files of this folder")
                self.note = None


def watch(
    lake: str,
    cluster: str,
    console: Console,
    stop: threading.Event,
    poll: Callable[[], str],
    note: Callable[[str], None],
    heartbeat: timedelta,
    thresholds: Thresholds | None = None,
) -> None:
    """Show the tables until asked to stop; without a terminal only wait. A table that cannot be drawn ends nothing.

    Args:
        lake: The lake, which other clusters may share.
        cluster: The cluster that is shown, by its name in the tables.
        console: Where to draw.
        stop: Ends the view.
        poll: Called at every refresh; its result is shown as a notice.
        note: Called, once for each kind of error, with the reason why the tables could not be drawn.
        heartbeat: How often the job repeats rows that do not change (`job.heartbeat_ms`).
        thresholds: Limits of the alert rules, used for colours; None for the defaults.
    """
    if not console.is_terminal:
        while not stop.wait(_REFRESH_S):
            poll()
        return
    view = _View(lake, cluster, heartbeat, thresholds)
    noted: set[type[Exception]] = set()
    with Live(console=console, auto_refresh=False, screen=True) as live:
        while not stop.is_set():
            notice = poll()
            try:
                live.update(view.draw(console.height, notice), refresh=True)
            except Exception as error:  # noqa: BLE001 - three processes must not end because a table could not be drawn
                if type(error) not in noted:
                    noted.add(type(error))
                    note(_undrawn(error))
                with suppress(Exception):
                    live.update(lines(f"the view cannot be drawn now: see up.log\n{notice}"), refresh=True)
            stop.wait(_REFRESH_S)


def _undrawn(error: Exception) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    why = printable(str(error)[:_WHY])
    return f"the tables cannot be drawn ({type(error).__name__}: {why}; {Path(place.filename).name}:{place.lineno})"


class _View:
    """The live view. The least important part here: on an error it shows one sentence and tries again."""

    def __init__(self, lake: str, cluster: str, heartbeat: timedelta, thresholds: Thresholds | None = None) -> None:
        self._cluster = cluster
        self._rows = live_rows(lake, heartbeat)
        self._thresholds = thresholds
        self._quiet = Quiet()
        self._tidy_at = time.monotonic() + _TIDY_EVERY_S

    def draw(self, height: int, notice: str) -> RenderableType:
        try:
            self._rows.update()
            while self._rows.behind:
                self._rows.read_on()
            if time.monotonic() > self._tidy_at:
                self._rows.tidy()
                self._tidy_at = time.monotonic() + _TIDY_EVERY_S
            return render(self._rows, self._cluster, height, notice, self._thresholds, self._quiet)
        except _PASSING as error:
            why = cause_of(error)
            return lines(f"the tables cannot be read now: {why}\n{notice}")


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Turn SIGINT, SIGTERM and SIGHUP (closed terminal) into an event; a second one ends the process at once."""
    stop = threading.Event()

    def ask(number: int) -> None:
        if stop.is_set():
            sys.stderr.write("ended at once\n")
            os._exit(128 + number)  # the guards end the children
        stop.set()

    with on_stop_signals(ask, signal.SIGHUP):
        yield stop
