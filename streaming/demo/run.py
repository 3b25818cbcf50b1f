"""`evenkeel demo`: a real broker, real groups that play stories, and all of Evenkeel watching them.

Without a time limit it serves the page and shows the live view until Ctrl-C. With `seconds` it needs no display: the
stories play, the stage goes quiet, and the tables are summed up and compared with what the clients did. Missing stories
are named, and the exit code is 1.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import tempfile
import threading
import time
from collections import deque
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from streaming.config import ServeSettings, Settings, environment_of, load_settings
from streaming.demo.broker import DEMO_OVERRIDES, EmbeddedBroker
from streaming.demo.expectations import Evidence, check_stories
from streaming.demo.inbox import Inbox
from streaming.demo.people import act, alert_settings, check_people
from streaming.demo.stories import FIRST_PASS_S
from streaming.exceptions import EvenkeelError, SetupError
from streaming.process import Program, Programs
from streaming.tables import LakeReader
from streaming.up import ALERTER, JOB, PROBE, SERVER, lines, page_url, print_summary, stop_signals, watch

# Rounds and batches are frequent, so that people who watch the demo see events at once.
_INTERVAL_MS = 2_000

# The alerter polls more often than rounds come, so that an alert appears within the round that fires it.
_LOOK_MS = 500

# Time needed beside the stories: the broker's start, the stage going quiet, the last rounds and batches.
_FRAME_S = 40

# Limit until the tables show the last round or an alert; a batch of the demo takes a second or two.
_CATCH_UP_S = 120.0

_LEAST_SPACE = 2 * 2**30


def demo(console: Console, seconds: int | None, lake: Path | None) -> int:
    """Run the demo; returns the exit code.

    Args:
        console: Where to write.
        seconds: End after this many seconds, and check; None runs until Ctrl-C.
        lake: Folder for the tables; None takes a new one.

    Raises:
        SetupError: The folder is not empty, there is no space, no Java, or no jars.
    """
    folder = Path(tempfile.mkdtemp(prefix="evenkeel-demo-"))
    tables = _empty(lake.resolve() if lake is not None else folder / "lake")
    if shutil.disk_usage(tables.parent).free < _LEAST_SPACE:
        message = (
            f"Less than 2 GiB are free on the disk of {tables}: free some space, or choose another folder with LAKE=."
        )
        raise SetupError(message)
    console.print(lines(f"tables in {tables}\nlogs, broker and journal in {folder}"), soft_wrap=True)
    notices: deque[str] = deque(maxlen=1)
    port = _free_port()

    def environment(bootstrap: str) -> dict[str, str]:
        return environment_of(_settings(bootstrap, tables, port, inbox.url))

    with (
        Inbox(folder / "inbox.jsonl") as inbox,
        stop_signals() as stop,
        console.status("starting a Kafka broker …") as status,
        EmbeddedBroker(folder / "broker", overrides=DEMO_OVERRIDES) as broker,
        Programs(
            folder / "logs", environment_of(_settings(broker.bootstrap, tables, port, inbox.url)), notices.append
        ) as programs,
    ):
        status.stop()
        for program in (JOB, PROBE, ALERTER, _traffic(broker.bootstrap, folder, seconds)):
            programs.start(program)
        threading.Thread(target=act, args=(str(tables), "demo", stop), daemon=True, name="people").start()
        if seconds is None:
            programs.start(SERVER)
            settings = _settings(broker.bootstrap, tables, port, inbox.url)
            page = f"page at {page_url(settings)}"
            console.print(lines(page), soft_wrap=True)

            def look() -> str:
                return "\n".join(filter(None, [page, _look(programs, notices)]))

            heartbeat = timedelta(milliseconds=settings.job.heartbeat_ms)
            watch(str(tables), console, stop, look, programs.note, heartbeat)
            console.print("stopping: the job ends between two batches …")
            return 0
        quiet = _play(console, stop, programs, notices, folder / "journal.jsonl", seconds)
        if quiet:
            _catch_up(stop, str(tables))
            _fall_silent(console, stop, programs, str(tables))
        programs.stop(["probe", "job", "alerter"])
        missing = _judge(console, tables, folder) if quiet else ["it was stopped"]
    for sentence in missing:
        console.print(lines(f"missing: {sentence}", style="red"), soft_wrap=True)
    if not missing:
        console.print("every story is in the tables", style="green")
    return 1 if missing else 0


def _free_port() -> int:
    """The server's own port if it is free, else any other."""
    default = ServeSettings().address[1]
    for port in (default, 0):
        with socket.socket() as trial, contextlib.suppress(OSError):
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(("127.0.0.1", port))
            return int(trial.getsockname()[1])
    return default  # the server reports what is wrong with it


def _settings(bootstrap: str, tables: Path, port: int, inbox: str) -> Settings:
    settings = load_settings(cluster="demo", lake=str(tables))
    # The user's own connection and filters are meant for the user's own cluster.
    kafka = type(settings.kafka)(bootstrap_servers=bootstrap)
    return settings.model_copy(
        update={
            "kafka": kafka,
            # (The programs also read the user's file, so its values must be overridden, and None overrides nothing.)
            "bus": None if settings.bus is None else kafka,
            "filters": type(settings.filters)(),
            "strategies": (),
            "probe": settings.probe.model_copy(update={"interval_ms": _INTERVAL_MS}),
            "job": settings.job.model_copy(update={"trigger_ms": _INTERVAL_MS}),
            # (Default rules, without the user's targets: a demo must not page anyone.)
            "alerts": alert_settings(inbox, _LOOK_MS),
            "serve": ServeSettings(listen=f"127.0.0.1:{port}", refresh_ms=1_000),
        }
    )


def _traffic(bootstrap: str, folder: Path, seconds: int | None) -> Program:
    arguments = ["-m", "streaming.demo.traffic", "--bootstrap", bootstrap, "--folder", str(folder)]
    if seconds is not None:
        arguments += ["--seconds", str(max(FIRST_PASS_S, seconds - _FRAME_S)), "--stay"]
    return Program("traffic", tuple(arguments), grace_s=40)


def _empty(folder: Path) -> Path:
    if folder.exists() and any(folder.iterdir()):
        message = f"The folder {folder} is not empty: the demo starts with new tables, choose another with LAKE=."
        raise SetupError(message)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"The folder {folder} cannot be created ({error.strerror}): choose another with LAKE=."
        raise SetupError(message) from error
    return folder


def _look(programs: Programs, notices: deque[str]) -> str:
    programs.look()
    return notices[-1] if notices else ""


def _play(
    console: Console,
    stop: threading.Event,
    programs: Programs,
    notices: deque[str],
    journal: Path,
    seconds: int,
) -> bool:
    """Wait until the stage has gone quiet; False when stopped before."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    began = time.monotonic()
    said = ""
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("the stories play", total=seconds)
        while not stop.wait(0.5):
            notice = _look(programs, notices)
            if notice != said:
                said = notice
                console.print(lines(said))
            progress.update(task, completed=min(seconds, time.monotonic() - began))
            if journal.exists() and any(_is_quiet(line) for line in journal.read_bytes().splitlines()[-50:]):
                return True
    return False


def _is_quiet(line: bytes) -> bool:
    try:
        return bool(json.loads(line)["what"] == "quiet")
    except (ValueError, KeyError):
        return False  # an incomplete line, still being written


def _catch_up(stop: threading.Event, lake: str) -> None:
    """Wait until the tables show two rounds that began after the stage had gone quiet."""
    sql = "SELECT count(*) >= 2 AS done FROM rounds WHERE epoch(round_time) > ?"
    _wait(stop, lake, sql, [time.time()], "no new round")


def _fall_silent(console: Console, stop: threading.Event, programs: Programs, lake: str) -> None:
    """Stop the probe until the `silence` alert fires, start it again, and wait until the alert resolves."""
    console.print("the probe is stopped for a while: nothing but the dead man's switch may fire")
    sql = "SELECT count(*) > 0 AS done FROM alerts WHERE rule = 'silence' AND state = ?"
    programs.stop(["probe"])
    _wait(stop, lake, sql, ["firing"], "no alert of the silence")
    programs.start(PROBE)
    _wait(stop, lake, sql, ["resolved"], "no end of the silence")


def _wait(stop: threading.Event, lake: str, sql: str, given: list[Any], missing: str) -> None:
    reader = LakeReader(lake)
    deadline = time.monotonic() + _CATCH_UP_S
    while not stop.wait(1.0):
        reader.refresh()
        if reader.rows(sql, given)[0]["done"]:
            return
        if time.monotonic() > deadline:
            message = f"The tables in {lake} show {missing} within {_CATCH_UP_S:.0f} s: see the logs."
            raise EvenkeelError(message)


def _judge(console: Console, tables: Path, folder: Path) -> list[str]:
    reader = LakeReader(tables)
    print_summary(console, reader)
    evidence = Evidence(reader, folder / "journal.jsonl")
    return check_stories(evidence) + check_people(evidence, folder / "inbox.jsonl")
