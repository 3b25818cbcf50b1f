"""What rebalances of real groups cost by their rows, beside what their members measured.

`REBALANCES=N make soak` sets the number of rebalances of all groups together, `SEED=N` another sequence of events. The
table of one run is in docs/exactness.md.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

import pytest
from confluent_kafka import Producer

from streaming.demo.broker import EmbeddedBroker
from streaming.demo.stage import QUIET_LIBRDKAFKA
from streaming.groups.rows import ChurnRow
from streaming.records import group_key
from tests.conftest import Tell
from tests.real_groups.followed import Followed
from tests.real_groups.measured_churn import MeasuredGroup, unowned
from tests.real_groups.party import make_topics
from tests.real_groups.real_members import LIBRARIES

pytestmark = [pytest.mark.kafka, pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(0), pytest.mark.turn(0)]

REBALANCES: Final = int(os.environ.get("REBALANCES", "500"))
SEED: Final = int(os.environ.get("SEED", "5"))

_JAVA = "org.apache.kafka.clients.consumer."
STRATEGIES: Final[Mapping[str, Mapping[str, str]]] = {
    "java": {
        "range": _JAVA + "RangeAssignor",
        "sticky": _JAVA + "StickyAssignor",
        "cooperative-sticky": _JAVA + "CooperativeStickyAssignor",
    },
    "librdkafka": {name: name for name in ("range", "roundrobin", "cooperative-sticky")},
    "kafka-python": {name: name for name in ("range", "roundrobin", "cooperative-sticky")},
}
PARTITIONS: Final = (1, 6)
"""With one partition, a row's bounds are those of the partition."""

_INTERVAL_MS: Final = 5_000

_OF_ONE_CHANGE: Final = 1.1
"""Rebalances that one change makes, about."""

_TICK_MS: Final = 2
"""Times in the log are whole ms, and a bound is the difference of two of them."""

_MOST_TIMES: Final = 3
_MOST_INTERVALS: Final = 2
_WITHIN: Final = 0.9
"""The aim of the bounds: the upper one at most 3 times the lower one and two intervals, for nine of ten."""


@dataclass(frozen=True)
class Compared:
    """A rebalance: bounds of its row beside what was measured, all in ms for all partitions together."""

    library: str
    row: ChurnRow
    partitions: int
    shortest: float
    longest: float

    @property
    def least(self) -> float:
        return 1_000 * (self.row.unassigned_partition_seconds_min or 0.0)

    @property
    def most(self) -> float | None:
        seconds = self.row.unassigned_partition_seconds_max
        return None if seconds is None else 1_000 * seconds

    @property
    def is_outside(self) -> bool:
        tick = _TICK_MS * max(1, self.partitions)
        return self.least > self.longest + tick or (self.most is not None and self.most < self.shortest - tick)

    @property
    def is_within_the_aim(self) -> bool:
        intervals = max(1, self.partitions) * _MOST_INTERVALS * _INTERVAL_MS
        return self.most is not None and self.most <= _MOST_TIMES * self.least + intervals


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path / "broker", overrides={"group.initial.rebalance.delay.ms": "0"}) as running:
        yield running


def test_what_members_measure_lies_within_the_bounds_of_the_rows(broker: EmbeddedBroker, tell: Tell) -> None:
    found: list[Compared] = []
    with ExitStack() as stack:
        stop = threading.Event()
        stack.callback(stop.set)
        groups = list(_groups(broker.bootstrap, stack, stop))
        make_topics(broker.bootstrap, {group.topic: group.partitions for _, group in groups})
        ahead = time.time_ns() - time.monotonic_ns()
        changes = round(REBALANCES / len(groups) / _OF_ONE_CHANGE)
        threads = [threading.Thread(target=group.run, args=(changes,), daemon=True) for _, group in groups]
        producing = threading.Thread(target=_produce, args=(broker.bootstrap, groups, stop), daemon=True)
        for thread in (producing, *threads):
            thread.start()
        with Followed(broker.bootstrap, "bounds", interval_ms=_INTERVAL_MS) as followed:
            _rounds(followed, threads)
            for _, group in groups:
                group.end()
            followed.round()
            for library, group in groups:
                if group_key(group.group) in followed.rows:
                    found += _compared(library, group, followed.churn(group.group), ahead / 1e6)
    tell(*_table(found))
    assert [one for one in found if one.is_outside] == []
    measured = [one for one in found if one.partitions]
    assert sum(one.is_within_the_aim for one in measured) >= _WITHIN * len(measured)


def _groups(bootstrap: str, stack: ExitStack, stop: threading.Event) -> Iterator[tuple[str, MeasuredGroup]]:
    jvm = stack.enter_context(LIBRARIES["java"]())
    for library, strategies in STRATEGIES.items():
        for name, setting in strategies.items():
            for partitions in PARTITIONS:
                topic = f"bounds-{library}-{name}-{partitions}"
                main = jvm if library == "java" else stack.enter_context(LIBRARIES[library]())
                settings = {
                    "bootstrap.servers": bootstrap,
                    "group.id": f"{topic}-app",
                    "partition.assignment.strategy": setting,
                    "session.timeout.ms": "10000",
                    "heartbeat.interval.ms": "3000",
                    "max.poll.interval.ms": "60000",
                    "auto.offset.reset": "earliest",
                }
                if library == "librdkafka":
                    settings["log_level"] = str(QUIET_LIBRDKAFKA)
                chance = Random(f"{SEED} {topic}")
                yield library, MeasuredGroup(settings, topic, partitions, main, LIBRARIES[library], chance, stop)


def _produce(bootstrap: str, groups: Sequence[tuple[str, MeasuredGroup]], stop: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    while not stop.wait(0.5):
        for _, group in groups:
            for partition in range(group.partitions):
                producer.produce(group.topic, b"value", partition=partition)
        producer.poll(0)


def _rounds(followed: Followed, threads: Sequence[threading.Thread]) -> None:
    """Make rounds until the threads have ended, and two more: the members commit meanwhile."""
    more = 2
    at = time.monotonic()
    while more:
        followed.round()
        at += _INTERVAL_MS / 1_000
        time.sleep(max(0.0, at - time.monotonic()))
        if not any(thread.is_alive() for thread in threads):
            more -= 1


def _compared(library: str, group: MeasuredGroup, churn: Sequence[ChurnRow], ahead: float) -> Iterator[Compared]:
    decided = [row.record_time - ahead for row in churn]
    each = [unowned(group.owned.gaps(f"{group.topic}:{partition}"), decided) for partition in range(group.partitions)]
    for index, row in enumerate(churn):
        if row.kind != "rebalance":
            continue
        # What nobody had before, because the group was empty or its leader had no metadata yet, no rebalance has taken
        # from anybody.
        began = index == 0 or not churn[index - 1].partitions
        spans = [] if began else [span for of in each if (span := of[index]) is not None]
        yield Compared(library, row, len(spans), sum(span[0] for span in spans), sum(span[1] for span in spans))


def _table(found: Sequence[Compared]) -> Iterator[str]:
    """Lines of the table in docs/exactness.md."""
    for library in STRATEGIES:
        of = [one for one in found if one.library == library]
        free = [one for one in of if one.partitions]
        ratios = [one.most / one.least for one in free if one.most is not None and one.least]
        each = median(one.longest / one.partitions / 1_000 for one in free)
        most = median((one.most or 0.0) / one.partitions / 1_000 for one in free)
        least = median(one.least / one.partitions / 1_000 for one in free)
        within = sum(one.is_within_the_aim for one in free) / len(free)
        yield (
            f"| {library} | {len(of)} | {sum(one.is_outside for one in of)} | {least:.3f} | {each:.3f} | {most:.3f} | "
            f"{median(ratios):.0f} | {100 * within:.0f} % of {len(free)} |"
        )
