"""Hundreds of generations of real groups, judged as in the job: never `drifted`.

Two groups per client and strategy are scaled up and down at random, with members of different subscriptions, static
ones that return or not, and topics that grow. `GENERATIONS=N make soak` sets the number of generations per client and
strategy, `SEED=N` another sequence of events, `RECORDS=folder` keeps the groups' records (recorded.py).
"""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka import Producer, libversion
from kafka import KafkaAdminClient
from kafka import __version__ as kafka_python_release
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from assignors import AssignorError, Group, assign, from_topics, possible_leaders, same
from streaming.demo.broker import EmbeddedBroker
from streaming.groups.classic.membership import leader_counts, subscription_of
from streaming.records import MembershipRecord
from tests.conftest import Tell
from tests.oracle.java_classes import JavaMembers
from tests.oracle.members_process import MembersProcess
from tests.probe.witness import Cluster
from tests.real_groups.followed import Rounds, judged, settings_of
from tests.real_groups.promises import broken
from tests.real_groups.real_churn import ChurningGroup
from tests.real_groups.real_clients import PROGRAMS
from tests.real_groups.real_log import offsets_log, read_on
from tests.real_groups.real_members import (
    HASH_SEED,
    Joins,
    KafkaPythonMembers,
    LibrdkafkaMembers,
    StartMember,
    starter,
)
from tests.real_groups.recorded import Recording

pytestmark = [pytest.mark.kafka, pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(0), pytest.mark.turn(0)]

GENERATIONS = int(os.environ.get("GENERATIONS", "500"))
GENERATIONS_OF_PROGRAMS = int(os.environ.get("GENERATIONS", "300"))
"""For the clients of real_clients.py, whose groups are killed and deployed as well, which takes longer."""
SEED = int(os.environ.get("SEED", "5"))
RECORDS = os.environ.get("RECORDS")

GROUPS = 2
"""Several, because they wait for their members more than they compute."""

COUNTS = {"a": 5, "b": 1, "c-10": 3, "c-2": 7}
_MOST_PARTITIONS = 12
_METADATA_MS = 3_000
_ROUNDS_BETWEEN = 15
"""Rounds between two increases of a topic's partitions: two would do for the verdicts."""

_ALL = ("range", "roundrobin", "sticky", "cooperative-sticky")
CLIENTS = {
    "java:4.3.1": _ALL,
    "java:3.7.1": _ALL,
    "librdkafka": ("range", "roundrobin", "cooperative-sticky"),
    "kafka-python": _ALL,
    # Members of all four in each group: the first one leads.
    "mixed": ("range", "roundrobin", "cooperative-sticky"),
} | {name: program.strategies for name, program in PROGRAMS.items()}
# kafka-python's own roundrobin raises on different subscriptions, so such a group never gets an assignment.
ALIKE = {("kafka-python", "roundrobin"), ("mixed", "roundrobin")}

_RELEASES = {"librdkafka": libversion()[0], "kafka-python": kafka_python_release}
_LIBRARIES = {"java:4.3.1": {"java"}, "java:3.7.1": {"java"}, "mixed": {"java", "librdkafka", "kafka-python"}}

# Prefixes of allowed reasons for unverified decisions of these libraries' strategies, as in docs/exactness.md.
_ANY_STICKY = ("too many partition counts are possible",)
_ALLOWED = {
    ("java", "range"): ("it fits a leader that did not have the metadata of topic",),
    ("java", "roundrobin"): ("it fits a leader that did not have the metadata of topic",),
    ("java", "sticky"): ("it fits a leader that did not have the metadata of topic", *_ANY_STICKY),
    ("java", "cooperative-sticky"): ("it fits a leader that did not have the metadata of topic", *_ANY_STICKY),
    ("librdkafka", "cooperative-sticky"): (
        "librdkafka reads freed memory here",
        "librdkafka confuses the owners here",
        *_ANY_STICKY,
    ),
    ("kafka-python", "sticky"): (HASH_SEED, "a member had partitions of a topic that nobody", *_ANY_STICKY),
    ("kafka-python", "cooperative-sticky"): (HASH_SEED, "a member had partitions of a topic that nobody", *_ANY_STICKY),
}
_LEAST_IDENTICAL = 0.95
_LEAST_SEEDED = 0.5
"""For kafka-python's sticky strategies, whose result may depend on a hash seed."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path / "broker", overrides={"group.initial.rebalance.delay.ms": "0"}) as running:
        yield running


@pytest.mark.parametrize("client", [pytest.param(client, marks=pytest.mark.xdist_group(client)) for client in CLIENTS])
def test_no_generation_of_real_clients_is_said_to_drift(
    client: str, broker: EmbeddedBroker, tmp_path: Path, capfd: pytest.CaptureFixture[str], tell: Tell
) -> None:
    settings = settings_of(broker.bootstrap, _prefix(client), _METADATA_MS)
    groups: dict[str, ChurningGroup] = {}
    with ExitStack() as stack:
        processes = _Processes(client, stack)
        rounds = Rounds(settings)
        for strategy in CLIENTS[client]:
            for number in range(_groups_of(client)):
                churning = _group(client, strategy, number, broker.bootstrap, processes, rounds, stack)
                groups[churning.first.group] = churning
        recordings = _recordings(groups, Path(RECORDS) if RECORDS else tmp_path / "records")
        with offsets_log(broker.bootstrap) as log, rounds, capfd.disabled():
            _run(log, groups, recordings, broker.bootstrap)
    rows = judged(settings)

    said: Counter[tuple[str, str, str, str]] = Counter()
    for row in rows.drift:
        if row.verdict != "not_applicable":
            why = re.sub(r"'[^']*'|\d+ bytes at byte \d+", "…", row.matching_library or row.reason or "")
            said[row.group_id, row.strategy or "", row.verdict, why] += 1
    tell(*_told(client, groups, said), *processes.told())
    libraries = _LIBRARIES.get(client, {client})
    for group, churned in groups.items():
        strategy = churned.first.strategy
        decided = {row.generation: row for row in rows.drift if row.group_id == group}
        assert churned.done
        assert churned.generations.keys() <= decided.keys(), "every generation of the log has its verdict"
        allowed = tuple(reason for library in libraries for reason in _ALLOWED.get((library, strategy), ()))
        for generation in churned.generations:
            row = decided[generation]
            if client in PROGRAMS:
                # Which candidate explains a decision does not tell which client made it.
                assert row.verdict in {"identical", "unverified"}, row
                assert not broken(churned.generations[generation], churned.counts), row
            elif row.verdict == "identical":
                assert (row.matching_library or "").partition(":")[0] in libraries, row
            elif row.verdict == "drifted":
                # Java's sticky has assigned partitions twice when its leader's metadata was old: then the broken
                # invariant is real, and equals a candidate's result.
                assert row.reason == "it violates the invariants of every strategy", row
                assert _is_what_a_leader_gives(churned.generations[generation]), row
            else:
                assert row.verdict == "unverified", row
                assert (row.reason or "").startswith(allowed or ("nothing is",)), row
        if client in PROGRAMS:
            continue
        identical = sum(decided[generation].verdict == "identical" for generation in churned.generations)
        seeded = "kafka-python" in libraries and strategy.endswith("sticky")
        assert identical >= (_LEAST_SEEDED if seeded else _LEAST_IDENTICAL) * len(churned.generations)


def _is_what_a_leader_gives(record: MembershipRecord) -> bool:
    """Whether a candidate gives exactly this assignment, with metadata up to one partition behind or ahead."""
    leader = next(member for member in record.members if member.member_id == record.leader)
    members = tuple(map(subscription_of, record.members))
    actual = from_topics({member.member_id: member.assigned or () for member in record.members})
    shown = leader_counts(record)
    strategy = record.protocol or ""
    found = possible_leaders(strategy, version=leader.subscription_version, user_data=leader.user_data)
    for library, counts in product(
        (*found.likely, *found.others), product(*((n, n - 1, n + 1) for n in shown.values()))
    ):
        try:
            known = dict(zip(shown, map(partial(max, 0), counts), strict=True))
            if same(assign(strategy, Group(members, known), library), actual):
                return True
        except AssignorError:
            continue
    return False


def _prefix(client: str) -> str:
    return client.replace(":", "-")


class _Processes:
    """The processes of one client's members: a JVM for all groups; one of librdkafka or two of a program for each."""

    def __init__(self, client: str, stack: ExitStack) -> None:
        own = [name for name in CLIENTS if name != "mixed" and name not in PROGRAMS]
        self._clients = own if client == "mixed" else [client]
        self._stack = stack
        releases = [name.partition(":")[2] for name in self._clients if name.startswith("java:")]
        self._jvms = [stack.enter_context(JavaMembers(release)) for release in releases]
        self._of_librdkafka: list[LibrdkafkaMembers] = []
        self._built: list[MembersProcess] = []

    def told(self) -> Iterator[str]:
        """Their unexpected events."""
        yield f"processes of librdkafka that crashed: {sum(process.crashes for process in self._of_librdkafka)}"
        for process in (*self._jvms, *self._of_librdkafka, *self._built):
            yield from (f"a member failed: {failure}" for failure in process.failures)

    def starts(self) -> list[StartMember]:
        """Functions that start a member of the next group."""
        starts = [starter(jvm) for jvm in self._jvms]
        if "librdkafka" in self._clients:
            self._of_librdkafka.append(self._stack.enter_context(LibrdkafkaMembers()))
            starts.append(starter(self._of_librdkafka[-1]))
        if "kafka-python" in self._clients:
            self._built.append(self._stack.enter_context(KafkaPythonMembers()))
            starts.append(starter(self._built[-1]))
        return starts

    def built(self, client: str) -> list[MembersProcess]:
        """Two processes of the client's program, so that one can be killed while the other goes on."""
        command = PROGRAMS[client].command()
        two = [self._stack.enter_context(MembersProcess(command)) for _ in range(2)]
        self._built += two
        return two


def _group(
    client: str,
    strategy: str,
    number: int,
    bootstrap: str,
    processes: _Processes,
    rounds: Rounds,
    stack: ExitStack,
) -> ChurningGroup:
    admin = stack.enter_context(closing(KafkaAdminClient(bootstrap_servers=bootstrap)))
    cluster = Cluster(bootstrap, _prefix(client), admin)
    called = f"{strategy or 'default'}-{number}"
    counts = {f"{_prefix(client)}-{called}-{topic}": count for topic, count in COUNTS.items()}
    asked = {topic: {"num_partitions": count, "replication_factor": 1} for topic, count in counts.items()}
    admin.create_topics(asked, wait_for_metadata=True)
    # The groups commit, as working ones do: every round then contains all topics, whether they are subscribed or not.
    for topic in counts:
        group = cluster.commit(called, topic, [0])
    grown = dict.fromkeys(counts, -_ROUNDS_BETWEEN)

    def grow(topic: str) -> None:
        # A count that no round has seen could not be verified.
        if counts[topic] < _MOST_PARTITIONS and rounds.closed >= grown[topic] + _ROUNDS_BETWEEN:
            counts[topic] += 1
            admin.create_partitions({topic: counts[topic]})
            grown[topic] = rounds.closed

    first = Joins(
        bootstrap,
        group,
        strategy,
        tuple(counts),
        session_ms=6_000,
        rejoin_ms=8_000,
        heartbeat_ms=200,
        metadata_ms=_METADATA_MS,
    )
    chance = Random(f"{SEED} {group}")
    wanted = -(-(GENERATIONS_OF_PROGRAMS if client in PROGRAMS else GENERATIONS) // _groups_of(client))
    if client not in PROGRAMS:
        return ChurningGroup(first, processes.starts(), chance, (client, strategy) in ALIKE, grow, counts, wanted)
    program = PROGRAMS[client]
    first = replace(first, **program.groups[number])
    built = processes.built(client)
    starts, kills = [starter(process) for process in built], [process.kill for process in built]
    # The members of the first group have one subscription: what a strategy promises can be checked there.
    return ChurningGroup(first, starts, chance, number == 0, grow, counts, wanted, kills, program.static)


def _groups_of(client: str) -> int:
    return len(PROGRAMS[client].groups) if client in PROGRAMS else GROUPS


def _recordings(groups: Mapping[str, ChurningGroup], folder: Path) -> Mapping[str, Recording]:
    folder.mkdir(parents=True, exist_ok=True)
    return {name: Recording(folder / f"{name}.jsonl") for name in groups}


def _run(log: Any, groups: Mapping[str, ChurningGroup], recordings: Mapping[str, Recording], bootstrap: str) -> None:
    """Run until all groups are done, with their progress in the terminal."""
    failures: list[BaseException] = []

    def run(group: ChurningGroup) -> None:
        try:
            group.run()
        except BaseException as failure:  # noqa: BLE001 - the test reports it
            failures.append(failure)

    def keep(name: str, key: bytes, value: bytes | None, record_time: int) -> None:
        if name in recordings:
            recordings[name].saw(key, value, record_time)

    def read() -> Iterator[tuple[str, MembershipRecord]]:
        yield from read_on(log, keep=keep)
        for name, recording in recordings.items():
            recording.round(groups[name].counts)

    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    threads = [threading.Thread(target=run, args=(group,), daemon=True) for group in groups.values()]
    for thread in threads:
        thread.start()
    with _progress() as progress:
        bars = {name: progress.add_task(name, total=group.wanted) for name, group in groups.items()}
        while any(thread.is_alive() for thread in threads) and not failures:
            # Members commit only where there is something to read.
            for group_ in groups.values():
                for topic in group_.first.topics:
                    producer.produce(topic, b"")
            producer.poll(0)
            for group, record in read():
                if group in groups:
                    groups[group].saw(record)
                    progress.update(bars[group], completed=len(groups[group].generations))
                    if not progress.console.is_terminal and len(groups[group].generations) % 50 == 1:
                        progress.console.print(f"{group}: generation {len(groups[group].generations)}")
    # The last generations are caused by the members' leaving.
    for group, record in read():
        if group in groups:
            groups[group].saw(record)
    if failures:
        raise failures[0]


@contextmanager
def _progress() -> Iterator[Progress]:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield progress


def _told(client: str, groups: Mapping[str, ChurningGroup], said: Counter[tuple[str, str, str, str]]) -> Iterator[str]:
    """Lines of the table in docs/exactness.md: client, release, strategy, decisions, identical, and the others."""
    name, _, java = client.partition(":")
    release = PROGRAMS[client].release if client in PROGRAMS else java or _RELEASES.get(client, "")
    for asked in CLIENTS[client]:
        of_it = [name for name, group in groups.items() if group.first.strategy == asked]
        decisions = sum(len(groups[name].generations) for name in of_it)
        verdicts = Counter[str]()
        whys = Counter[str]()
        for (group, _, verdict, why), count in said.items():
            if group in of_it:
                verdicts[verdict] += count
                whys[f"{verdict}: {why}"] += count if verdict != "identical" else 0
        others = "; ".join(f"{count} {why}" for why, count in whys.most_common() if count)
        strategy = f"`{asked}`" if asked else f"its default, {_ran(groups[of_it[0]])}"
        yield f"| {name} | {release} | {strategy} | {decisions} | {verdicts['identical']} | {others} |"


def _ran(group: ChurningGroup) -> str:
    return ", ".join(f"`{name}`" for name in sorted({record.protocol or "" for record in group.generations.values()}))
