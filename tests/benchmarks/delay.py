"""The age of a rebalance when its row is readable: a live group, probe and job with their defaults.

A member joins and leaves a real group again and again, at moments that are independent of rounds and triggers. Each
time the broker writes a membership record; its timestamp is compared with the time at which a reader of the tables
finds the row (same machine, so the same clock).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from confluent_kafka import Consumer
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from streaming.config import Settings, environment_of
from streaming.process import Programs
from streaming.tables import LakeReader
from streaming.up import JOB, PROBE
from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.figure import Figure, Say

_NAME = "delay"
_GROUP = "checkout"
_TOPIC = "orders"

_REBALANCES, _APART_S = 12, 7.3
"""Not a multiple of the intervals of rounds and triggers, so that all phases occur."""

_LOOK_S = 0.2
"""Polling interval of the tables: the error of a delay."""

_START_S = 300.0
"""Limit for the first rows; they take about 20 s on an idle machine."""

_LAST_S = 60.0
"""Limit for the rows of the last rebalances: three rounds and three triggers."""


def delay(cluster: BenchCluster, say: Say) -> list[Figure]:
    """Run the benchmark.

    Raises:
        RuntimeError: Rows did not come, or the probe or the job could not start.
    """
    settings = cluster.settings(_NAME)
    # The broker's own log instead of the stand-in topic.
    real = settings.job.model_copy(update={"offsets_topic": "__consumer_offsets"})
    settings = settings.model_copy(update={"job": real})
    folder = cluster.folder / _NAME
    admin: Any = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    admin.create_topics([NewTopic(_TOPIC, 10, 1)])
    admin.close()
    with _member(cluster.bootstrap), Programs(folder, environment_of(settings), say) as programs:
        programs.start(PROBE)
        programs.start(JOB)
        watch = _Watch(settings.lake)
        say("waiting for the first rows")
        watch.until(1, _START_S)
        before = watch.rows
        for number in range(0, _REBALANCES, 2):
            say(f"rebalance {number + 1} of {_REBALANCES}")
            with _member(cluster.bootstrap):
                watch.during(_APART_S)
            watch.during(_APART_S)
        say("waiting for the last rows")
        watch.until(before + 2 * (_REBALANCES // 2), _LAST_S)
    return _figures(watch, settings, before)


class _Watch:
    """Polls the tables of one lake and records when a row of the group first appears.

    Attributes:
        delays: By table, seconds from the membership record to its first appearance, in order of the log.
    """

    def __init__(self, lake: str) -> None:
        self._reader = LakeReader(lake)
        self._seen: dict[str, set[int]] = {"rebalance_churn": set(), "drift": set()}
        self.delays: dict[str, list[float]] = {table: [] for table in self._seen}

    @property
    def rows(self) -> int:
        """Number of decisions that have both rows."""
        return min(map(len, self._seen.values()))

    def poll(self) -> None:
        """Poll once."""
        self._reader.refresh()
        now = time.time()
        for table, seen in self._seen.items():
            sql = f"SELECT decision, epoch_ms(record_time) AS ms FROM {table} WHERE group_id = ? ORDER BY 1"
            for row in self._reader.rows(sql, [_GROUP]):
                if row["decision"] not in seen:
                    seen.add(row["decision"])
                    self.delays[table].append(now - row["ms"] / 1000)

    def during(self, seconds: float) -> None:
        """Poll for this long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(_LOOK_S, left))
            self.poll()

    def until(self, rows: int, patience_s: float) -> None:
        """Poll until this many decisions are there.

        Raises:
            RuntimeError: They did not come.
        """
        end = time.monotonic() + patience_s
        while self.rows < rows:
            if time.monotonic() > end:
                told = ", ".join(f"{len(seen)} in {table}" for table, seen in self._seen.items())
                raise RuntimeError(
                    f"rows of {rows} decisions were expected within {patience_s:.0f} s, there are {told}"
                )
            self.during(_LOOK_S)


@contextmanager
def _member(bootstrap: str) -> Iterator[None]:
    """A member of the group for the duration of the block."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": _GROUP,
            "client.id": "bench",
            "partition.assignment.strategy": "range",
            # An existing member learns of a rebalance at its next heartbeat, by default up to 3 s later.
            "heartbeat.interval.ms": 500,
            "log_level": 2,
        }
    )
    consumer.subscribe([_TOPIC])
    leave = threading.Event()

    def stay() -> None:
        while not leave.is_set():
            consumer.poll(0.1)
        consumer.close()

    thread = threading.Thread(target=stay, daemon=True)
    thread.start()
    try:
        yield
    finally:
        leave.set()
        thread.join()


def _figures(watch: _Watch, settings: Settings, before: int) -> list[Figure]:
    how = f"rounds every {settings.probe.interval_ms / 1000:g} s, trigger {settings.job.trigger_ms / 1000:g} s"
    figures = []
    for table, name in (
        ("rebalance_churn", "delay from a membership record to its row"),
        ("drift", "  to its verdict"),
    ):
        delays = watch.delays[table][before:]
        figures.append(
            Figure(
                name,
                f"{median(delays):.1f} s",
                "under 20 s" if table == "rebalance_churn" else "",
                f"in {table}; {len(delays)} rebalances, {min(delays):.1f} to {max(delays):.1f} s; {how}",
            )
        )
    return figures
