"""How fast one process reads the log, from broker to packed rows: large, small and compressed batches.

The job's own functions on one core, without Spark. Only the processor time of this process counts, without the broker
and other processes on the machine.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from streaming.job.source.connection import Readers, kept_readers
from streaming.job.source.read import task_rows
from streaming.job.source.settings import SourceSettings
from streaming.job.source.tasks import LogShare, SourceTask
from streaming.record_batches import FetchedRun, OffsetRange, RangeReader
from streaming.record_batches.columnar_records import record_columns
from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.figure import Figure, Say
from tests.benchmarks.made_groups import commit_value
from tests.offsets_log.written import offset_key

_GROUPS = 20
_PARTITIONS = 50
"""20 groups of 50 partitions: the share of one of 50 log partitions in a cluster with 1,000 such groups."""

_TIMES = 3
_FLUSH_S = 120.0


@dataclass(frozen=True, slots=True)
class Reading:
    """One log to read.

    Attributes:
        per_batch: Number of records in a batch.
        codec: As a producer's `compression.type`.
        records: Total number of records.
        aim: Records per second of processor time; 0 without a target.
    """

    per_batch: int
    codec: str
    records: int
    aim: int = 0

    @property
    def topic(self) -> str:
        """Its topic."""
        return f"reading.{self.per_batch}.{self.codec}"


READINGS = (
    Reading(1, "none", 100_000, 500_000),
    Reading(10, "none", 500_000, 1_000_000),
    Reading(200, "none", 1_000_000, 1_500_000),
    *(Reading(per_batch, codec, 200_000) for codec in ("gzip", "snappy", "lz4", "zstd") for per_batch in (10, 200)),
)


def reading(cluster: BenchCluster, say: Say) -> list[Figure]:
    """Measure all logs, the best of three each."""
    figures: list[Figure] = []
    for wanted in READINGS:
        say(f"writes {wanted.records:,} records, {wanted.per_batch} a batch, compression {wanted.codec}")
        write(cluster.bootstrap, wanted)
        say(f"reads them, {wanted.per_batch} a batch, compression {wanted.codec}")
        whole = min(processor_seconds(cluster.bootstrap, wanted) for _ in range(_TIMES))
        fetch, parse = map(min, zip(*(_stages(cluster.bootstrap, wanted) for _ in range(_TIMES)), strict=True))
        each = 1e9 / wanted.records
        figures.append(
            Figure(
                f"reading the log, {wanted.per_batch} a batch, {wanted.codec}",
                f"{wanted.records / whole:,.0f} records/s",
                f"{wanted.aim:,}/s" if wanted.aim else "",
                f"fetch to packed rows, one core; ns a record: fetch {fetch * each:.0f}, parse {parse * each:.0f} "
                f"({wanted.records / parse:,.0f}/s), compact and pack {(whole - fetch - parse) * each:.0f}",
            )
        )
    return figures


def write(bootstrap: str, wanted: Reading) -> None:
    """Write the log as commits of one group after the other.

    Raises:
        RuntimeError: The broker did not accept it.
    """
    admin: Any = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics([NewTopic(wanted.topic, 1, 1)])
    finally:
        admin.close()
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "batch.num.messages": wanted.per_batch,
            "compression.type": wanted.codec,
            "linger.ms": 20,
            "queue.buffering.max.messages": 200_000,
        }
    )
    for key, value in _commits(wanted.records):
        while True:
            try:
                producer.produce(wanted.topic, value, key, 0)
                break
            except BufferError:
                producer.poll(0.1)
    if left := producer.flush(_FLUSH_S):
        raise RuntimeError(f"the broker did not take {left} records")


def processor_seconds(bootstrap: str, wanted: Reading) -> float:
    """Processor time of this process for reading it, from fetch to packed rows."""
    settings = _settings(bootstrap, wanted)
    reader = _warm(settings)
    task = SourceTask(1, (LogShare(0, 0, wanted.records, known=False, boundaries=()),), (), ())
    began = time.process_time()
    rows = sum(1 for _ in task_rows(task, settings, Readers(reader, reader)))
    spent = time.process_time() - began
    if rows != _GROUPS:
        raise RuntimeError(f"the benchmark's own log came as {rows} rows; its figure would mean nothing")
    return spent


def _stages(bootstrap: str, wanted: Reading) -> tuple[float, float]:
    """Seconds of fetching, and of parsing the fetched bytes."""
    settings = _settings(bootstrap, wanted)
    reader = _warm(settings)
    whole = OffsetRange(settings.offsets_topic, 0, 0, wanted.records)
    began = time.process_time()
    runs = [run for _, run in reader.read_runs([whole]) if isinstance(run, FetchedRun)]
    fetched = time.process_time()
    for run in runs:
        for _ in record_columns(run, 0, wanted.records):
            pass
    return fetched - began, time.process_time() - fetched


def _settings(bootstrap: str, wanted: Reading) -> SourceSettings:
    return SourceSettings(cluster="bench", kafka={"bootstrap_servers": bootstrap}, offsets_topic=wanted.topic)


def _warm(settings: SourceSettings) -> RangeReader:
    """A reader that has fetched before."""
    reader = kept_readers(settings).log
    assert reader is not None
    for _ in reader.read([OffsetRange(settings.offsets_topic, 0, 0, 1)]):
        pass
    return reader


def _commits(count: int) -> Iterator[tuple[bytes, bytes]]:
    topic_id = hashlib.sha256(b"orders").digest()[:16]
    keys = [
        offset_key(f"checkout-service-{group}", f"orders-{group % 7}", partition)
        for group in range(_GROUPS)
        for partition in range(_PARTITIONS)
    ]
    now = time.time_ns() // 1_000_000
    for index in range(count):
        lap, which = divmod(index, len(keys))
        yield keys[which], commit_value(1_000_000 + 37 * lap, now + lap, topic_id)
