"""A whole `evenkeel up` beside a broker, as a person starts it: its groups, rounds, and what its processes spend."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it ships no types
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from kafka import KafkaAdminClient

from streaming.config import ProbeSettings, ServeSettings, Settings, environment_of
from streaming.demo.ports import free_port
from streaming.process import GuardedProcess
from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.figure import Say
from tests.probe.witness import Cluster

_LONGEST_S = 900.0
_GRACE_S = 120.0
_AT_ONCE = 100
_ANSWER_S = 120.0
_RECORDS = 10
_CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class GroupsSize:
    """Groups without members, of one topic each.

    Attributes:
        groups: Number of groups.
        partitions: Partitions of a topic, all of them committed.
        topics: Number of topics, which the groups share.
        moving: Number of groups that commit in each round of a measured minute; 0 for a cluster at rest.
    """

    groups: int
    partitions: int
    topics: int
    moving: int = 0


def up_settings(cluster: BenchCluster, name: str, probe: ProbeSettings | None = None) -> Settings:
    """Settings of an `evenkeel up` over the broker's own offsets log, with a page of its own.

    Args:
        cluster: Broker and folder.
        name: Name of the cluster.
        probe: Settings of the probe; None takes the defaults.
    """
    given = cluster.settings(name, probe=probe)
    return given.model_copy(
        update={
            "job": given.job.model_copy(update={"offsets_topic": "__consumer_offsets"}),
            "serve": ServeSettings(listen=f"127.0.0.1:{free_port()}"),
        }
    )


class CommittingGroups:
    """Groups that commit through the broker, as an administrator may do it for groups without members."""

    def __init__(self, bootstrap: str, size: GroupsSize, say: Say) -> None:
        """Create the topics, with some records in each partition, and let each group commit the first offset of each.

        Args:
            bootstrap: Address of the broker.
            size: How many.
            say: Shows the progress.
        """
        # With its first group the broker creates the offsets log, and refuses others meanwhile.
        witness = Cluster(bootstrap, "first", KafkaAdminClient(bootstrap_servers=bootstrap))
        witness.commit("group", witness.topic(), [0])
        witness.admin.close()
        self._size, self._turns = size, 0
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._topics = [f"orders-{number}" for number in range(size.topics)]
        say(f"creating {size.topics:,} topics")
        for first in range(0, size.topics, _AT_ONCE):
            wanted = [NewTopic(topic, size.partitions, 1) for topic in self._topics[first : first + _AT_ONCE]]
            for future in self._admin.create_topics(wanted, request_timeout=_ANSWER_S).values():
                future.result()
        if size.moving:
            self._produce(bootstrap)
        left = deque(range(size.groups))
        while left:
            say(f"{size.groups - len(left):,} of {size.groups:,} groups have committed")
            # A broker that does not know a new topic yet refuses its partitions, not the request.
            left.extend(self._commit([left.popleft() for _ in range(min(_AT_ONCE, len(left)))], 0))

    def move(self) -> None:
        """Let the next `GroupsSize.moving` groups commit a later offset of each partition."""
        moving, groups = self._size.moving, self._size.groups
        first = self._turns * moving
        self._turns += 1
        self._commit([number % groups for number in range(first, first + moving)], first // groups + 1)

    def _commit(self, numbers: Sequence[int], offset: int) -> list[int]:
        """Commit for these groups; returns those that were refused."""
        asked: dict[int, Any] = {}
        for number in numbers:
            topic = self._topics[number % self._size.topics]
            offsets = [TopicPartition(topic, partition, offset) for partition in range(self._size.partitions)]
            request = ConsumerGroupTopicPartitions(f"service-{number}", offsets)
            [asked[number]] = self._admin.alter_consumer_group_offsets([request], request_timeout=_ANSWER_S).values()
        return [
            number
            for number, answer in asked.items()
            if any(committed.error for committed in answer.result().topic_partitions)
        ]

    def _produce(self, bootstrap: str) -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
        for topic in self._topics:
            for partition in range(self._size.partitions):
                for _ in range(_RECORDS):
                    producer.produce(topic, b"record", partition=partition)
            producer.flush(_ANSWER_S)


def up(settings: Settings, folder: Path) -> AbstractContextManager[GuardedProcess]:
    """Run it with these settings until the block ends; the folder is for its log."""
    return up_with(environment_of(settings), folder)


@contextmanager
def up_with(environment: dict[str, str], folder: Path) -> Iterator[GuardedProcess]:
    """Run it with these variables until the block ends; the folder is for its log."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", "from streaming.cli import main; main()", "up"]
    variables = environment | {"PYTHONPATH": str(_CHECKOUT)}
    process = GuardedProcess(command, log=folder / "up.log", environment=variables)
    try:
        yield process
    finally:
        process.stop(_GRACE_S)


def await_rounds(settings: Settings, process: GuardedProcess, rounds: int) -> float:
    """Wait until the tables have so many rounds; returns when they had, s since the epoch.

    Raises:
        RuntimeError: It took too long, or `evenkeel up` has ended.
    """
    end = time.time() + _LONGEST_S
    while rounds_of(settings) < rounds:
        if process.poll() is not None or time.time() > end:
            raise RuntimeError(f"{rounds} rounds were not seen: {process.last_line()}")
        time.sleep(0.2)
    return time.time()


def rounds_of(settings: Settings) -> int:
    """Rounds in the tables so far."""
    try:
        files = pa.table(DeltaTable(f"{settings.lake}/rounds").get_add_actions(flatten=True))
    except TableNotFoundError:
        return 0
    return int(pc.sum(files["num_records"]).as_py() or 0)


@dataclass(slots=True)
class UpTree:
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
                    part, times, memory = part_of(process), process.cpu_times(), process.memory_full_info().pss
            except psutil.Error:
                continue
            self._seconds[process] = part, times.user + times.system
            self.held[part] = self.held.get(part, 0) + memory
            self.processes += 1
        seconds: dict[str, float] = {}
        for part, spent in self._seconds.values():
            seconds[part] = seconds.get(part, 0.0) + spent
        return seconds


def part_of(process: psutil.Process) -> str:
    """What a process of `evenkeel up` is, in a word."""
    command = " ".join(process.cmdline())
    if "java" in process.name():
        return "JVM"
    for module, part in (
        ("_guard", "guards"),
        ("streaming.probe", "probe"),
        ("pyspark", "workers"),
        ("streaming.job", "driver"),
        ("streaming.serve", "server"),
    ):
        if module in command:
            return part
    return "up"
