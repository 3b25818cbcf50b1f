"""`evenkeel demo`: a real broker, real groups that play stories, and all of Evenkeel watching them.

Without a time limit it serves the page and shows the live view until Ctrl-C. With `seconds` it needs no display: the
stories play, the stage goes quiet, and the tables are summed up and compared with what the clients did. Missing stories
are named, and the exit code is 1.
"""

from __future__ import annotations

import tempfile
import threading
from collections import deque
from datetime import timedelta
from pathlib import Path

from rich.console import Console

from streaming.config import ServeSettings, Settings, environment_of, load_settings
from streaming.demo.broker import DEMO_OVERRIDES, EmbeddedBroker
from streaming.demo.expectations import Evidence, check_stories
from streaming.demo.frame import INTERVAL_MS, LOOK_MS, catch_up, empty_folder, free_port, look, play, wait
from streaming.demo.inbox import Inbox
from streaming.demo.people import act, alert_settings, check_people
from streaming.demo.stories import FIRST_PASS_S
from streaming.exceptions import SetupError
from streaming.process import Program, Programs
from streaming.tables import LakeReader
from streaming.up import ALERTER, JOB, PROBE, SERVER, lines, page_url, print_summary, stop_signals, watch

# Time needed beside the stories: the broker's start, the stage going quiet, the last rounds and batches.
_FRAME_S = 40


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
    tables = empty_folder(lake.resolve() if lake is not None else folder / "lake")
    console.print(lines(f"tables in {tables}\nlogs, broker and journal in {folder}"), soft_wrap=True)
    notices: deque[str] = deque(maxlen=1)
    port = free_port()

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

            def newest() -> str:
                return "\n".join(filter(None, [page, look(programs, notices)]))

            heartbeat = timedelta(milliseconds=settings.job.heartbeat_ms)
            watch(str(tables), console, stop, newest, programs.note, heartbeat)
            console.print("stopping: the job ends between two batches …")
            return 0
        quiet = play(console, stop, programs, notices, folder / "journal.jsonl", seconds)
        if quiet:
            catch_up(stop, str(tables))
            _fall_silent(console, stop, programs, str(tables))
        programs.stop(["probe", "job", "alerter"])
        missing = _judge(console, tables, folder) if quiet else ["it was stopped"]
    for sentence in missing:
        console.print(lines(f"missing: {sentence}", style="red"), soft_wrap=True)
    if not missing:
        console.print("every story is in the tables", style="green")
    return 1 if missing else 0


def _settings(bootstrap: str, tables: Path, port: int, inbox: str) -> Settings:
    settings = load_settings(cluster="demo", lake=str(tables))
    if settings.rocketmq is not None:
        message = (
            "The settings name a RocketMQ cluster, which the programs would watch in place of the demo's Kafka: run "
            "the demo in a folder without evenkeel.toml, or as evenkeel demo --rocketmq."
        )
        raise SetupError(message)
    # The user's own connection and filters are meant for the user's own cluster.
    kafka = type(settings.kafka)(bootstrap_servers=bootstrap)
    return settings.model_copy(
        update={
            "kafka": kafka,
            # (The programs also read the user's file, so its values must be overridden, and None overrides nothing.)
            "bus": None if settings.bus is None else kafka,
            "filters": type(settings.filters)(),
            "strategies": (),
            "probe": settings.probe.model_copy(update={"interval_ms": INTERVAL_MS}),
            "job": settings.job.model_copy(update={"trigger_ms": INTERVAL_MS}),
            # (Default rules, without the user's targets: a demo must not page anyone.)
            "alerts": alert_settings(inbox, LOOK_MS),
            "serve": ServeSettings(listen=f"127.0.0.1:{port}", refresh_ms=1_000),
        }
    )


def _traffic(bootstrap: str, folder: Path, seconds: int | None) -> Program:
    arguments = ["-m", "streaming.demo.traffic", "--bootstrap", bootstrap, "--folder", str(folder)]
    if seconds is not None:
        arguments += ["--seconds", str(max(FIRST_PASS_S, seconds - _FRAME_S)), "--stay"]
    return Program("traffic", tuple(arguments), grace_s=40)


def _fall_silent(console: Console, stop: threading.Event, programs: Programs, lake: str) -> None:
    """Stop the probe until the `silence` alert fires, start it again, and wait until the alert resolves."""
    console.print("the probe is stopped for a while: nothing but the dead man's switch may fire")
    sql = "SELECT count(*) > 0 AS done FROM alerts WHERE rule = 'silence' AND state = ?"
    programs.stop(["probe"])
    wait(stop, lake, sql, ["firing"], "no alert of the silence")
    programs.start(PROBE)
    wait(stop, lake, sql, ["resolved"], "no end of the silence")


def _judge(console: Console, tables: Path, folder: Path) -> list[str]:
    reader = LakeReader(tables)
    print_summary(console, reader)
    evidence = Evidence(reader, folder / "journal.jsonl")
    return check_stories(evidence) + check_people(evidence, folder / "inbox.jsonl")
