"""Departures of real members, and what rebalances cost, against what this test made and members measured.

Each group of the first test works on a stream of records and rests for longer than its session timeout before a member
goes, so that the previous join phase proves nothing. Its counts are the table of departures in docs/causes.md.
`REBALANCES=N make soak` sets the number of rebalances of all groups of the second one together, `SEED=N` another
sequence of events. The table of one run is in docs/exactness.md.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from threading import Event, Thread
from typing import Final

import pytest
from confluent_kafka import Producer

from streaming.demo.broker import EmbeddedBroker
from streaming.demo.stage import QUIET_LIBRDKAFKA
from streaming.groups.rows import ChurnRow
from streaming.records import group_key
from tests.conftest import Tell
from tests.oracle.members_process import MembersProcess
from tests.real_groups.followed import Followed
from tests.real_groups.measured_churn import MeasuredGroup, unowned
from tests.real_groups.party import make_topics
from tests.real_groups.real_clients import PROGRAMS
from tests.real_groups.real_log import offsets_log
from tests.real_groups.real_members import LIBRARIES, Joins, starter

pytestmark = [pytest.mark.kafka, pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(0), pytest.mark.turn(0)]

CYCLES = int(os.environ.get("CYCLES", "5"))
GROUPS = int(os.environ.get("CAUSE_GROUPS", "8"))
"""Each cycle closes one member of each group and kills another."""

_SESSION_MS = 10_000
_REST_S = 12.0
_PARTITIONS = 4
_PAUSE_S = 0.1
"""Time between two records of a partition: ten a second keep every member committing."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    quick = {"group.initial.rebalance.delay.ms": "0"}
    with EmbeddedBroker(tmp_path_factory.mktemp("departures"), overrides=quick) as running:
        with offsets_log(running.bootstrap):
            pass  # There is no round before the log exists.
        yield running


class Stream:
    """Writes records to all partitions of some topics for as long as it is open."""

    def __init__(self, bootstrap: str, topics: list[str]) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap})
        self._topics = topics
        self._over = Event()
        self._thread = Thread(target=self._write)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._over.wait(_PAUSE_S):
            for topic in self._topics:
                for partition in range(_PARTITIONS):
                    self._producer.produce(topic, b"x", partition=partition)
            self._producer.poll(0)
        self._producer.flush()


def _process(library: str) -> MembersProcess:
    return LIBRARIES[library]() if library in LIBRARIES else MembersProcess(PROGRAMS[library].command())


def _start(library: str, process: MembersProcess, bootstrap: str, group: str) -> Callable[[], None]:
    """Start a member of the group, one that commits every second; returns what closes it."""
    if library in PROGRAMS:
        program = PROGRAMS[library]
        joins = Joins(bootstrap, group, program.strategies[0], (group,), session_ms=_SESSION_MS, heartbeat_ms=300)
        return starter(process)(replace(joins, **program.groups[0])).leave
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "session.timeout.ms": str(_SESSION_MS),
        "heartbeat.interval.ms": "300",
        "enable.auto.commit": "true",
        "auto.commit.interval.ms": "1000",
        "auto.offset.reset": "latest",
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor"
        if library == "java"
        else "range",
    }
    config |= {"log_level": "0"} if library == "librdkafka" else {"metadata.max.age.ms": "1000"}
    return partial(process.stop, process.start((group,), config))


@pytest.mark.parametrize("library", [*LIBRARIES, *PROGRAMS])
def test_a_real_departure_has_the_cause_that_it_had(
    library: str, broker: EmbeddedBroker, unique: str, tell: Tell
) -> None:
    prefix = f"{library}-{unique[-6:]}"
    groups = [f"{prefix}-{number}" for number in range(GROUPS)]
    make_topics(broker.bootstrap, dict.fromkeys(groups, _PARTITIONS))
    matrix: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    with ExitStack() as stack:
        followed = stack.enter_context(Followed(broker.bootstrap, prefix, interval_ms=1_000))
        process = stack.enter_context(_process(library))
        stack.enter_context(Stream(broker.bootstrap, groups))

        def rest(members: int) -> None:
            """Until all groups have so many members, and then for longer than a session."""
            rested: dict[str, float] = {}

            def all_have() -> bool:
                for group in groups:
                    rows = followed.churn(group)
                    if rows and rows[-1].members == members:
                        rested.setdefault(group, time.monotonic())
                    else:
                        rested.pop(group, None)
                return len(rested) == len(groups) and time.monotonic() - max(rested.values()) > _REST_S

            followed.round_until(all_have)

        def departs(truth: str, right: set[str]) -> None:
            """Count the causes of the decisions without the member that has gone."""
            told = {group: len(followed.churn(group)) for group in groups}

            def is_gone(group: str) -> list[ChurnRow]:
                return [row for row in followed.churn(group)[told[group] :] if row.left]

            followed.round_until(lambda: all(is_gone(group) for group in groups))
            for group in groups:
                for row in is_gone(group):
                    for found in row.causes or ():
                        if found.cause in {"member_left", "member_silent", "member_gone"}:
                            matrix[truth, found.cause] += found.count or 0
                            if found.cause not in right | {"member_gone"}:
                                wrong.append(f"{group}, {truth}: {found}")

        for group in groups:
            _start(library, process, broker.bootstrap, group)
        for _ in range(CYCLES):
            closing = [_start(library, process, broker.bootstrap, group) for group in groups]
            rest(2)
            for close in closing:
                close()
            departs("closed", {"member_left"})
            rest(1)
            with _process(library) as doomed:
                for group in groups:
                    _start(library, doomed, broker.bootstrap, group)
                rest(2)
            departs("killed", {"member_silent"})
            rest(1)
    tell(*[f"| {library} | {truth} | {cause} | {count} |" for (truth, cause), count in sorted(matrix.items())], *wrong)
    assert wrong == []
    unknown = sum(count for (_, cause), count in matrix.items() if cause == "member_gone")
    assert unknown < 0.2 * matrix.total()


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
def quiet_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path / "broker", overrides={"group.initial.rebalance.delay.ms": "0"}) as running:
        yield running


def test_what_members_measure_lies_within_the_bounds_of_the_rows(quiet_broker: EmbeddedBroker, tell: Tell) -> None:
    found: list[Compared] = []
    with ExitStack() as stack:
        stop = threading.Event()
        stack.callback(stop.set)
        groups = list(_groups(quiet_broker.bootstrap, stack, stop))
        make_topics(quiet_broker.bootstrap, {group.topic: group.partitions for _, group in groups})
        ahead = time.time_ns() - time.monotonic_ns()
        changes = round(REBALANCES / len(groups) / _OF_ONE_CHANGE)
        threads = [threading.Thread(target=group.run, args=(changes,), daemon=True) for _, group in groups]
        producing = threading.Thread(target=_produce, args=(quiet_broker.bootstrap, groups, stop), daemon=True)
        for thread in (producing, *threads):
            thread.start()
        with Followed(quiet_broker.bootstrap, "bounds", interval_ms=_INTERVAL_MS) as followed:
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
