"""`evenkeel demo --rocketmq`: a real RocketMQ cluster, groups that go wrong on it, and all of Evenkeel watching them.

Rounds and events go to a Kafka broker of the demo's own (`[bus]`). As with the Kafka demo, `seconds` ends it and
compares the tables with what each story must show.
"""

from __future__ import annotations

import tempfile
from collections import deque
from datetime import timedelta
from pathlib import Path

from rich.console import Console

from streaming.config import RocketMQSettings, ServeSettings, Settings, environment_of, load_settings
from streaming.demo.broker import DEMO_OVERRIDES, EmbeddedBroker
from streaming.demo.frame import INTERVAL_MS, LOOK_MS, catch_up, empty_folder, free_port, look, play
from streaming.demo.rocketmq.expectations import check_rocketmq_stories
from streaming.demo.rocketmq.servers import EmbeddedRocketMQ
from streaming.demo.rocketmq.stories import BROKERS, FIRST_PASS_S, NAME_SERVERS, REGISTERS
from streaming.process import Program, Programs
from streaming.tables import LakeReader
from streaming.up import ALERTER, JOB, PROBE, SERVER, lines, page_url, print_summary, stop_signals, watch

_FRAME_S = 40
"""Beside the stories: the start of the programs, the last rounds and batches."""


def rocketmq_demo(console: Console, seconds: int | None, lake: Path | None) -> int:
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
    console.print(lines(f"tables in {tables}\nlogs, servers and journal in {folder}"), soft_wrap=True)
    notices: deque[str] = deque(maxlen=1)
    with (
        stop_signals() as stop,
        console.status("starting a RocketMQ cluster, and a Kafka broker for Evenkeel's own topics …") as status,
        EmbeddedBroker(folder / "broker", overrides=DEMO_OVERRIDES) as bus,
        EmbeddedRocketMQ(
            folder / "rocketmq", brokers=BROKERS, name_servers=NAME_SERVERS, registers=REGISTERS
        ) as cluster,
    ):
        settings = _settings(bus.bootstrap, cluster.addresses, tables)
        with Programs(folder / "logs", environment_of(settings), notices.append) as programs:
            status.stop()
            for program in (JOB, PROBE, ALERTER, _traffic(cluster.addresses, folder, seconds)):
                programs.start(program)
            if seconds is None:
                programs.start(SERVER)
                page = f"page at {page_url(settings)}"
                console.print(lines(page), soft_wrap=True)

                def newest() -> str:
                    return "\n".join(filter(None, [page, look(programs, notices)]))

                heartbeat = timedelta(milliseconds=settings.job.heartbeat_ms)
                watch(str(tables), console, stop, newest, programs.note, heartbeat)
                console.print("stopping: the job ends between two batches …")
                return 0
            is_quiet = play(console, stop, programs, notices, folder / "journal.jsonl", seconds)
            if is_quiet:
                catch_up(stop, str(tables))
            programs.stop(["probe", "job", "alerter"])
    missing = _judge(console, tables) if is_quiet else ["it was stopped"]
    for sentence in missing:
        console.print(lines(f"missing: {sentence}", style="red"), soft_wrap=True)
    if not missing:
        console.print("every story is in the tables", style="green")
    return 1 if missing else 0


def _settings(bus: str, name_servers: tuple[str, ...], tables: Path) -> Settings:
    settings = load_settings(cluster="rocketmq-demo", lake=str(tables))
    # The user's own connections and filters are meant for the user's own cluster.
    kafka = type(settings.kafka)(bootstrap_servers=bus)
    return settings.model_copy(
        update={
            "kafka": kafka,
            "bus": kafka,
            "rocketmq": RocketMQSettings(name_servers=";".join(name_servers)),
            "filters": type(settings.filters)(),
            "strategies": (),
            "probe": settings.probe.model_copy(update={"interval_ms": INTERVAL_MS}),
            "job": settings.job.model_copy(update={"trigger_ms": INTERVAL_MS}),
            # (Default rules, without the user's targets: a demo must not page anyone.)
            "alerts": type(settings.alerts)(look_ms=LOOK_MS),
            "serve": ServeSettings(listen=f"127.0.0.1:{free_port()}", refresh_ms=1_000),
        }
    )


def _traffic(name_servers: tuple[str, ...], folder: Path, seconds: int | None) -> Program:
    arguments = ["-m", "streaming.demo.rocketmq.traffic", "--name-servers", ";".join(name_servers)]
    arguments += ["--folder", str(folder)]
    if seconds is not None:
        arguments += ["--seconds", str(max(FIRST_PASS_S, seconds - _FRAME_S))]
    return Program("traffic", tuple(arguments), grace_s=20)


def _judge(console: Console, tables: Path) -> list[str]:
    reader = LakeReader(tables)
    print_summary(console, reader)
    return check_rocketmq_stories(reader)
