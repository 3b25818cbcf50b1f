"""`evenkeel demo --rocketmq`: a real RocketMQ cluster, groups that go wrong on it, and all of Evenkeel watching them.

Rounds and events go to a Kafka broker of the demo's own (`[bus]`). As with the Kafka demo, `seconds` ends it and
compares the tables with what each story must show.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from streaming.config import AlertSettings, KafkaSettings, RocketMQSettings, Settings, load_settings
from streaming.demo.broker import DEMO_OVERRIDES, EmbeddedBroker
from streaming.demo.frame import LOOK_MS, Folders, folders_of, run_course, settings_of_demo
from streaming.demo.rocketmq.expectations import check_rocketmq_stories
from streaming.demo.rocketmq.servers import EmbeddedRocketMQ
from streaming.demo.rocketmq.stories import BROKERS, FIRST_PASS_S, NAME_SERVERS, REGISTERS
from streaming.process import Program
from streaming.up import stop_signals

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
    folders = folders_of(console, lake)
    with (
        stop_signals() as stop,
        console.status("starting a RocketMQ cluster, and a Kafka broker for Evenkeel's own topics …") as status,
        EmbeddedBroker(folders.rest / "broker", overrides=DEMO_OVERRIDES) as bus,
        EmbeddedRocketMQ(
            folders.rest / "rocketmq", brokers=BROKERS, name_servers=NAME_SERVERS, registers=REGISTERS
        ) as cluster,
    ):
        settings = _settings(bus.bootstrap, cluster.addresses, folders.tables)
        status.stop()
        traffic = _traffic(cluster.addresses, folders, seconds)
        return run_course(
            console, stop, settings, folders, traffic, seconds, lambda reader: (check_rocketmq_stories(reader), [])
        )


def _settings(bus: str, name_servers: tuple[str, ...], tables: Path) -> Settings:
    return settings_of_demo(
        load_settings(cluster="rocketmq-demo", lake=str(tables)),
        bus,
        AlertSettings(look_ms=LOOK_MS),
        bus=KafkaSettings(bootstrap_servers=bus),
        rocketmq=RocketMQSettings(name_servers=";".join(name_servers)),
    )


def _traffic(name_servers: tuple[str, ...], folders: Folders, seconds: int | None) -> Program:
    arguments = ["-m", "streaming.demo.rocketmq.traffic", "--name-servers", ";".join(name_servers)]
    arguments += ["--folder", str(folders.rest)]
    if seconds is not None:
        arguments += ["--seconds", str(max(FIRST_PASS_S, seconds - _FRAME_S))]
    return Program("traffic", tuple(arguments), grace_s=20)
