"""A whole `evenkeel up` that reads a broker's offsets log from its beginning, beside kminion on the same log.

`KMINION` names kminion's binary; without it only `up` is measured. The commits are written straight into the log, as
a coordinator writes them: one record batch with all partitions of a group, in the layout of value version 3.
"""

from __future__ import annotations

import os
import struct
import time
import urllib.error
import urllib.request
from collections.abc import Callable

from confluent_kafka import Producer
from deltalake import DeltaTable

from streaming.config import Settings
from streaming.demo.ports import free_port
from streaming.offsets_log import partition_for
from streaming.process import GuardedProcess
from streaming.tables import LakeReader
from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.figure import Figure, Say
from tests.benchmarks.whole_up import CommittingGroups, GroupsSize, UpTree, up, up_settings
from tests.offsets_log.written import offset_key

_SIZE = GroupsSize(1_000, 50, 20)
_LOG_PARTITIONS = 50
_LONGEST_S = 600.0
_POLL_S = 0.5


def beside_kminion(cluster: BenchCluster, say: Say, times: int = 100) -> list[Figure]:
    """Measure both, one after the other.

    Args:
        cluster: Broker and folder.
        say: Shows the progress.
        times: Commits of each of the 50,000 partitions.
    """
    CommittingGroups(cluster.bootstrap, _SIZE, say)
    for number in range(times):
        _commit_all(cluster.bootstrap, number + 1)
        say(f"{number + 1:,} of {times:,} commits of each partition are written")
    commits = (times + 1) * _SIZE.groups * _SIZE.partitions
    figures = [_up(cluster, say, commits, times)]
    binary = os.environ.get("KMINION")
    return [*figures, _kminion(binary, cluster, say, commits)] if binary else figures


def _commit_all(bootstrap: str, offset: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            # Brokers take records of an internal topic from clients of this name.
            "client.id": "__admin_client",
            "batch.num.messages": _SIZE.partitions,
            "linger.ms": 20,
            "queue.buffering.max.messages": 2 * _SIZE.groups * _SIZE.partitions,
        }
    )
    value = struct.pack(">hqihq", 3, offset, -1, 0, int(1_000 * time.time()))
    for number in range(_SIZE.groups):
        group, topic = f"service-{number}", f"orders-{number % _SIZE.topics}"
        home = partition_for(group, _LOG_PARTITIONS)
        for partition in range(_SIZE.partitions):
            producer.produce("__consumer_offsets", value, offset_key(group, topic, partition), partition=home)
    producer.flush(_LONGEST_S)


def _up(cluster: BenchCluster, say: Say, commits: int, offset: int) -> Figure:
    name = f"log-{commits}"
    settings = up_settings(cluster, name)
    with up(settings, cluster.folder / name) as process:
        say("evenkeel up: waiting for its tables")
        took, spent, most = _until(lambda: _has_all(settings, offset), process)
    parts = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in sorted(spent.items(), key=lambda item: -item[1]))
    return Figure(
        f"{commits:,} commits in the log: tables of `up`",
        f"{took:.1f} s; {sum(spent.values()):.1f} CPU-s",
        "",
        f"from its start; {parts}; at most {most / 2**20:,.0f} MB",
    )


def _until(done: Callable[[], bool], process: GuardedProcess) -> tuple[float, dict[str, float], int]:
    """Wait for something; returns how long it took, s, the processor time by part, and the most memory, bytes."""
    began, tree, most = time.time(), UpTree(process.pid), 0
    while not done():
        if process.poll() is not None or time.time() > began + _LONGEST_S:
            raise RuntimeError(f"nothing came of it: {process.last_line()}")
        tree.spent()
        most = max(most, sum(tree.held.values()))
        time.sleep(_POLL_S)
    return time.time() - began, tree.spent(), most


def _has_all(settings: Settings, offset: int) -> bool:
    if not DeltaTable.is_deltatable(f"{settings.lake}/rounds"):
        return False
    sql = "SELECT count(*) AS partitions FROM lag_current WHERE committed_offset = $offset"
    [row] = LakeReader(settings.lake).rows(sql, {"offset": offset})
    return bool(row["partitions"] == _SIZE.groups * _SIZE.partitions)


def _kminion(binary: str, cluster: BenchCluster, say: Say, commits: int) -> Figure:
    port = free_port()
    environment = {
        "KAFKA_BROKERS": cluster.bootstrap,
        "MINION_CONSUMERGROUPS_SCRAPEMODE": "offsetsTopic",
        "EXPORTER_PORT": str(port),
    }
    process = GuardedProcess([binary], log=cluster.folder / "kminion.log", environment=os.environ | environment)
    try:
        say("kminion: waiting until it is ready")
        took, spent, most = _until(lambda: _is_ready(port), process)
    finally:
        process.stop(10)
    return Figure(
        "  kminion, until it is ready",
        f"{took:.1f} s; {sum(spent.values()):.1f} CPU-s",
        "",
        f"{commits:,} commits; at most {most / 2**20:,.0f} MB",
    )


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
