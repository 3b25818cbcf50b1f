"""`evenkeel demo`: a real broker, real groups that play stories, and all of Evenkeel watching them.

Without a time limit it serves the page and shows the live view until Ctrl-C. With `seconds` it needs no display: the
stories play, the stage goes quiet, and the tables are summed up and compared with what the clients did. Missing stories
are named, and the exit code is 1.
"""

from __future__ import annotations

import threading
from pathlib import Path

from rich.console import Console

from streaming.config import Settings, load_settings
from streaming.demo.broker import DEMO_OVERRIDES, EmbeddedBroker
from streaming.demo.evidence import Evidence, judged
from streaming.demo.expectations import check_stories
from streaming.demo.frame import LOOK_MS, Folders, folders_of, run_course, settings_of_demo, wait
from streaming.demo.inbox import Inbox
from streaming.demo.people import act, alert_settings, check_people
from streaming.demo.stories import FIRST_PASS_S
from streaming.exceptions import SetupError
from streaming.process import Program, Programs
from streaming.tables import LakeReader
from streaming.up import PROBE, stop_signals

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
    folders = folders_of(console, lake)
    inbox_file = folders.rest / "inbox.jsonl"
    with (
        Inbox(inbox_file) as inbox,
        stop_signals() as stop,
        console.status("starting a Kafka broker …") as status,
        EmbeddedBroker(folders.rest / "broker", overrides=DEMO_OVERRIDES) as broker,
    ):
        settings = _settings(broker.bootstrap, folders.tables, inbox.url)
        status.stop()
        threading.Thread(target=act, args=(str(folders.tables), "demo", stop), daemon=True, name="people").start()

        def judge(reader: LakeReader) -> tuple[list[str], list[str]]:
            evidence = Evidence(reader, folders.journal)
            return judged(check_stories(evidence) + check_people(evidence, inbox_file), evidence.lateness)

        return run_course(
            console,
            stop,
            settings,
            folders,
            _traffic(broker.bootstrap, folders, seconds),
            seconds,
            judge,
            lambda programs: _fall_silent(console, stop, programs, str(folders.tables)),
        )


def _settings(bootstrap: str, tables: Path, inbox: str) -> Settings:
    settings = load_settings(cluster="demo", lake=str(tables))
    if settings.rocketmq is not None:
        message = (
            "The settings name a RocketMQ cluster, which the programs would watch in place of the demo's Kafka: run "
            "the demo in a folder without evenkeel.toml. (make demo ROCKETMQ=1, in a checkout, shows RocketMQ.)"
        )
        raise SetupError(message)
    found = settings_of_demo(settings, bootstrap, alert_settings(inbox, LOOK_MS))
    # (The programs also read the user's file, so its bus must be overridden, and None overrides nothing.)
    return found.model_copy(update={"bus": None if settings.bus is None else found.kafka})


def _traffic(bootstrap: str, folders: Folders, seconds: int | None) -> Program:
    arguments = ["-m", "streaming.demo.traffic", "--bootstrap", bootstrap, "--folder", str(folders.rest)]
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
