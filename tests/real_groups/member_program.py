"""A program that runs consumers of one Python library, like tests/oracle/GroupMembers.java runs Java's: it reads lines.

    start       name  topics  setting  value ...    a member joins, with Kafka's own names of settings
    subscribe   name  topics                        it subscribes to these topics from now on
    leave       name                                it leaves

It answers with `closed`, and `failed` with the error; and when the library says what a member owns, with `assigned`,
`revoked` or `lost`, the name, the time of the machine's steady clock in ns, and the partitions as `topic:number`.
Fields are separated by tabs, topics and partitions by commas.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

Tell = Callable[[str, Iterable[Any]], None]
"""Reports what has happened to partitions of a member: `assigned`, `revoked` or `lost`."""


def serve(
    opened: Callable[[Mapping[str, str]], Any],
    subscribe: Callable[[Any, list[str], Tell], object],
    poll: Callable[[Any], object],
) -> None:
    """Serve commands until the input ends; then every member ends with the process, as in a crash.

    Args:
        opened: Opens a consumer with these settings.
        subscribe: Subscribes it to these topics.
        poll: Lets it poll for a tenth of a second.
    """
    leaving: dict[str, threading.Event] = {}
    wanted: dict[str, list[str]] = {}

    def member(name: str, fields: list[str], ends: threading.Event) -> None:
        topics, *settings = fields
        try:
            with contextlib.closing(opened(dict(zip(settings[::2], settings[1::2], strict=True)))) as consumer:
                subscribe(consumer, topics.split(","), partial(_tell, name))
                while not ends.is_set():
                    if name in wanted:
                        subscribe(consumer, wanted.pop(name), partial(_tell, name))
                    poll(consumer)
        except Exception as failed:  # noqa: BLE001 - any error is reported
            _say("failed", name, " ".join(repr(failed).split()))
        finally:
            _say("closed", name)

    for line in sys.stdin:
        word, name, *fields = line.rstrip("\n").split("\t")
        if word == "start":
            leaving[name] = threading.Event()
            threading.Thread(target=member, args=(name, fields, leaving[name]), daemon=True).start()
        elif word == "subscribe":
            wanted[name] = fields[0].split(",")
        elif name in leaving:
            leaving.pop(name).set()


def _tell(name: str, word: str, partitions: Iterable[Any]) -> None:
    now = time.monotonic_ns()
    _say(word, name, str(now), ",".join(f"{place.topic}:{place.partition}" for place in partitions))


def _say(*fields: str) -> None:
    sys.stdout.write("\t".join(fields) + "\n")  # one write: `print` makes two, with other threads' output in between
    sys.stdout.flush()
