"""A month of a lake whose maintainer is killed again and again while the job writes, against an undisturbed one."""

from __future__ import annotations

import os
import random
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
from tests.maintain.build import SMALL, TODAY, Writer, rows_by_sql, rows_of
from tests.maintain.lives import in_one, life, newest, write

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3_600)]

DAYS = 30
KEEP = 10
INTERVAL_MS = 1_800_000
CARRY_MS = 2 * INTERVAL_MS

_MAINTAINER = f"""
import sys
from pathlib import Path
from streaming.maintain import Maintainer
from streaming.tables import ALL_TABLES, HISTORY_TABLES
from tests.maintain.build import SMALL

root, clock = sys.argv[1:]
keep = {{table.name: {KEEP} for table in ALL_TABLES if table not in HISTORY_TABLES}}
maintainer = Maintainer(root, keep, SMALL, carry_ms={CARRY_MS}, now=lambda: int(Path(clock).read_text()))
print("ready", flush=True)
while True:
    for _ in maintainer.work():
        pass
"""


class Killed:
    """A maintainer in a process of its own, which is killed after a random time of work, and started again."""

    def __init__(self, root: str, clock: Path, chance: random.Random) -> None:
        self.kills = 0
        self._command = [sys.executable, "-c", _MAINTAINER, root, str(clock)]
        self._environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        self._chance = chance
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, env=self._environment)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        self._until = time.monotonic() + self._chance.uniform(0.05, 3.0)

    def look(self) -> None:
        """Kill it where its time has come."""
        if time.monotonic() >= self._until:
            self.end()
            self.kills += 1
            self._start()

    def end(self) -> None:
        assert self._process.poll() is None, "it must not end by itself"
        self._process.kill()
        assert self._process.wait() == -signal.SIGKILL
        assert self._process.stdout is not None
        self._process.stdout.close()


def test_a_month_of_kills_in_maintenance_leaves_the_tables_of_an_undisturbed_one(tmp_path: Path) -> None:
    seed = int(os.environ.get("SEED", "1"))
    batches = list(life(random.Random(seed), (TODAY - DAYS) * DAY_MS, DAYS * 24, INTERVAL_MS))
    lake, undisturbed = DeltaLake(str(tmp_path / "lake")), DeltaLake(str(tmp_path / "undisturbed"))
    for one in (lake, undisturbed):
        one.create(TABLES)
    clock = tmp_path / "clock"
    clock.write_text(str(newest(batches[0])))
    maintainer = Killed(lake.root, clock, random.Random(seed))
    writer = Writer(lake)
    try:
        for batch in batches:
            write(writer, batch)
            partial = clock.with_suffix(".new")
            partial.write_text(str(newest(batch)))
            partial.replace(clock)
            maintainer.look()
    finally:
        maintainer.end()
    write(Writer(undisturbed), in_one(batches))
    now = newest(batches[-1])
    keep = {table.name: KEEP for table in TABLES}
    list(Maintainer(lake.root, keep, SMALL, carry_ms=CARRY_MS, now=lambda: now).work())
    list(Maintainer(undisturbed.root, None, SMALL, carry_ms=CARRY_MS, now=lambda: now).work())
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
    assert maintainer.kills > 20
    print(f"{maintainer.kills} kills, seed {seed}")


def _since(lake: DeltaLake, table: str, first: date) -> Counter[str]:
    return rows_by_sql(LakeReader(lake.root), f"SELECT * FROM {table} WHERE event_date >= DATE '{first}'")
