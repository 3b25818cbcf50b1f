"""`make demo ROCKETMQ=1`: a real RocketMQ cluster, groups that go wrong on it, and all of Evenkeel watching them.

    python -m tests.rocketmq.demo [--seconds N] [--lake FOLDER]

Rounds and events go to a Kafka broker of the demo's own (`[bus]`). As with the Kafka demo, `--seconds` ends it and
compares the tables with what each story must show. The program that plays the stories is this module as well, with
`--name-servers`: members in threads, and a message a second to each topic; after N seconds its journal says `quiet`.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from streaming.config import AlertSettings, KafkaSettings, RocketMQSettings, Settings, load_settings
from streaming.demo.broker import DEMO_OVERRIDES, EmbeddedBroker
from streaming.demo.journal import Journal
from streaming.demo.run import LOOK_MS, folders_of, run_course, settings_of_demo
from streaming.exceptions import SETUP_EXIT_CODE, EvenkeelError, SetupError
from streaming.process import Program
from streaming.up import stop_signals
from tests.rocketmq.commands import Commands
from tests.rocketmq.member import RocketMQMember
from tests.rocketmq.servers import EmbeddedRocketMQ
from tests.rocketmq.stories import (
    BROKERS,
    FIRST_PASS_S,
    LOST_AT_S,
    NAME_SERVERS,
    QUEUES,
    REGISTERS,
    STORIES,
    check_stories,
)

_FRAME_S = 40
"""Beside the stories: the start of the programs, the last rounds and batches."""


def main() -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.rocketmq.demo")
    parser.add_argument("--seconds", type=int, help="end after this many seconds and check every story")
    parser.add_argument("--lake", type=Path, help="folder for the tables; must be empty or new")
    parser.add_argument("--name-servers", help=argparse.SUPPRESS)
    parser.add_argument("--journal", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    try:
        if chosen.name_servers:
            play(tuple(chosen.name_servers.split(";")), Journal(chosen.journal), chosen.seconds)
            return 0
        return watch(Console(), chosen.seconds, chosen.lake)
    except EvenkeelError as error:
        sys.stderr.write(f"{error}\n")
        return SETUP_EXIT_CODE if isinstance(error, SetupError) else 1


def watch(console: Console, seconds: int | None, lake: Path | None) -> int:
    """Start the cluster and the programs; returns the exit code."""
    folders = folders_of(console, lake)
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])  # for the program that plays
    with (
        stop_signals() as stop,
        console.status("starting a RocketMQ cluster, and a Kafka broker for Evenkeel's own topics …") as status,
        EmbeddedBroker(folders.rest / "broker", overrides=DEMO_OVERRIDES) as bus,
        EmbeddedRocketMQ(
            folders.rest / "rocketmq", brokers=BROKERS, name_servers=NAME_SERVERS, registers=REGISTERS
        ) as cluster,
    ):
        settings = demo_settings(bus.bootstrap, cluster.addresses, folders.tables)
        status.stop()
        arguments = ["-m", "tests.rocketmq.demo", "--name-servers", ";".join(cluster.addresses)]
        arguments += ["--journal", str(folders.journal)]
        if seconds is not None:
            arguments += ["--seconds", str(round(max(FIRST_PASS_S, seconds - _FRAME_S)))]
        traffic = Program("traffic", tuple(arguments), grace_s=20)
        return run_course(console, stop, settings, folders, traffic, seconds, lambda lake: (check_stories(lake), []))


def demo_settings(bus: str, name_servers: tuple[str, ...], tables: Path) -> Settings:
    """The programs watch the demo's cluster and write to its own broker, whatever the user's file says."""
    return settings_of_demo(
        load_settings(cluster="rocketmq-demo", lake=str(tables)),
        bus,
        AlertSettings(poll_ms=LOOK_MS),
        bus=KafkaSettings(bootstrap_servers=bus),
        rocketmq=RocketMQSettings(name_servers=";".join(name_servers)),
    )


def play(name_servers: tuple[str, ...], journal: Journal, seconds: float | None) -> None:
    """Play until SIGINT or SIGTERM; after so many seconds the journal says `quiet`, and the members go on."""
    with stop_signals() as stop, Commands(name_servers) as commands, ExitStack() as stack:
        for story in STORIES:
            commands.create_topic(story.topic, QUEUES, story.brokers)
        members = {
            story.group: stack.enter_context(story.players(name_servers[: story.asks], story.group, story.topic))
            for story in STORIES
        }
        stray = members["emails-lost-way"][-1]
        threading.Thread(target=_lose_way, args=(stray, stop), daemon=True).start()
        began, step = time.monotonic(), 0
        while not stop.wait(max(0.0, began + step - time.monotonic())):
            step += 1
            for story in STORIES:
                broker = story.brokers[step % len(story.brokers)]
                commands.send(story.topic, broker, step // len(story.brokers) % QUEUES, [b"demo"])
            if seconds is not None and step == round(seconds):
                journal.write("quiet")


def _lose_way(member: RocketMQMember, stop: threading.Event) -> None:
    begin, end = LOST_AT_S
    if not stop.wait(begin):
        member.keep_away("broker-b")
    if not stop.wait(end - begin):
        member.come_back("broker-b")


if __name__ == "__main__":
    sys.exit(main())
