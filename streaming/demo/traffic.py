"""Play the demo's stories against a cluster.

    python -m streaming.demo.traffic --bootstrap HOST:PORT [--folder F] [--seconds N] [--stories 1,4]

Without `--seconds` it plays until SIGINT or SIGTERM, at which all members leave at once. After N seconds, or at
SIGUSR1, the stage goes quiet: stories stop, no record is produced, members consume the rest and commit a last time, and
the journal says `quiet`; from then on lag and offsets do not change. With `--stay` the members then stay in their
groups until SIGINT or SIGTERM; without it they leave, and the program ends with exit code 0, or 1 if a story or a
member failed; each failure is printed on standard error.

Start it as a `GuardedProcess` (or a child that you stop), so that it ends with its starter. Its own member processes
always end with it.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from kafka.errors import KafkaError

from streaming.demo.stage import Stage, Story
from streaming.demo.stories import ALL_STORIES
from streaming.exceptions import SETUP_EXIT_CODE, SetupError
from streaming.lifecycle import on_signals, on_stop_signals

_PARENT_POLL_S = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m streaming.demo.traffic",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--bootstrap", required=True, metavar="HOST:PORT")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="for journal.jsonl and members.log")
    parser.add_argument("--seconds", type=float, help="go quiet after this many seconds")
    parser.add_argument("--stay", action="store_true", help="keep the members in their groups when quiet")
    parser.add_argument("--stories", help="numbers of the stories to play, separated by commas (default: all)")
    chosen = parser.parse_args(arguments)
    # Clients report each lost connection at length; the tables show those that matter.
    logging.basicConfig(level=logging.ERROR, filename=None)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    numbers = {int(number) for number in chosen.stories.split(",")} if chosen.stories else None
    stories = tuple(story for story in ALL_STORIES if numbers is None or story.number in numbers)
    stop, quiet = threading.Event(), threading.Event()

    def end(*_: object) -> None:
        stop.set()
        quiet.set()

    with on_stop_signals(end), on_signals(lambda _: quiet.set(), signal.SIGUSR1):
        return _play(chosen, stories, stop, quiet)


def _play(chosen: argparse.Namespace, stories: tuple[Story, ...], stop: threading.Event, quiet: threading.Event) -> int:
    try:
        stage = Stage(chosen.bootstrap, chosen.folder)
    except (KafkaError, SetupError) as error:
        sys.stderr.write(f"The cluster at {chosen.bootstrap} does not answer ({error}): is it running?\n")
        return SETUP_EXIT_CODE
    threading.excepthook = stage.thread_died
    threading.Thread(target=_stop_with_the_starter, args=(stop, quiet), daemon=True).start()
    stage.play(stories)
    quiet.wait(chosen.seconds)
    if not stop.is_set():
        stage.go_quiet()
        if chosen.stay:
            stop.wait()
    stage.close()
    for failure in stage.failures:
        sys.stderr.write(f"{failure}\n")
    return 1 if stage.failures else 0


def _stop_with_the_starter(stop: threading.Event, quiet: threading.Event) -> None:
    """End the play when its starter process is gone."""
    starter = os.getppid()
    while not stop.wait(_PARENT_POLL_S):
        if os.getppid() != starter:
            stop.set()
            quiet.set()


if __name__ == "__main__":
    sys.exit(main())
