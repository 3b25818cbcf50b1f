"""`evenkeel up`: all processes against the clusters of the settings, and their logs as one stream, until Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from io import TextIOWrapper

from rich.console import Console

from streaming.config import (
    CHOSEN,
    KAFKA_SECRETS,
    ROCKETMQ_SECRETS,
    FleetFile,
    Settings,
    Thresholds,
    checkpoint_of,
    cluster_variables,
    secret_variable,
)
from streaming.exceptions import SetupError
from streaming.lifecycle import on_stop_signals
from streaming.probe import ensure_ready
from streaming.process import LogFollower, Program, Programs, hold_logs, logs_of
from streaming.stores import on_object_store
from streaming.terminal import read_by_nobody, say, visible

# Each program gets only the secrets that it needs.
_ROCKETMQ = tuple(secret_variable(name, "rocketmq") for name in ROCKETMQ_SECRETS)
_CLUSTERS = tuple(secret_variable(name, section) for section in ("kafka", "bus") for name in KAFKA_SECRETS) + _ROCKETMQ
_TARGETS = ("EVENKEEL_ALERTS__TARGETS",)
_LOGIN = ("EVENKEEL_SERVE__TOKEN", "EVENKEEL_SERVE__PASSWORD", "EVENKEEL_SERVE__MARKS_TOKEN")
_PUSH = ("OTEL_EXPORTER_OTLP_",)
_STORES = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_", "GOOGLE_SERVICE_ACCOUNT")

PROBE = Program("probe", ("-m", "streaming.probe"), grace_s=15, without=_TARGETS + _STORES + _LOGIN + _PUSH)
# Longer than any batch: the job stops between two.
JOB = Program("job", ("-m", "streaming.job"), grace_s=90, without=_TARGETS + _LOGIN + _PUSH + _ROCKETMQ)
# Longer than a slow target may take to answer, and then the thread that reads the lake.
SERVER = Program("server", ("-m", "streaming.serve"), grace_s=35, without=(*_CLUSTERS, "EVENKEEL_CLUSTERS__"))

_FOLLOW_S = 0.5
"""How often new log lines are printed, and the settings file is looked at."""


def up(file: FleetFile, console: Console, *, with_job: bool = True) -> None:
    """Run everything until SIGINT or SIGTERM: a probe for each cluster, one job, one server.

    Args:
        file: The clusters. It is read again when it changes, and probes start and end accordingly; job and server read
            it themselves.
        console: Where to write.
        with_job: False where the job runs elsewhere.

    Raises:
        SetupError: The only cluster cannot be reached, or a right is missing: one sentence each; or the rules file is
            wrong.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        # A name in a log line need not be in its encoding: a character of it must not end what is monitored.
        sys.stdout.reconfigure(errors="backslashreplace")
    shared = next(iter(file.clusters.values()))
    Thresholds.load(shared.alerts.rules)  # a mistake in the rules is reported before anything starts
    for settings in file.clusters.values():
        checkpoint_of(settings)  # refuses a lake on an object store without one
    if len(file.clusters) == 1:
        ensure_ready(shared)
    logs = logs_of(shared.lake, shared.cluster if len(file.clusters) == 1 else "_fleet")
    say(console, f"{_in_words(file)}; tables in {shared.lake}, logs in {logs}, page at {page_url(shared)}")
    with (
        hold_logs(logs),
        stop_signals() as stop,
        closing(LogFollower(logs, _print)) as follower,
        Programs(logs, {}) as programs,
    ):
        probes = {name: probe_of(name, file) for name in file.clusters}
        # They stop in reverse.
        for program in (*probes.values(), *([_job()] if with_job else []), SERVER):
            if not stop.is_set():
                programs.start(program)
        while not stop.wait(_FOLLOW_S):
            follower.poll()
            _follow(file, probes, programs, console)
        with suppress(OSError):
            console.print("stopping: the job ends between two batches; a second Ctrl-C stops everything at once …")
    with suppress(OSError):
        console.print("all processes have ended")


def probe_of(cluster: str, file: FleetFile) -> Program:
    """The probe of one cluster, which gets the secrets of no other, and those of a store only for its bus."""
    others = tuple(cluster_variables(other) for other in file.clusters if other != cluster)
    name = PROBE.name
    if len(file.clusters) > 1:
        name = f"{name}-{re.sub(r'[^A-Za-z0-9._-]', '_', cluster)}"
    folder = file.clusters[cluster].bus_folder
    kept = _STORES if folder is not None and on_object_store(folder) else ()
    without = tuple(secret for secret in PROBE.without if secret not in kept)
    # Apple's libraries do not survive a fork.
    is_forked = len(file.clusters) > 1 and sys.platform == "linux"
    return replace(PROBE, name=name, without=without + others, environment={CHOSEN: cluster}, is_forked=is_forked)


def _job() -> Program:
    """The job, which gets the secrets of no RocketMQ cluster: it reads the bus alone."""
    ends = tuple(f"__ROCKETMQ__{name}".upper() for name in ROCKETMQ_SECRETS)
    return replace(JOB, without=JOB.without + tuple(name for name in os.environ if name.endswith(ends)))


def _follow(file: FleetFile, probes: dict[str, Program], programs: Programs, console: Console) -> None:
    """Follow a changed settings file: end the probes of clusters that are gone or changed, start the others."""
    before = dict(file.clusters)
    try:
        if not file.poll():
            return
    except SetupError as error:
        say(console, f"The settings file is not taken over: {error}")
        return
    say(console, f"the settings file has changed: {_in_words(file)}")
    ended = [name for name, settings in before.items() if file.clusters.get(name) != settings]
    programs.stop([probes.pop(name).name for name in ended])
    for name in file.clusters:
        if name not in probes:
            probes[name] = probe_of(name, file)
            programs.start(probes[name])


def _in_words(file: FleetFile) -> str:
    names = ", ".join(map(visible, file.clusters))
    if len(file.clusters) == 1:
        return f"cluster {names}"
    return f"{len(file.clusters)} clusters, {names}"


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
