"""`make demo ROCKETMQ=1`: a real RocketMQ cluster, groups that go wrong on it, and all of Evenkeel watching them.

    python -m tests.rocketmq.demo [--seconds N] [--lake FOLDER]

Rounds and events go to a folder in the lake, so no Kafka runs. As with the Kafka demo, `--seconds` ends it and
compares the tables with what each story must show. The program that plays the stories is this module as well, with
`--name-servers`: members in threads, and a message a second to each topic; after N seconds its journal says `quiet`.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from streaming.config import AlertSettings, BusFolder, RocketMQSettings, Settings, load_settings
from streaming.demo.journal import Journal
from streaming.demo.run import LOOK_MS, folders_of, run_course, settings_of_demo
from streaming.exceptions import SETUP_EXIT_CODE, EvenkeelError, SetupError
from streaming.process import Program
from streaming.tables import LakeReader
from streaming.up import stop_signals
from tests.rocketmq import recipes
from tests.rocketmq.commands import Commands
from tests.rocketmq.member import RocketMQMember
from tests.rocketmq.servers import EmbeddedRocketMQ

BROKERS: Final = ("broker-a", "broker-b", "broker-c")
NAME_SERVERS: Final = 2
REGISTERS: Final = {"broker-c": (0,)}
QUEUES: Final = 4
"""Per topic, on each of its brokers."""

FIRST_PASS_S: Final = 200.0
"""A client id used twice is a finding after 150 s; then come some rounds and a batch, on a busy machine."""

LOST_AT_S: Final = (60.0, 75.0)
"""When the last member of `emails-lost-way` loses its way to `broker-b`, and finds it again. Long enough for two rounds
and the 5 s of `member_lists_differ`; shorter than the ten rounds after which lag counts as stopped."""

Players = Callable[..., AbstractContextManager[list[RocketMQMember]]]
"""The members of a group while they play: from name servers, group and topic."""

_OWNERS = frozenset({"doubly_held", "held_by_nobody"})
_WHILE_FLIPPING = frozenset({"views_differ", "lag", "imbalance"})
"""Owners that flip are right for moments, in which the rest counts."""

_DURING_START = frozenset({"silence"})
"""On a slow machine rounds are there before the job is: until it has caught up, the cluster is silent."""


@dataclass(frozen=True, slots=True)
class RocketMQStory:
    """One group and what must be said of it. Anything beyond what is named here is an error.

    Attributes:
        number: Its number; 0 for groups in which nothing is wrong.
        group: The group.
        topic: Its topic.
        players: Its members.
        found: Findings that it must have.
        possible: Findings that it may have beside them.
        alerts: Rules that must fire for it.
        possible_alerts: Rules that may.
        brokers: Brokers with queues of the topic.
        asks: How many of the name servers its members know.
        verdict: Its newest verdict, without a finding; None where owners are wrong to the end.
    """

    number: int
    group: str
    topic: str
    players: Players
    found: frozenset[str] = frozenset()
    possible: frozenset[str] = frozenset()
    alerts: frozenset[str] = frozenset()
    possible_alerts: frozenset[str] = frozenset()
    brokers: tuple[str, ...] = ("broker-a", "broker-b")
    asks: int = 1
    verdict: str | None = None


_ONE = frozenset({"queue_owners"})
"""One incident, one alert, with its reasons as evidence."""

_FLIPS = frozenset({"idle_members", "rebalance_storm", *_OWNERS})

STORIES: Final[tuple[RocketMQStory, ...]] = (
    RocketMQStory(0, "billing", "orders", recipes.steady, verdict="identical"),
    RocketMQStory(0, "price-board", "prices", recipes.a_group_that_broadcasts, verdict="not_applicable"),
    RocketMQStory(
        *(1, "invoices-two-strategies", "invoices", recipes.strategies_that_differ),
        found=frozenset({"mixed_strategies", "split_brain", *_OWNERS}),
        alerts=_ONE,
    ),
    RocketMQStory(
        *(2, "stock-two-routes", "stock", recipes.a_name_server_that_knows_less),
        found=frozenset({"route_differs", "member_lists_differ", "split_brain"}),
        possible=_FLIPS,
        alerts=_ONE,
        possible_alerts=_WHILE_FLIPPING,
        brokers=("broker-a", "broker-c"),
        asks=2,
    ),
    RocketMQStory(
        *(3, "clicks-one-broker", "clicks", partial(recipes.a_heartbeat_to_one_broker_only, away_from="broker-b")),
        found=frozenset({"member_lists_differ", "split_brain"}),
        possible=_FLIPS,
        alerts=_ONE,
        possible_alerts=_WHILE_FLIPPING,
    ),
    RocketMQStory(
        *(4, "emails-lost-way", "emails", recipes.unhurried),
        found=frozenset({"member_lists_differ"}),
        verdict="identical",
    ),
    RocketMQStory(
        *(5, "tills-same-id", "tills", recipes.one_client_id_twice),
        found=frozenset({"held_by_nobody", "duplicate_client_id", "split_brain"}),
        alerts=_ONE,
    ),
)


def check_stories(reader: LakeReader) -> list[str]:
    """One sentence for everything that is missing or too much."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in reader.rows("SELECT DISTINCT group_id, unnest(findings).finding AS finding FROM group_health"):
        found[row["group_id"]].add(row["finding"])
    fired: dict[str, set[str]] = defaultdict(set)
    for row in reader.rows("SELECT DISTINCT group_id, rule FROM alerts WHERE state = 'firing'"):
        fired[row["group_id"] or ""].add(row["rule"])
    missing = [
        f"story {story.number}: {sentence}"
        for story in STORIES
        for sentence in _check(reader, story, found[story.group], fired[story.group])
    ]
    known = {story.group for story in STORIES} | {""}
    missing += [f"alerts of {group}, which is in no story: {sorted(fired[group])}" for group in fired.keys() - known]
    if others := fired[""] - _DURING_START:
        missing.append(f"alerts of the cluster: {', '.join(sorted(others))}")
    if broken := reader.rows("SELECT reason FROM quarantine"):
        missing.append(f"records that could not be read: {broken[0]['reason']}")
    return missing


def _check(reader: LakeReader, story: RocketMQStory, found: set[str], fired: set[str]) -> Iterator[str]:
    for what, names, must, may in (
        ("findings", found, story.found, story.possible),
        ("alerts", fired, story.alerts, story.possible_alerts),
    ):
        if lacking := must - names:
            yield f"{story.group} never had the {what} {', '.join(sorted(lacking))}"
        if others := names - must - may:
            yield f"{story.group} should not have had the {what} {', '.join(sorted(others))}"
    rows = reader.rows("SELECT verdict, findings FROM group_health_current WHERE group_id = ?", [story.group])
    if not rows:
        yield f"group_health has no row of {story.group}"
    for now in rows:
        if story.verdict is not None and (now["verdict"] != story.verdict or now["findings"]):
            yield f"{story.group} should end {story.verdict}, without a finding: {now['verdict']}, {now['findings']}"


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
        console.status("starting a RocketMQ cluster …") as status,
        EmbeddedRocketMQ(
            folders.rest / "rocketmq", brokers=BROKERS, name_servers=NAME_SERVERS, registers=REGISTERS
        ) as cluster,
    ):
        settings = demo_settings(cluster.addresses, folders.tables)
        status.stop()
        arguments = ["-m", "tests.rocketmq.demo", "--name-servers", ";".join(cluster.addresses)]
        arguments += ["--journal", str(folders.journal)]
        if seconds is not None:
            arguments += ["--seconds", str(round(max(FIRST_PASS_S, seconds - _FRAME_S)))]
        traffic = Program("traffic", tuple(arguments), grace_s=20)

        def judge() -> tuple[list[str], list[str]]:
            return check_stories(LakeReader(folders.tables)), []

        return run_course(console, stop, {settings.cluster: settings}, folders, traffic, seconds, judge)


def demo_settings(name_servers: tuple[str, ...], tables: Path) -> Settings:
    """The programs watch the demo's cluster and write to a folder in its lake, whatever the user's file says."""
    return settings_of_demo(
        load_settings(cluster="rocketmq-demo", lake=str(tables)),
        "",
        AlertSettings(poll_ms=LOOK_MS),
        bus=BusFolder(folder=str(tables / "_bus")),
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
