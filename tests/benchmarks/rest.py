"""What a whole `evenkeel up` costs beside a cluster at rest: a minute of processor time, memory, and its first rows.

The groups have committed once, through a real broker, and have no members; nothing moves while the minute is measured.
`rest` takes one size, `scale` three, which show what grows with the number of groups.
"""

from __future__ import annotations

import socket
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it ships no types
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from kafka import KafkaAdminClient

from streaming.config import ServeSettings, Settings, environment_of
from streaming.process import GuardedProcess
from tests.benchmarks.bench_cluster import BenchCluster, bench_cluster
from tests.benchmarks.figure import Figure, Say
from tests.probe.witness import Cluster

__all__ = ["rest", "scale"]

_ROUNDS_BEFORE = 14
"""Rounds until groups count as idle (twelve), and two more."""

_HEAP = "3g"
"""A broker holds the newest commit of each partition: a million of them take more than the demo's half a gigabyte."""

_MINUTE_S = 60.0
_LONGEST_S = 900.0
_GRACE_S = 120.0
_AT_ONCE = 100
_ANSWER_S = 120.0
_CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class RestSize:
    """Groups without members, of one topic each.

    Attributes:
        groups: Number of groups.
        partitions: Partitions of a topic, all of them committed.
        topics: Number of topics, which the groups share.
    """

    groups: int
    partitions: int
    topics: int


REST = RestSize(1_000, 50, 20)
SCALE = (RestSize(1_000, 10, 100), RestSize(10_000, 10, 1_000), RestSize(100_000, 10, 1_000))


def rest(cluster: BenchCluster, say: Say, size: RestSize = REST) -> list[Figure]:
    """Measure one size."""
    return _measure(cluster, say, size)


def scale(say: Say) -> list[Figure]:
    """Measure three sizes, each beside a broker of its own."""
    figures = []
    for size in SCALE:
        with bench_cluster(_HEAP) as cluster:
            figures += _measure(cluster, say, size)
    return figures


def _measure(cluster: BenchCluster, say: Say, size: RestSize) -> list[Figure]:
    _commit(cluster.bootstrap, size, say)
    name = f"rest-{size.groups}-{size.partitions}"
    given = cluster.settings(name)
    # The broker's own log, and a page of its own.
    settings = given.model_copy(
        update={
            "job": given.job.model_copy(update={"offsets_topic": "__consumer_offsets"}),
            "serve": ServeSettings(listen=f"127.0.0.1:{_free_port()}"),
        }
    )
    with _up(settings, cluster.folder / name) as process:
        began = time.time()
        say(f"{size.groups:,} groups: waiting for the first rows")
        first_s = _await_rounds(settings, process, 1) - began
        say(f"{size.groups:,} groups: waiting until all of them are idle")
        _await_rounds(settings, process, _ROUNDS_BEFORE)
        say(f"{size.groups:,} groups: measuring a minute")
        tree = _Tree(process.pid)
        before, rounds = tree.spent(), _rounds(settings)
        time.sleep(_MINUTE_S)
        after, made = tree.spent(), _rounds(settings) - rounds
        spent = {part: seconds - before.get(part, 0.0) for part, seconds in after.items()}
    of = f"{size.groups:,} groups x {size.partitions} partitions without members"
    by_part = sorted(spent.items(), key=lambda item: -item[1])
    by_size = sorted(tree.held.items(), key=lambda item: -item[1])
    return [
        Figure("at rest: first rows", f"{first_s:.0f} s", "", f"{of}; after the start of `evenkeel up`"),
        Figure(
            "  a minute, processor time",
            f"{sum(spent.values()):.1f} s",
            "",
            f"{made} rounds; " + ", ".join(f"{part} {seconds:.1f} s" for part, seconds in by_part),
        ),
        Figure(
            "  memory",
            f"{sum(tree.held.values()) / 2**20:,.0f} MB",
            "",
            f"{tree.processes} processes, shared pages in equal parts; "
            + ", ".join(f"{part} {held / 2**20:,.0f} MB" for part, held in by_size),
        ),
    ]


def _commit(bootstrap: str, size: RestSize, say: Say) -> None:
    # With its first group the broker creates the offsets log, and refuses others meanwhile.
    witness = Cluster(bootstrap, "first", KafkaAdminClient(bootstrap_servers=bootstrap))
    witness.commit("group", witness.topic(), [0])
    witness.admin.close()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [f"orders-{number}" for number in range(size.topics)]
    say(f"creating {size.topics:,} topics")
    for first in range(0, size.topics, _AT_ONCE):
        wanted = [NewTopic(topic, size.partitions, 1) for topic in topics[first : first + _AT_ONCE]]
        for future in admin.create_topics(wanted, request_timeout=_ANSWER_S).values():
            future.result()
    left = deque(range(size.groups))
    while left:
        say(f"{size.groups - len(left):,} of {size.groups:,} groups have committed")
        asked: dict[int, Any] = {}
        for number in [left.popleft() for _ in range(min(_AT_ONCE, len(left)))]:
            topic = topics[number % size.topics]
            offsets = [TopicPartition(topic, partition, 0) for partition in range(size.partitions)]
            request = ConsumerGroupTopicPartitions(f"service-{number}", offsets)
            [asked[number]] = admin.alter_consumer_group_offsets([request], request_timeout=_ANSWER_S).values()
        for number, answer in asked.items():
            # (A broker that does not know a new topic yet refuses its partitions, not the request.)
            if any(committed.error for committed in answer.result().topic_partitions):
                left.append(number)


@contextmanager
def _up(settings: Settings, folder: Path) -> Iterator[GuardedProcess]:
    folder.mkdir(parents=True, exist_ok=True)
    environment = environment_of(settings) | {"PYTHONPATH": str(_CHECKOUT)}
    command = [sys.executable, "-c", "from streaming.cli import main; main()", "up"]
    process = GuardedProcess(command, log=folder / "up.log", environment=environment)
    try:
        yield process
    finally:
        process.stop(_GRACE_S)


def _await_rounds(settings: Settings, process: GuardedProcess, rounds: int) -> float:
    """Wait until the table has so many rounds; returns when it had, s since the epoch."""
    end = time.time() + _LONGEST_S
    while _rounds(settings) < rounds:
        if process.poll() is not None or time.time() > end:
            message = f"{rounds} rounds were not seen: {process.last_line()}"
            raise RuntimeError(message)
        time.sleep(0.2)
    return time.time()


def _rounds(settings: Settings) -> int:
    try:
        files = pa.table(DeltaTable(f"{settings.lake}/rounds").get_add_actions(flatten=True))
    except TableNotFoundError:
        return 0
    return int(pc.sum(files["num_records"]).as_py() or 0)


@dataclass(slots=True)
class _Tree:
    """Processor time and memory of a process and its descendants, by what they are.

    Attributes:
        held: Memory in bytes, by part, at the last look.
        processes: Number of processes at the last look.
    """

    pid: int
    held: dict[str, int] = field(default_factory=dict)
    processes: int = 0
    _seconds: dict[psutil.Process, tuple[str, float]] = field(default_factory=dict)

    def spent(self) -> dict[str, float]:
        """Processor seconds so far by part, those of ended processes included."""
        root = psutil.Process(self.pid)
        self.held, self.processes = {}, 0
        for process in [root, *root.children(recursive=True)]:
            try:
                with process.oneshot():
                    part, times, memory = _part(process), process.cpu_times(), process.memory_full_info().pss
            except psutil.Error:
                continue
            self._seconds[process] = part, times.user + times.system
            self.held[part] = self.held.get(part, 0) + memory
            self.processes += 1
        seconds: dict[str, float] = {}
        for part, spent in self._seconds.values():
            seconds[part] = seconds.get(part, 0.0) + spent
        return seconds


def _part(process: psutil.Process) -> str:
    command = " ".join(process.cmdline())
    if "java" in process.name():
        return "JVM"
    for module, part in (
        ("_guard", "guards"),
        ("streaming.probe", "probe"),
        ("streaming.job", "driver"),
        ("streaming.serve", "server"),
        ("pyspark", "workers"),
    ):
        if module in command:
            return part
    return "up"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
