"""A program that runs consumers of one Python library, like tests/oracle/GroupMembers.java runs Java's: it reads lines.

    start       name  topics  setting  value ...    a member joins, with Kafka's own names of settings
    subscribe   name  topics                        it subscribes to these topics from now on
    leave       name                                it leaves

It answers with `closed`, and `failed` with the error. Fields are separated by tabs, topics by commas.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["serve"]


def serve(opened: Callable[[Mapping[str, str]], Any], poll: Callable[[Any], object]) -> None:
    """Serve commands until the input ends; then every member ends with the process, as in a crash.

    Args:
        opened: Opens a consumer with these settings.
        poll: Lets it poll for a tenth of a second.
    """
    leaving: dict[str, threading.Event] = {}
    wanted: dict[str, list[str]] = {}

    def member(name: str, fields: list[str], ends: threading.Event) -> None:
        topics, *settings = fields
        try:
            with contextlib.closing(opened(dict(zip(settings[::2], settings[1::2], strict=True)))) as consumer:
                consumer.subscribe(topics.split(","))
                while not ends.is_set():
                    if name in wanted:
                        consumer.subscribe(wanted.pop(name))
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


def _say(*fields: str) -> None:
    sys.stdout.write("\t".join(fields) + "\n")  # (one write: `print` makes two, with other threads' output in between)
    sys.stdout.flush()
