"""What a hundred thousand groups cost those who read the tables: the alerter a round, and maintenance an hour."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import psutil  # type: ignore[import-untyped]  # it ships no types

from streaming.alerts.rules.rules import load_rules
from streaming.alerts.run import Alerter
from streaming.config import Settings
from streaming.maintain import Maintainer
from tests.benchmarks.day_of_rows import CLUSTER, DaySize, write_day
from tests.benchmarks.figure import Figure, Say

AT_REST = DaySize(groups=100_000, hours=1 / 6, busy=0.01, occasional=0.02, with_members=0.03)
"""Groups as large clusters have them: most have no members and rest."""

_ALL_MOVE = DaySize(groups=100_000, hours=1 / 60)
_AN_HOUR = DaySize(groups=100_000, hours=1.6, busy=0.01, occasional=0.02, with_members=0.03)
_ROUNDS = 5


def readers(say: Say) -> list[Figure]:
    """Run the benchmark."""
    return [
        _alerter(AT_REST, "3 in 100 move", say),
        _alerter(_ALL_MOVE, "nine in ten move", say),
        *_maintenance(say),
    ]


def _alerter(size: DaySize, what: str, say: Say) -> Figure:
    with TemporaryDirectory(prefix="evenkeel-readers-") as folder:
        day = write_day(Path(folder), size, say)
        say(f"the alerter judges {size.groups:,} groups")
        rules, spent = load_rules(), []
        with Alerter(Settings(lake=folder, cluster=CLUSTER), rules, {}) as alerter:
            alerter.poll()
            for _ in range(_ROUNDS):
                day.next_round()
                before = time.process_time()
                alerter.poll()
                spent.append(time.process_time() - before)
    note = f"{size.groups:,} groups, of which {what}; {len(rules)} rules; median of {_ROUNDS}"
    return Figure("alerter: a round, processor time", f"{median(spent):.2f} s", "2 s", note)


def _maintenance(say: Say) -> Iterator[Figure]:
    with TemporaryDirectory(prefix="evenkeel-readers-") as folder:
        # Yesterday, so that nobody waits for files to rest; a whole hour lies inside, whenever it ends.
        end = datetime.now(UTC).replace(hour=12, minute=30) - timedelta(days=1)
        write_day(Path(folder), _AN_HOUR, say, end=end)
        spent: dict[tuple[str, str], float] = {}
        with _most_memory() as most:
            before = time.process_time()
            for piece in Maintainer(folder).work():
                say(f"maintaining: {piece.what} of {piece.table}")
                now = time.process_time()
                spent[piece.what, piece.table] = spent.get((piece.what, piece.table), 0.0) + now - before
                before = now
    for (what, table), seconds in spent.items():
        if seconds > 1:
            yield Figure(f"maintenance: {what} of {table}", f"{seconds:.1f} s", "", "processor time")
    note = f"{_AN_HOUR.hours} hours of {_AN_HOUR.groups:,} groups x {_AN_HOUR.partitions} at rest"
    yield Figure("  memory at most", f"{most.size / 2**20:,.0f} MB", "", note)


@dataclass(slots=True)
class _Most:
    size: int = 0


@contextmanager
def _most_memory() -> Iterator[_Most]:
    """The largest memory of this process during the block, in bytes."""
    process, most, end = psutil.Process(), _Most(), threading.Event()

    def watch() -> None:
        while not end.wait(0.05):
            most.size = max(most.size, process.memory_info().rss)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        end.set()
        thread.join()
