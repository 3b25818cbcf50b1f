"""Runs kafka-python's consumers like tests/oracle/GroupMembers.java runs Java's, so that they can crash."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any

from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from streaming.demo.kafka_python_member import wait_for_joins

_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


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
    told = dict(zip(settings[::2], settings[1::2], strict=True))
    options: dict[str, Any] = {
        "bootstrap_servers": told["bootstrap.servers"],
        "group_id": told["group.id"],
        "group_instance_id": told.get("group.instance.id"),
        "partition_assignment_strategy": [_ASSIGNORS[s] for s in told["partition.assignment.strategy"].split(",")],
        "session_timeout_ms": int(told["session.timeout.ms"]),
        "heartbeat_interval_ms": int(told["heartbeat.interval.ms"]),
        "metadata_max_age_ms": int(told["metadata.max.age.ms"]),
        "allow_auto_create_topics": False,
    }
    try:
        with contextlib.closing(KafkaConsumer(**options)) as consumer:
            wait_for_joins(consumer)
            consumer.subscribe(topics.split(","))
            while not leaving.is_set():
                if name in wanted:
                    consumer.subscribe(wanted.pop(name))
                consumer.poll(100)
    except Exception as failed:  # noqa: BLE001 - any error is reported
        _tell("failed", name, " ".join(repr(failed).split()))
    finally:
        _tell("closed", name)


def _tell(*fields: str) -> None:
    sys.stdout.write("\t".join(fields) + "\n")  # (one write: `print` makes two, with other threads' output in between)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
