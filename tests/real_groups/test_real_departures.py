"""Departures of real members, closed or killed, against the causes in the rows: none wrong, few unknown.

Each group works on a stream of records and rests for longer than its session timeout before a member goes, so that the
previous join phase proves nothing. The counts are the table of departures in docs/causes.md.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from threading import Event, Thread

import pytest
from confluent_kafka import Producer

from streaming.demo.broker import EmbeddedBroker
from streaming.groups.rows import ChurnRow
from tests.conftest import Tell
from tests.oracle.members_process import MembersProcess
from tests.real_groups.followed import Followed
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
            pass  # (There is no round before the log exists.)
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
