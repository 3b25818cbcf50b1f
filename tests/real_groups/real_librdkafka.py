"""Runs librdkafka's consumers like tests/oracle/GroupMembers.java runs Java's: a separate program that reads lines."""

from __future__ import annotations

import contextlib
import sys
import threading

import confluent_kafka


def main() -> None:
    """Serve commands until the input ends; then every member ends with the process, as in a crash."""
    leaving: dict[str, threading.Event] = {}
    wanted: dict[str, list[str]] = {}
    for line in sys.stdin:
        word, name, *fields = line.rstrip("\n").split("\t")
        if word == "start":
            leaving[name] = threading.Event()
            threading.Thread(target=_member, args=(name, fields, leaving[name], wanted), daemon=True).start()
        elif word == "subscribe":
            wanted[name] = fields[0].split(",")
        elif name in leaving:
            leaving.pop(name).set()


def _member(name: str, fields: list[str], leaving: threading.Event, wanted: dict[str, list[str]]) -> None:
    topics, *settings = fields
    try:
        consumer = confluent_kafka.Consumer(dict(zip(settings[::2], settings[1::2], strict=True)))
        with contextlib.closing(consumer):
            consumer.subscribe(topics.split(","))
            while not leaving.is_set():
                if name in wanted:
                    consumer.subscribe(wanted.pop(name))
                consumer.poll(0.1)
    except Exception as failed:  # noqa: BLE001 - any error is reported
        _tell("failed", name, " ".join(repr(failed).split()))
    finally:
        _tell("closed", name)


def _tell(*fields: str) -> None:
    sys.stdout.write("\t".join(fields) + "\n")  # (one write: `print` makes two, with other threads' output in between)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
