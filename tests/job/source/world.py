"""A world of topics in memory for the planner, with the contents of its tasks."""

from __future__ import annotations

from typing import Any

from streaming.events import encode
from streaming.job.source.planner import Planner
from streaming.job.source.settings import SourceSettings
from streaming.job.source.tasks import SourceTask
from streaming.records import (
    ROUNDS_KEY,
    ClosedRound,
    LogGap,
    PartitionInput,
    QuarantinedRecord,
    decode_closed_rounds,
    decode_partition_inputs,
    partition_key,
)
from tests.job.source.fake_reader import FakeReader, both
from tests.job.source.made_rounds import CLUSTER, closed, opened

SETTINGS = SourceSettings(
    cluster=CLUSTER, kafka={}, offsets_topic="log", events_topic="events", rounds_topic="rounds", interval_ms=10_000
)
FROM_LOG = SETTINGS.model_copy(update={"offsets_log": "log"})
"""With these a query reads the log before its first round."""


class World:
    """A log of two partitions, an events topic of one, rounds; a planner and its clock."""

    def __init__(self) -> None:
        self.reader = FakeReader()
        self.reader.cluster_id = "kafka"
        for partition in range(2):
            self.log(partition, 1)
        self.reader.append("events", 0, b"junk")
        self.now = 0.0
        self.planner = self.restart()

    def restart(self, settings: SourceSettings = SETTINGS) -> Planner:
        self.planner = Planner(settings, lambda _settings, _patience: both(self.reader), lambda: self.now)
        return self.planner

    def log(self, partition: int, records: int) -> None:
        for _ in range(records):
            self.reader.append("log", partition, b"")

    def ends(self) -> list[int]:
        return [end for place, end in sorted(self.reader.end.items()) if place.topic == "log"]

    def open(self, **changes: Any) -> int:
        return self.reader.append("rounds", 0, encode(opened(**changes)))

    def close(self, number: int, **changes: Any) -> int:
        content = encode(closed(number, **({"log": self.ends()} | changes)))
        self.reader.append("rounds", 0, content, time=2_000_000 + number)
        return number

    def round(self, **changes: Any) -> int:
        return self.close(self.open(), **changes)


def rounds_of(tasks: list[SourceTask]) -> list[int]:
    return [closed.round for closed in closed_rounds(tasks)]


def closed_rounds(tasks: list[SourceTask]) -> list[ClosedRound]:
    rows = [payload for task in tasks for key, payload in task.rows if key == ROUNDS_KEY]
    return [closed for payload in rows for closed in decode_closed_rounds(payload)]


def gaps_of(tasks: list[SourceTask]) -> list[tuple[str, str, int, int, int]]:
    rows = [payload for task in tasks for key, payload in task.rows if key.startswith("p:")]
    return [
        (item.kind, item.topic, item.partition, item.from_offset, item.to_offset)
        for payload in rows
        for item in decode_partition_inputs(payload)
        if isinstance(item, LogGap)
    ]


def unreadable_of(tasks: list[SourceTask]) -> list[PartitionInput]:
    rows = [payload for task in tasks for key, payload in task.rows if key == partition_key("rounds", 0)]
    return [item for payload in rows for item in decode_partition_inputs(payload)]


def told(tasks: list[SourceTask]) -> list[tuple[str, int, str]]:
    return [
        ("gap", item.from_offset, item.reason) if isinstance(item, LogGap) else ("record", item.offset, item.reason)
        for item in unreadable_of(tasks)
        if isinstance(item, (LogGap, QuarantinedRecord))
    ]
