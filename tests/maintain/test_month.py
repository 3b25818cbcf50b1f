"""A month of a lake whose job and maintainer are killed again and again, against an undisturbed one.

The job is its writing end: a real one, with Spark, is killed in `tests/e2e/test_kills.py`.
"""

from __future__ import annotations

import math
import os
import pickle
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pytest

from streaming.maintain import Maintainer
from streaming.tables import HISTORY_TABLES, TABLES, DeltaLake, LakeReader
from streaming.times import DAY_MS
from tests.maintain.build import TODAY, Writer, rows_by_sql, rows_of
from tests.maintain.lives import in_one, life, newest, write

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3_600), pytest.mark.turn(0)]

DAYS = int(os.environ.get("DAYS", "30"))
KEEP = 10
INTERVAL_MS = 1_800_000
CARRY_MS = 2 * INTERVAL_MS

_MAINTAINER = f"""
import sys
from pathlib import Path
from streaming.maintain import Maintainer
from streaming.tables import ALL_TABLES, HISTORY_TABLES

root, clock = sys.argv[1:]
keep = {{table.name: {KEEP} for table in ALL_TABLES if table not in HISTORY_TABLES}}
maintainer = Maintainer(root, keep, carry_ms={CARRY_MS}, now=lambda: int(Path(clock).read_text()))
print("ready", flush=True)
while True:
    for _ in maintainer.work():
        pass
"""


# As the job does after a kill: it begins again with the batch that was not finished.
_JOB = """
import pickle
import signal
import sys
from pathlib import Path
from streaming.tables import DeltaLake

root, file, first = sys.argv[1:]
lake = DeltaLake(root)
batches = pickle.loads(Path(file).read_bytes())
print("ready", flush=True)
for number in range(int(first), len(batches)):
    for name, rows in batches[number].items():
        if rows:
            lake.append(name, rows, "query", number)
    print(number, flush=True)
signal.pause()
"""


class Killed:
    """A program that is killed within a random batch, and started again.

    Batches are counted, not seconds: a fast machine has as many kills as a slow one.
    """

    def __init__(self, program: str, *arguments: str, most_batches: int, chance: random.Random) -> None:
        self.kills = 0
        self.until = math.inf
        self._command = [sys.executable, "-c", program, *arguments]
        self._environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        self._most_batches, self._chance = most_batches, chance

    def start(self, *more: str) -> None:
        self._process = subprocess.Popen([*self._command, *more], stdout=subprocess.PIPE, env=self._environment)
        self._out = Lines(self._process)
        assert self._out.next(timeout_s=60) == "ready"
        self._batches = self._chance.randint(1, self._most_batches)
        self.until = math.inf

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self.until

    def batch_written(self, took_s: float) -> None:
        """Count a batch; the last one is followed by the kill, at a random moment of the next."""
        self._batches -= 1
        if self._batches == 0:
            self.until = time.monotonic() + self._chance.uniform(0.0, took_s)

    def next_line(self, until: float) -> str | None:
        """What it says next; None when the time has come before."""
        return self._out.next(until - time.monotonic())

    def kill(self) -> None:
        assert self._process.poll() is None, "it must not end by itself"
        self.end()
        assert self._process.returncode == -signal.SIGKILL
        self.kills += 1

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._out.close()


class Lines:
    """Lines of a process's output, awaited with a limit."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._pipe = process.stdout
        self._rest = b""

    def next(self, timeout_s: float) -> str | None:
        until = time.monotonic() + timeout_s
        while b"\n" not in self._rest:
            if not select.select([self._pipe], [], [], min(60.0, max(0.0, until - time.monotonic())))[0]:
                return None
            more = os.read(self._pipe.fileno(), 4096)
            assert more, "it has ended by itself"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def close(self) -> None:
        self._pipe.close()


def test_a_month_of_kills_of_job_and_maintenance_leaves_the_tables_of_an_undisturbed_one(tmp_path: Path) -> None:
    seed = int(os.environ.get("SEED", "1"))
    batches = list(life(random.Random(seed), (TODAY - DAYS) * DAY_MS, DAYS * 24, INTERVAL_MS))
    lake, undisturbed = DeltaLake(str(tmp_path / "lake")), DeltaLake(str(tmp_path / "undisturbed"))
    for one in (lake, undisturbed):
        one.create(TABLES)
    clock, file = tmp_path / "clock", tmp_path / "batches"
    clock.write_text(str(newest(batches[0])))
    file.write_bytes(pickle.dumps(batches))
    chance = random.Random(seed)
    maintainer = Killed(_MAINTAINER, lake.root, str(clock), most_batches=20, chance=chance)
    job = Killed(_JOB, lake.root, str(file), most_batches=50, chance=chance)
    maintainer.start()
    job.start("0")
    try:
        written, begun = -1, time.monotonic()
        while written < len(batches) - 1:
            line = job.next_line(min(job.until, maintainer.until))
            assert line is not None or job.is_due or maintainer.is_due, "no batch in a minute"
            if line is not None:
                written = int(line)
                partial = clock.with_suffix(".new")
                partial.write_text(str(newest(batches[written])))
                partial.replace(clock)
                took_s, begun = time.monotonic() - begun, time.monotonic()
                job.batch_written(took_s)
                maintainer.batch_written(took_s)
            if job.is_due:
                job.kill()
                job.start(str(written + 1))
            if maintainer.is_due:
                maintainer.kill()
                maintainer.start()
    finally:
        maintainer.end()
        job.end()
    write(Writer(undisturbed), in_one(batches))
    now = newest(batches[-1])
    keep = {table.name: KEEP for table in TABLES}
    list(Maintainer(lake.root, keep, carry_ms=CARRY_MS, now=lambda: now).work())
    list(Maintainer(undisturbed.root, None, carry_ms=CARRY_MS, now=lambda: now).work())
    first = date(1970, 1, 1) + timedelta(days=now // DAY_MS - KEEP)
    for name in ("lag", "group_health", "rebalance_churn", "drift", "rounds"):
        assert _since(lake, name, first) == _since(undisturbed, name, first), name
    # (Every decision is in rebalance_churn_current, as long as it is kept.)
    for name in ("lag_current", "group_health_current", "drift_current", "rounds_current"):
        assert rows_of(lake, name) == rows_of(undisturbed, name), name
    for table in HISTORY_TABLES:
        assert rows_of(lake, table.name) == rows_of(undisturbed, table.name), table.name
    reader = LakeReader(lake.root)
    # (A group that was not observed for an hour has no row.)
    assert 2 * 24 * (DAYS - 2) < reader.count("group_hourly") <= 2 * (24 * DAYS - 1)
    assert reader.count("lag") < LakeReader(undisturbed.root).count("lag"), "retention has deleted nothing"
    assert maintainer.kills > 2 * DAYS
    assert job.kills > DAYS
    print(f"{maintainer.kills} kills of the maintainer, {job.kills} of the job, seed {seed}")


def _since(lake: DeltaLake, table: str, first: date) -> Counter[str]:
    return rows_by_sql(LakeReader(lake.root), f"SELECT * FROM {table} WHERE event_date >= DATE '{first}'")
