"""`evenkeel up`: all processes against a cluster, and their logs as one stream, until Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from io import TextIOWrapper

from rich.console import Console

from streaming.config import (
    KAFKA_SECRETS,
    ROCKETMQ_SECRETS,
    Settings,
    Thresholds,
    checkpoint_of,
    environment_of,
    secret_variable,
)
from streaming.lifecycle import on_stop_signals
from streaming.probe import ensure_ready
from streaming.process import LogFollower, Program, Programs, hold_logs, logs_of
from streaming.terminal import read_by_nobody, say

# Each program gets only the secrets that it needs.
_ROCKETMQ = tuple(secret_variable(name, "rocketmq") for name in ROCKETMQ_SECRETS)
_CLUSTERS = tuple(secret_variable(name, section) for section in ("kafka", "bus") for name in KAFKA_SECRETS) + _ROCKETMQ
_TARGETS = ("EVENKEEL_ALERTS__TARGETS",)
_LOGIN = ("EVENKEEL_SERVE__TOKEN", "EVENKEEL_SERVE__PASSWORD", "EVENKEEL_SERVE__MARKS_TOKEN")
_STORES = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_", "GOOGLE_SERVICE_ACCOUNT")

PROBE = Program("probe", ("-m", "streaming.probe"), grace_s=15, without=_TARGETS + _STORES + _LOGIN)
# Longer than any batch: the job stops between two.
JOB = Program("job", ("-m", "streaming.job"), grace_s=90, without=_TARGETS + _LOGIN + _ROCKETMQ)
# Longer than a slow target may take to answer, and then the thread that reads the lake.
SERVER = Program("server", ("-m", "streaming.serve"), grace_s=35, without=_CLUSTERS)

PROGRAMS = (PROBE, JOB, SERVER)
"""In starting order; they stop in reverse."""

_FOLLOW_S = 0.5
"""How often new log lines are printed."""


def up(settings: Settings, console: Console) -> None:
    """Run everything until SIGINT or SIGTERM.

    Raises:
        SetupError: The cluster cannot be reached, or a right is missing: one sentence each; or the rules file is wrong.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        # A name in a log line need not be in its encoding: a character of it must not end what is monitored.
        sys.stdout.reconfigure(errors="backslashreplace")
    Thresholds.load(settings.alerts.rules)  # a mistake in the rules is reported before anything starts
    checkpoint_of(settings)  # refuses a lake on an object store without one
    ensure_ready(settings)
    logs = logs_of(settings.lake, settings.cluster)
    say(console, f"tables in {settings.lake}, logs in {logs}, page at {page_url(settings)}")
    with (
        hold_logs(logs),
        stop_signals() as stop,
        closing(LogFollower(logs, _print)) as follower,
        Programs(logs, environment_of(settings)) as programs,
    ):
        for program in PROGRAMS:
            if not stop.is_set():
                programs.start(program)
        while not stop.wait(_FOLLOW_S):
            follower.poll()
        with suppress(OSError):
            console.print("stopping: the job ends between two batches; a second Ctrl-C stops everything at once …")
    with suppress(OSError):
        console.print("all processes have ended")


def page_url(settings: Settings) -> str:
    """The page's address for a browser on this machine."""
    return f"http://{settings.serve.listen}/{settings.serve.path.strip('/')}".rstrip("/")


def _print(line: str) -> None:
    """Print a log line. One that standard output does not take (its disk is full, its reader is gone) ends nothing."""
    try:
        sys.stdout.write(line)
        sys.stdout.flush()
    except BrokenPipeError:
        read_by_nobody()
    except OSError:
        pass  # the files have it


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
