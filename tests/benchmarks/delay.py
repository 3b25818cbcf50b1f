"""How old a rebalance is when its row can be read: a live group, probe and job as they run by default.

A member joins and leaves a real group again and again, at moments that have nothing to do with rounds and triggers.
Each time the broker writes a membership record; its timestamp is compared with the clock at which a reader of the
tables finds the row (same machine, so the same clock).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from confluent_kafka import Consumer
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from streaming.config import ProbeSettings, Settings
from streaming.process import Programs
from streaming.tables import LakeReader
from streaming.up import JOB, PROBE, environment_of
from tests.benchmarks.bench_cluster import Place
from tests.benchmarks.figure import Figure, Say

__all__ = ["DelaySize", "delay"]

_NAME = "delay"
_GROUP = "checkout"
_TOPIC = "orders"

_LOOK_S = 0.2
"""How often the tables are looked at: the error of a delay."""

_START_S = 300.0
"""Until the first rows are there; some 20 s on an idle machine."""

_LAST_S = 60.0
"""What the rows of the last rebalances may take. Three rounds and three triggers."""


@dataclass(frozen=True, slots=True)
class DelaySize:
    """How much is measured.

    Attributes:
        rebalances: Rebalances.
        apart_s: From one to the next; no multiple of rounds and triggers, so that all phases come.
        interval_ms: Interval of rounds and triggers; None for the defaults.
    """

    rebalances: int = 12
    apart_s: float = 7.3
    interval_ms: int | None = None


def delay(place: Place, say: Say, size: DelaySize | None = None) -> list[Figure]:
    """Measure it.

    Args:
        place: Where.
        say: Told how far it is.
        size: How much; None for what docs/performance.md promises.

    Raises:
        RuntimeError: Rows did not come, or the probe or the job could not start.
    """
    size = size or DelaySize()
    settings = _settings(place, size)
    folder = place.folder / _NAME
    admin: Any = KafkaAdminClient(bootstrap_servers=place.bootstrap)
    admin.create_topics([NewTopic(_TOPIC, 10, 1)])
    admin.close()
    with _member(place.bootstrap), Programs(folder, environment_of(settings), say) as programs:
        programs.start(PROBE)
        programs.start(JOB)
        watch = _Watch(settings.lake)
        say("waiting for the first rows")
        watch.until(1, programs, _START_S)
        before = watch.rows
        for number in range(0, size.rebalances, 2):
            say(f"rebalance {number + 1} of {size.rebalances}")
            with _member(place.bootstrap):
                watch.during(size.apart_s, programs)
            watch.during(size.apart_s, programs)
        say("waiting for the last rows")
        watch.until(before + 2 * (size.rebalances // 2), programs, _LAST_S)
    return _figures(watch, settings, before)


def _settings(place: Place, size: DelaySize) -> Settings:
    probe = ProbeSettings() if size.interval_ms is None else ProbeSettings(interval_ms=size.interval_ms)
    job = {} if size.interval_ms is None else {"trigger_ms": size.interval_ms}
    settings = place.settings(_NAME, probe=probe, **job)
    # The broker's own log, in place of one that stands in for it.
    real = settings.job.model_copy(update={"offsets_topic": "__consumer_offsets"})
    return settings.model_copy(update={"job": real})


class _Watch:
    """Looks at the tables of one lake, and notes when a row of the group is seen first.

    Attributes:
        delays: By table, seconds from the membership record to its first sight, in order of the log.
    """

    def __init__(self, lake: str) -> None:
        self._reader = LakeReader(lake)
        self._seen: dict[str, set[int]] = {"rebalance_churn": set(), "drift": set()}
        self.delays: dict[str, list[float]] = {table: [] for table in self._seen}

    @property
    def rows(self) -> int:
        """Decisions that have both rows."""
        return min(map(len, self._seen.values()))

    def look(self) -> None:
        """Look once."""
        self._reader.refresh()
        now = time.time()
        for table, seen in self._seen.items():
            sql = f"SELECT decision, epoch_ms(record_time) AS ms FROM {table} WHERE group_id = ? ORDER BY 1"
            for row in self._reader.rows(sql, [_GROUP]):
                if row["decision"] not in seen:
                    seen.add(row["decision"])
                    self.delays[table].append(now - row["ms"] / 1000)

    def during(self, seconds: float, programs: Programs) -> None:
        """Look for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(_LOOK_S, left))
            programs.look()
            self.look()

    def until(self, rows: int, programs: Programs, patience_s: float) -> None:
        """Look until so many decisions are there.

        Raises:
            RuntimeError: They did not come.
        """
        end = time.monotonic() + patience_s
        while self.rows < rows:
            if time.monotonic() > end:
                told = ", ".join(f"{len(seen)} in {table}" for table, seen in self._seen.items())
                message = f"rows of {rows} decisions were expected within {patience_s:.0f} s, there are {told}"
                raise RuntimeError(message)
            self.during(_LOOK_S, programs)


@contextmanager
def _member(bootstrap: str) -> Iterator[None]:
    """A member of the group, as long as the block lasts."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": _GROUP,
            "client.id": "bench",
            "partition.assignment.strategy": "range",
            # A member that is there learns of a rebalance by its heartbeat: at the default of 3 s, each would take so.
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
