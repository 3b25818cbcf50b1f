"""Whole runs of maintenance: random lakes, a kill, a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streaming.maintain import Maintainer
from streaming.tables import (
    VIEWS,
    DeltaLake,
    DeltaLogTail,
    LakeReader,
    table_named,
)
from tests.maintain.build import (
    SMALL,
    Writer,
    files_of,
    kept,
    kept_sql,
    maintain,
    new_lake,
    row,
    rows_by_sql,
    rows_of,
)

TIMES = {"members": "record_time", "rebalance_churn": "record_time"}


_KEYS = st.fixed_dictionaries({"group_id": st.sampled_from("ab"), "ended": st.booleans()})


_WRITES = st.lists(
    st.tuples(
        st.sampled_from(("lag", "group_health", "members", "drift", "what_if", "rebalance_churn")),
        st.integers(-9, 0),
        st.lists(_KEYS, min_size=1, max_size=2, unique_by=lambda key: key["group_id"]),
        st.sampled_from(("none", "maintain")),
    ),
    min_size=1,
    max_size=10,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_WRITES)
def test_whatever_is_written_when_the_present_and_the_recent_past_stay_and_nothing_appears_twice(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[str, int, list[dict[str, Any]], str]]
) -> None:
    lake = new_lake(tmp_path_factory.mktemp("random"))
    writer = Writer(lake)
    writer.round(0, 1_000)
    names = ("lag", "group_health", "members", "drift", "what_if", "rebalance_churn")
    tails = {name: DeltaLogTail(lake.root, table_named(name), TIMES.get(name, "round_time")) for name in names}
    for tail in tails.values():
        tail.look()
    followed: dict[str, Counter[str]] = {name: Counter() for name in names}
    written: dict[str, Counter[str]] = {name: Counter() for name in names}
    for number, (name, day, keys, then) in enumerate(writes):
        rows = [
            row(name, day, number, topic="t", partition=at, member_id="m", strategy="range", generation=at, **key)
            for at, key in enumerate(keys)
        ]
        writer.append(name, *rows)
        written[name].update(str(r[0:3]) + str(number) for r in rows)
        if then == "none":
            continue
        before = _picture(lake, names)
        maintain(lake)
        after = _picture(lake, names)
        assert after.unchanging == before.unchanging
        for one in names:
            assert after.everything[one] <= before.everything[one]
        for one, tail in tails.items():
            _follow(tail, followed[one])
    for one, tail in tails.items():
        _follow(tail, followed[one])
        assert sum(followed[one].values()) == sum(written[one].values())
        assert not [key for key, times in followed[one].items() if times > 1]


@dataclass(frozen=True)
class _Picture:
    """What maintenance must not change, and all rows, by what they are."""

    unchanging: dict[str, Counter[str]]
    everything: dict[str, Counter[str]]


# (Its `_current` view has the whole history: the newest decision of each living group is its present.)
_PRESENT_DECISIONS = """
    SELECT d.* FROM rebalance_churn_current AS d JOIN group_health_current AS h USING (cluster, group_id)
    QUALIFY rank() OVER (PARTITION BY cluster, group_id ORDER BY d.decision DESC) = 1
"""


def _picture(lake: DeltaLake, names: tuple[str, ...]) -> _Picture:
    reader = LakeReader(lake.root)
    questions = {view: f"SELECT * FROM {view}" for view in VIEWS if view != "rebalance_churn_current"}
    questions |= {name: kept_sql(name) for name in names} | {"decisions": _PRESENT_DECISIONS}
    return _Picture(
        {name: rows_by_sql(reader, sql) for name, sql in questions.items()},
        {name: rows_by_sql(reader, f"SELECT * FROM {name}") for name in names},
    )


def _follow(tail: DeltaLogTail, into: Counter[str]) -> None:
    found = tail.look()
    assert not found.is_snapshot
    if found.files:
        names = [column.name for column in tail.table.columns]
        into.update(
            f"{file.path} {number} {one}"
            for file in found.files
            for number, one in enumerate(map(repr, tail.read([file], names).to_pylist()))
        )


_KILLED = """
import os, signal, sys
from streaming.maintain.delta_table import MaintainedTable
from tests.maintain.build import maintain
from streaming.tables import DeltaLake

where, root = sys.argv[1:]
commit = MaintainedTable._commit
count = 0

def killed(self, actions, removed, mark):
    global count
    count += 1
    if count < 3:
        return commit(self, actions, removed, mark)
    if where == "after":
        commit(self, actions, removed, mark)
    os.kill(os.getpid(), signal.SIGKILL)

MaintainedTable._commit = killed
maintain(DeltaLake(root))
"""


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_kill_beside_a_commit_leaves_all_rows_and_the_next_run_finishes(
    lake: DeltaLake, writer: Writer, where: str
) -> None:
    for number in range(12):
        for name in ("lag", "members"):
            writer.append(name, row(name, -(number % 4), number, topic="t", partition=0, member_id=f"m{number}"))
            writer.append(name, row(name, -50, 100 + number, topic="t", partition=1, member_id="n"))
    writer.round(0, 200)
    recent = {name: kept(lake, name) for name in ("lag", "members")}
    views = {name: rows_of(lake, f"{name}_current") for name in recent}
    # (Where a Spark session ran in this process, its children do not search the working folder.)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    run = subprocess.run([sys.executable, "-c", _KILLED, where, lake.root], env=environment, check=False)
    assert run.returncode == -signal.SIGKILL
    for _ in range(2):
        assert {name: kept(lake, name) for name in recent} == recent
        assert {name: rows_of(lake, f"{name}_current") for name in views} == views
        maintain(lake)
    assert files_of(lake)["lag"] <= 6
    # A file that was never committed goes when its time is over.
    tables = {name: {Path(uri).name for uri in DeltaTable(lake.path(name)).file_uris()} for name in recent}
    orphans = [
        path
        for name, known in tables.items()
        for path in Path(lake.path(name)).rglob("*.zstd.parquet")
        if path.name not in known
    ]
    for path in orphans:
        os.utime(path, (1, 1))
    maintain(lake)
    assert [path for path in orphans if path.exists()] == []


def test_a_run_ends_with_a_checkpoint_once_there_are_commits_enough(lake: DeltaLake, writer: Writer) -> None:
    for number in range(30):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
    assert [d.files for d in maintain(lake) if d.what == "checkpoint" and d.table == "lag"] == [32]
    assert [d for d in maintain(lake) if d.what == "checkpoint"] == []
    assert LakeReader(lake.root).count("lag") == 30


def test_work_stops_when_its_time_is_over_and_goes_on_with_the_next_call(lake: DeltaLake, writer: Writer) -> None:
    for number in range(4):
        for name in ("lag", "members"):
            writer.append(name, row(name, 0, number, topic="t", partition=0))
    maintainer = Maintainer(lake.root, limits=SMALL)
    assert list(maintainer.work(seconds=0)) == []
    for _ in range(100):
        list(maintainer.work(seconds=0.001))
    assert files_of(lake)["lag"] == files_of(lake)["members"] == 1
