"""Play the stories of the RocketMQ demo: members in threads, and a message a second to each topic.

    python -m streaming.demo.rocketmq.traffic --name-servers "HOST:PORT;HOST:PORT" --folder F [--seconds N]

Without `--seconds` it plays until SIGINT or SIGTERM. After N seconds the journal, `journal.jsonl` in the folder, says
`quiet`; the members stay, as wrong as they are, until the program is stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from streaming.demo.rocketmq.commands import CommandRefused, Commands
from streaming.demo.rocketmq.member import RocketMQMember
from streaming.demo.rocketmq.stories import QUEUES, STORIES, RocketMQStory
from streaming.exceptions import SETUP_EXIT_CODE
from streaming.lifecycle import stop_signals

_STEP_S = 1.0


class Note(Protocol):
    """Writes one line of the journal."""

    def __call__(self, what: str, **more: object) -> None:
        """Write it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m streaming.demo.rocketmq.traffic",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--name-servers", required=True, metavar="HOST:PORT;...")
    parser.add_argument("--folder", type=Path, required=True, help="for journal.jsonl")
    parser.add_argument("--seconds", type=float, help="say quiet after this many seconds")
    chosen = parser.parse_args(arguments)
    name_servers = tuple(chosen.name_servers.split(";"))
    try:
        with stop_signals() as stop, Commands(name_servers) as commands:
            _play(commands, name_servers, chosen.folder / "journal.jsonl", chosen.seconds, stop)
    except CommandRefused as error:
        sys.stderr.write(f"The cluster at {chosen.name_servers} does not do what the demo needs: {error}\n")
        return SETUP_EXIT_CODE
    return 0


def _play(
    commands: Commands, name_servers: Sequence[str], journal: Path, seconds: float | None, stop: threading.Event
) -> None:
    for story in STORIES:
        commands.create_topic(story.topic, QUEUES, story.brokers)
    with ExitStack() as stack, journal.open("a", encoding="utf-8") as file:

        def note(what: str, **more: object) -> None:
            file.write(json.dumps({"what": what, "time": time.time(), **more}) + "\n")
            file.flush()

        members = {
            story.group: stack.enter_context(story.players(name_servers, story.group, story.topic)) for story in STORIES
        }
        note("played", groups=sorted(members))
        began, step, lost = time.monotonic(), 0, set[str]()
        is_quiet = False
        while not stop.wait(max(0.0, began + step * _STEP_S - time.monotonic())):
            step += 1
            passed = time.monotonic() - began
            for story in STORIES:
                _lose_way(story, members[story.group], passed, lost, note)
                broker = story.brokers[step % len(story.brokers)]
                commands.send(story.topic, broker, step // len(story.brokers) % QUEUES, [b"demo"])
            if seconds is not None and passed >= seconds and not is_quiet:
                is_quiet = True
                note("quiet")


def _lose_way(story: RocketMQStory, members: list[RocketMQMember], passed: float, lost: set[str], note: Note) -> None:
    """Let the story's last member lose its way to a broker, and find it again, when it is time."""
    if story.lost_at is None:
        return
    begin, end = story.lost_at
    is_lost = begin <= passed < end
    if is_lost and story.group not in lost:
        members[-1].keep_away("broker-b")
        lost.add(story.group)
        note("lost", group=story.group)
    elif not is_lost and story.group in lost:
        members[-1].come_back("broker-b")
        lost.remove(story.group)
        note("found", group=story.group)


if __name__ == "__main__":
    sys.exit(main())
