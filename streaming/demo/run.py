"""`evenkeel demo`: a real broker, real groups that play stories, and all of Evenkeel watching them.

Without a time limit it serves the page until Ctrl-C. With `seconds` it needs no display: the
stories play, the stage goes quiet, and the tables are compared with what the clients did. Missing stories
are named, and the exit code is 1. The tests' demo of RocketMQ takes the same course.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from streaming.config import (
    CHOSEN,
    AlertSettings,
    FleetFile,
    KafkaSettings,
    ServeSettings,
    Settings,
    environment_of,
    load_settings,
)
from streaming.demo.broker import DEMO_OVERRIDES, EmbeddedBroker
from streaming.demo.evidence import INTERVAL_MS, Evidence, judged
from streaming.demo.ports import check_port_is_free, free_port
from streaming.demo.stories import FIRST_PASS_S, check_stories
from streaming.exceptions import EvenkeelError, SetupError
from streaming.process import Program, Programs
from streaming.tables import LakeReader
from streaming.terminal import say
from streaming.up import JOB, SERVER, page_url, probe_of, stop_signals

# Time needed beside the stories: the broker's start, the stage going quiet, the last rounds and batches.
_FRAME_S = 40

LOOK_MS = 500
"""The alerter polls more often than rounds come, so that an alert appears within the round that fires it."""

_REFRESH_MS = 1_000
"""The page shows each round, too."""

_STAGE = "demo"
"""The cluster of the stories."""

_POISONED = "poisoned"

# Limit until the tables show the last round or an alert; a batch of the demo takes a second or two.
_CATCH_UP_S = 120.0

_LEAST_SPACE = 2 * 2**30

# Bytes read from the journal's end each time: more than the traffic writes in between. After the line `quiet` it writes
# nothing.
_NEWEST_BYTES = 64 * 1024


def demo(console: Console, seconds: int | None, lake: Path | None, clusters: int = 1) -> int:
    """Run the demo; returns the exit code.

    Args:
        console: Where to write.
        seconds: End after this many seconds, and check; None runs until Ctrl-C.
        lake: Folder for the tables; None takes a new one.
        clusters: How many clusters to watch. All are the one broker; the last one's checkpoint is poisoned, which must
            change nothing in the others.

    Raises:
        SetupError: The folder is not empty, there is no space, no Java, or no jars.
    """
    folders = folders_of(console, lake)
    with (
        stop_signals() as stop,
        console.status("starting a Kafka broker …") as status,
        EmbeddedBroker(folders.rest / "broker", overrides=DEMO_OVERRIDES) as broker,
    ):
        fleet = _fleet(_settings(broker.bootstrap, folders.tables), clusters)
        status.stop()
        if clusters > 1:
            poison = folders.tables / "_checkpoints" / _POISONED / "offsets" / "0"
            poison.parent.mkdir(parents=True)
            poison.write_text("poison")

        def judge() -> tuple[list[str], list[str]]:
            stage, whole = LakeReader(folders.tables, cluster=_STAGE), LakeReader(folders.tables)
            # Now, as each table is otherwise opened at a time of its own, and the job goes on.
            stage.refresh()
            whole.refresh()
            evidence = Evidence(stage, folders.journal)
            told = [*check_stories(evidence), *(said for name in fleet for said in _check_beside(whole, name))]
            return judged(told, evidence.lateness)

        return run_course(
            console,
            stop,
            fleet,
            folders,
            _traffic(broker.bootstrap, folders, seconds),
            seconds,
            judge,
            lambda programs, probes: _fall_silent(console, stop, programs, probes[_STAGE], str(folders.tables)),
        )


def _fleet(settings: Settings, clusters: int) -> dict[str, Settings]:
    """Settings of each cluster by its name: the one of the stories, and the same broker under other names."""
    names = [_STAGE, *(f"beside-{number}" for number in range(1, clusters - 1)), _POISONED][:clusters]
    fleet = {_STAGE: settings}
    for name in names[1:]:
        topics = {"events_topic": f"evenkeel.{name}.events", "rounds_topic": f"evenkeel.{name}.rounds"}
        probe = settings.probe.model_copy(update=topics)
        fleet[name] = settings.model_copy(update={"cluster": name, "probe": probe})
    return fleet


def _check_beside(reader: LakeReader, name: str) -> Iterator[str]:
    """What the tables lack of a cluster beside that of the stories."""
    if name == _STAGE:
        return
    sql = (
        "SELECT (SELECT count(*) FROM rounds WHERE cluster = $it) AS rounds, "
        "(SELECT count(*) FROM rounds WHERE cluster = $stage) AS others, "
        "(SELECT count(*) FROM alerts WHERE cluster = $it AND rule = 'silence' AND state = 'firing') AS silent, "
        "(SELECT state FROM clusters_current WHERE cluster = $it) AS state"
    )
    [row] = reader.rows(sql, {"it": name, "stage": _STAGE})
    if row["state"] != "watched":
        yield f"{name} should be among the watched clusters, found {row}"
    if name == _POISONED and (row["rounds"] or not row["silent"]):
        yield f"{name} should have no rows, and an alert of its silence, found {row}"
    # The one of the stories is stopped for a while.
    if name != _POISONED and row["rounds"] < row["others"]:
        yield f"{name} should have at least the rounds of {_STAGE}, found {row}"


def _settings(bootstrap: str, tables: Path) -> Settings:
    settings = load_settings(cluster=_STAGE, lake=str(tables))
    if settings.rocketmq is not None:
        message = (
            "The settings name a RocketMQ cluster, which the programs would watch in place of the demo's Kafka: run "
            "the demo in a folder without evenkeel.toml. (make demo ROCKETMQ=1, in a checkout, shows RocketMQ.)"
        )
        raise SetupError(message)
    found = settings_of_demo(settings, bootstrap, AlertSettings(poll_ms=LOOK_MS))
    # A bus may be in the user's environment, and None overrides nothing.
    return found.model_copy(update={"bus": None if settings.bus is None else found.kafka})


def _traffic(bootstrap: str, folders: Folders, seconds: int | None) -> Program:
    arguments = ["-m", "streaming.demo.traffic", "--bootstrap", bootstrap, "--folder", str(folders.rest)]
    if seconds is not None:
        arguments += ["--seconds", str(max(FIRST_PASS_S, seconds - _FRAME_S)), "--stay"]
    return Program("traffic", tuple(arguments), grace_s=40)


def _fall_silent(console: Console, stop: threading.Event, programs: Programs, probe: Program, lake: str) -> None:
    """Stop the probe until the `silence` alert fires, start it again, and wait until the alert resolves."""
    console.print("the probe is stopped for a while: nothing but the dead man's switch may fire")
    sql = "SELECT count(*) > 0 AS done FROM alerts WHERE rule = 'silence' AND state = ? AND cluster = ?"
    programs.stop([probe.name])
    wait(stop, lake, sql, ["firing", _STAGE], "no alert of the silence")
    programs.start(probe)
    wait(stop, lake, sql, ["resolved", _STAGE], "no end of the silence")


@dataclass(frozen=True, slots=True)
class Folders:
    """Where a demo writes.

    Attributes:
        tables: The lake.
        rest: Logs, the data of the servers, and `journal.jsonl`, in which the traffic notes what it did.
    """

    tables: Path
    rest: Path

    @property
    def journal(self) -> Path:
        """What the traffic did, a JSON object a line; `quiet` when the stage has gone quiet."""
        return self.rest / "journal.jsonl"


def folders_of(console: Console, lake: Path | None) -> Folders:
    """The folders of one run of a demo, which are printed.

    Args:
        console: Where to write.
        lake: Folder for the tables; None takes a new one.

    Raises:
        SetupError: The folder is not empty, cannot be created, or there is no space.
    """
    rest = Path(tempfile.mkdtemp(prefix="evenkeel-demo-"))
    tables = _empty_folder(lake.resolve() if lake is not None else rest / "lake")
    say(console, f"tables in {tables}; logs, servers and journal in {rest}")
    return Folders(tables, rest)


def settings_of_demo(settings: Settings, bootstrap: str, alerts: AlertSettings, **own: Any) -> Settings:
    """The user's settings, without what is meant for the user's own cluster.

    Args:
        settings: The user's.
        bootstrap: The demo's Kafka.
        alerts: The alerter's, without the user's targets: a demo must not page anyone.
        own: Further settings that the demo overrides.
    """
    return settings.model_copy(
        update={
            "kafka": KafkaSettings(bootstrap_servers=bootstrap),
            "filters": type(settings.filters)(),
            "strategies": (),
            "probe": settings.probe.model_copy(update={"interval_ms": INTERVAL_MS}),
            "job": settings.job.model_copy(update={"trigger_ms": INTERVAL_MS}),
            "alerts": alerts,
            "serve": ServeSettings(listen=f"127.0.0.1:{_page_port()}", refresh_ms=_REFRESH_MS),
            **own,
        }
    )


def run_course(
    console: Console,
    stop: threading.Event,
    fleet: Mapping[str, Settings],
    folders: Folders,
    traffic: Program,
    seconds: int | None,
    judge: Callable[[], tuple[list[str], list[str]]],
    at_end: Callable[[Programs, Mapping[str, Program]], None] = lambda *_: None,
) -> int:
    """Start the programs and the traffic, and watch or check; returns the exit code.

    Args:
        console: Where to write.
        stop: Set by Ctrl-C.
        fleet: The programs' settings by the cluster's name; what is not a cluster's own is that of the first.
        folders: Where they write.
        traffic: The program that plays the stories.
        seconds: End after this many seconds, and check; None serves the page until Ctrl-C.
        judge: One sentence for everything that the tables lack, and one for everything that nobody can tell by them.
        at_end: Called with the programs, and the probes among them by cluster, when the tables show the quiet stage.
    """
    lake = str(folders.tables)
    settings = next(iter(fleet.values()))
    file = FleetFile(tuple(fleet.values()))
    probes = {name: probe_of(name, file) for name in fleet}
    with Programs(folders.rest / "logs", _environment(fleet, folders), lambda said: say(console, said)) as programs:
        for program in (JOB, *probes.values(), SERVER, traffic):
            programs.start(program)
        say(console, f"page at {page_url(settings)}")
        if seconds is None:
            stop.wait()
            console.print("stopping: the job ends between two batches …")
            return 0
        is_quiet = _play(console, stop, folders.journal, seconds)
        if is_quiet:
            _catch_up(stop, lake, settings.cluster)
            at_end(programs, probes)
        programs.stop([JOB.name, SERVER.name, *(probe.name for probe in probes.values())])
        missing, unjudged = ["it was stopped"], list[str]()
        if is_quiet:
            missing, unjudged = judge()
    for sentence in unjudged:
        say(console, f"not judged: {sentence}", "yellow")
    for sentence in missing:
        say(console, f"missing: {sentence}", "red")
    if not missing:
        told = "every other story is in the tables" if unjudged else "every story is in the tables"
        console.print(told, style="green")
    return 1 if missing else 0


def _environment(fleet: Mapping[str, Settings], folders: Folders) -> dict[str, str]:
    """The settings as variables; with several clusters, what is their own in a file."""
    # The programs must not read the user's file as well: its targets would be told of the demo's alerts.
    nothing, file = folders.rest / "nothing", folders.rest / "evenkeel.toml"
    nothing.touch()
    settings = next(iter(fleet.values()))
    variables = environment_of(settings) | {"EVENKEEL_ALERTS__TARGETS_FILE": str(nothing)}
    if len(fleet) == 1:
        return variables | {"EVENKEEL_CONFIG": str(nothing)}
    file.write_text(
        "".join(
            f'[[clusters]]\nname = "{name}"\n[clusters.kafka]\nbootstrap_servers = "{one.kafka.bootstrap_servers}"\n'
            f'[clusters.probe]\nevents_topic = "{one.probe.events_topic}"\nrounds_topic = "{one.probe.rounds_topic}"\n'
            for name, one in fleet.items()
        )
    )
    own = (
        CHOSEN,
        "EVENKEEL_KAFKA__",
        "EVENKEEL_BUS__",
        "EVENKEEL_OFFSETS_LOG",
        "EVENKEEL_PROBE__EVENTS_TOPIC",
        "EVENKEEL_PROBE__ROUNDS_TOPIC",
    )
    return {name: value for name, value in variables.items() if not name.startswith(own)} | {
        "EVENKEEL_CONFIG": str(file)
    }


def wait(stop: threading.Event, lake: str, sql: str, given: list[Any], missing: str) -> None:
    """Wait until a query of one value, `done`, is true of the tables.

    Raises:
        EvenkeelError: It is not within two minutes.
    """
    reader = LakeReader(lake)
    deadline = time.monotonic() + _CATCH_UP_S
    while not stop.wait(1.0):
        reader.refresh()
        if reader.rows(sql, given)[0]["done"]:
            return
        if time.monotonic() > deadline:
            message = f"The tables in {lake} show {missing} within {_CATCH_UP_S:.0f} s: see the logs."
            raise EvenkeelError(message)


def _empty_folder(folder: Path) -> Path:
    """The folder, created if missing.

    Raises:
        SetupError: It is not empty, cannot be created, or there is no space.
    """
    if folder.exists() and any(folder.iterdir()):
        message = f"The folder {folder} is not empty: the demo starts with new tables, choose another with LAKE=."
        raise SetupError(message)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"The folder {folder} cannot be created ({error.strerror}): choose another with LAKE=."
        raise SetupError(message) from error
    if shutil.disk_usage(folder).free < _LEAST_SPACE:
        message = (
            f"Less than 2 GiB are free on the disk of {folder}: free some space, or choose another folder with LAKE=."
        )
        raise SetupError(message)
    return folder


def _page_port() -> int:
    """The server's own port if it is free, else any other."""
    default = ServeSettings().address[1]
    try:
        check_port_is_free(default)
    except SetupError:
        return free_port()
    return default


def _play(console: Console, stop: threading.Event, journal: Path, seconds: int) -> bool:
    """Wait until the stage has gone quiet; False when stopped before."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    began = time.monotonic()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("the stories play", total=seconds)
        while not stop.wait(0.5):
            progress.update(task, completed=min(seconds, time.monotonic() - began))
            if journal.exists() and _says_quiet(journal):
                return True
    return False


def _says_quiet(journal: Path) -> bool:
    """Whether one of the journal's last lines says so; what came before is not read at every poll."""
    with journal.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _NEWEST_BYTES))
        return any(map(_is_quiet, file.read().splitlines()))


def _is_quiet(line: bytes) -> bool:
    try:
        return bool(json.loads(line)["what"] == "quiet")
    except (ValueError, KeyError):
        return False  # an incomplete line, still being written


def _catch_up(stop: threading.Event, lake: str, cluster: str) -> None:
    """Wait until the tables show two rounds that began after the stage had gone quiet."""
    sql = "SELECT count(*) >= 2 AS done FROM rounds WHERE epoch(round_time) > ? AND cluster = ?"
    wait(stop, lake, sql, [time.time(), cluster], "no new round")
