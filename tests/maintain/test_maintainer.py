"""Whole runs of maintenance: random lakes, a kill, a time limit."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streaming.maintain import Maintainer, NotMaintainedError
from streaming.maintain.exceptions import MaintenanceError
from streaming.maintain.table.delta_table import MaintainedTable, open_table
from streaming.maintain.table.plan import File
from streaming.maintain.table.rewrite import read
from streaming.tables import (
    DeltaLake,
    DeltaLogTail,
    LakeReader,
    Table,
    table_named,
    to_arrow,
)
from tests.examples import examples
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

pytestmark = pytest.mark.turn(6)

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


@pytest.mark.nightly
@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_WRITES)
def test_whatever_is_written_when_the_present_and_the_recent_past_stay_and_nothing_appears_twice(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[str, int, list[dict[str, Any]], str]]
) -> None:
    lake = new_lake(tmp_path_factory.mktemp("random"))
    writer, reader = Writer(lake), LakeReader(lake.root)
    writer.round(0, 1_000)
    # (Another group: without one nobody can tell which groups live.)
    writer.append("group_health", row("group_health", 0, 1_000, group_id="z"))
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
        before = _picture(reader, names)
        maintain(lake)
        after = _picture(reader, names)
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


def _picture(reader: LakeReader, names: tuple[str, ...]) -> _Picture:
    reader.refresh()
    # (Nothing else is written.)
    views = [f"{name}_current" for name in (*names, "rounds") if name != "rebalance_churn"]
    questions = {view: f"SELECT * FROM {view}" for view in views}
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
from streaming.maintain.table.delta_table import MaintainedTable
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


@pytest.mark.parametrize("where", ["before", pytest.param("after", marks=pytest.mark.nightly)])
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


def test_work_without_time_is_one_piece_and_the_next_call_continues(lake: DeltaLake, writer: Writer) -> None:
    for number in range(4):
        for name in ("lag", "members"):
            writer.append(name, row(name, 0, number, topic="t", partition=0))
    maintainer = Maintainer(lake.root, limits=SMALL)
    assert [(done.table, done.what) for done in maintainer.work(left=0)] == [("lag", "compaction")]
    assert maintainer.has_more
    assert [(done.table, done.what) for done in maintainer.work(left=0)] == [("members", "compaction")]
    assert list(maintainer.work()) == []
    assert not maintainer.has_more
    assert files_of(lake)["lag"] == files_of(lake)["members"] == 1


def test_a_broken_table_does_not_keep_the_others_from_being_maintained(lake: DeltaLake, writer: Writer) -> None:
    for number in range(4):
        for name in ("lag", "members"):
            writer.append(name, row(name, 0, number, topic="t", partition=0))
    for file in Path(lake.path("lag")).rglob("*.parquet"):
        file.unlink()
    maintainer = Maintainer(lake.root, limits=SMALL)
    work = maintainer.work()
    assert [(done.table, done.what) for done in (next(work),)] == [("members", "compaction")]
    with pytest.raises(MaintenanceError, match="/lag could not be maintained"):
        next(work)
    with pytest.raises(MaintenanceError, match="/lag could not be maintained"):
        next(maintainer.work())


def test_all_tables_that_could_not_be_maintained_are_named_and_each_is_told_by_itself(
    lake: DeltaLake, writer: Writer
) -> None:
    for number in range(4):
        for name in ("lag", "members", "topics"):
            writer.append(name, row(name, 0, number, topic="t", partition=0))
    for name in ("lag", "topics"):
        for file in Path(lake.path(name)).rglob("*.parquet"):
            file.unlink()
    told: list[tuple[str, str]] = []
    maintainer = Maintainer(lake.root, limits=SMALL, told=lambda *one: told.append(one))
    with pytest.raises(NotMaintainedError) as failed:
        list(maintainer.work())
    assert [(name, f"/{name} could not be maintained" in reason) for name, reason in told] == [
        ("lag", True),
        ("topics", True),
    ]
    assert str(failed.value) == f"{told[0][1]} Not maintained either: topics."


def test_a_failure_is_told_at_once_where_other_tables_always_have_more_to_do(lake: DeltaLake, writer: Writer) -> None:
    for number in range(4):
        writer.append("lag", row("lag", 0, number, topic="t", partition=0))
    for file in Path(lake.path("lag")).rglob("*.parquet"):
        file.unlink()
    told: list[str] = []
    maintainer = Maintainer(lake.root, limits=SMALL, told=lambda table, _: told.append(table))
    for number in range(5):
        writer.append("members", *(row("members", 0, number, member_id=f"m{n}") for n in range(3)))
        for _ in range(3):
            writer.append("group_health", row("group_health", 0, writer.batch))
        list(maintainer.work(left=0))
        assert maintainer.has_more
    assert told == ["lag"]


def test_what_a_failed_piece_has_read_is_let_go(
    lake: DeltaLake, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        rows = [row("lag", 0, number, topic=f"topic {n}", partition=0) for n in range(20_000)]
        lake.append("lag", rows, "query", number)
        writer.append("members", row("members", 0, number, member_id="m"))
    written = MaintainedTable._written

    def on_a_full_disk(self: MaintainedTable, rows: pa.Table, path: str) -> int:
        if self.table.name == "lag":
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(self, rows, path)

    monkeypatch.setattr(MaintainedTable, "_written", on_a_full_disk)
    before = pa.total_allocated_bytes()
    reasons: list[str] = []
    work = Maintainer(lake.root, limits=SMALL, told=lambda _, reason: reasons.append(reason)).work()
    assert next(work).table == "members"
    assert "No space left on device" in reasons[0]
    assert pa.total_allocated_bytes() - before < 1_000_000


class Clock:
    """Replaces the module `time`: rewriting 9,000 rows and opening nine files take a second each, all else no time."""

    time_ns = staticmethod(time.time_ns)

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("streaming.maintain.maintainer.time", self)
        monkeypatch.setattr("streaming.maintain.maintainer.read", self._read)

    def monotonic(self) -> float:
        return self.now

    def _read(self, table: Table, files: Sequence[File], folder: Any) -> pa.Table:
        rows = read(table, files, folder)
        self.now += rows.num_rows / 9_000 + len(files) / 9
        return rows


@pytest.fixture
def twelve_files(lake: DeltaLake, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Twelve files of 17,000 rows of lag: two seconds each."""
    rows = to_arrow(table_named("lag"), [row("lag", 0, n, topic="t", partition=0) for n in range(17_000)])
    for batch in range(12):
        lake.append("lag", rows, "query", batch)
    return Clock(monkeypatch)


TWO_ARE_MANY = replace(SMALL, min_files=2)


@pytest.mark.usefixtures("twelve_files")
def test_on_a_slow_machine_pieces_are_smaller(lake: DeltaLake) -> None:
    maintainer = Maintainer(lake.root, limits=TWO_ARE_MANY, piece_seconds=2.1)
    pieces = [(done.files, round(done.seconds, 3)) for done in maintainer.work(left=0)]
    pieces += [(done.files, round(done.seconds, 3)) for done in maintainer.work(left=0)]
    # At first 100,000 rows a second are expected, so 105,000 rows fit into half of 2.1 s; then 54,500, so 57,225.
    assert pieces == [(6, 12.0), (3, 6.0)]
    assert LakeReader(lake.root).count("lag") == 204_000


@pytest.mark.usefixtures("twelve_files")
def test_pieces_are_made_to_fit_into_a_gap(lake: DeltaLake) -> None:
    maintainer = Maintainer(lake.root, limits=TWO_ARE_MANY, piece_seconds=60)
    (piece,) = maintainer.work(left=2.1, whole=2.1)
    assert piece.files == 6


def test_no_piece_begins_that_should_not_be_done_in_time(lake: DeltaLake, twelve_files: Clock) -> None:
    maintainer = Maintainer(lake.root, limits=replace(TWO_ARE_MANY, piece_rows=72_000))
    # Four files: 72,000 rows with what it takes to open them, 0.72 s as far as is known.
    assert list(maintainer.work(left=0.7, whole=10)) == []
    assert maintainer.has_more
    # The first takes 8 s, and leaves 54,500 rows a second as what is known: 1.32 s for the next one.
    assert [done.seconds for done in maintainer.work(left=9.3, whole=10)] == [8.0]
    twelve_files.now = 0.0
    # Then 31,750: 2.27 s for the third.
    assert [done.seconds for done in maintainer.work(left=10.2, whole=11)] == [8.0]
    assert maintainer.has_more


@pytest.mark.usefixtures("twelve_files")
def test_a_piece_that_fits_into_no_gap_begins_in_one(lake: DeltaLake) -> None:
    maintainer = Maintainer(lake.root, limits=replace(TWO_ARE_MANY, piece_rows=40_000))
    # (36,000 rows with opening two files: 0.36 s as far as is known. No piece has to be smaller than 50,000 rows.)
    assert [done.files for done in maintainer.work(left=0.1, whole=0.3)] == [2]


def test_a_piece_that_fits_into_a_gap_only_without_the_time_of_finding_it_begins(
    lake: DeltaLake, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One piece of retention, which cannot be made smaller: three files and their rows should take 0.03 s.
    for number in range(3):
        writer.append("lag", row("lag", -400, number, topic="t", partition=0, ended=True))
        writer.append("members", row("members", 0, number, member_id="m"))
    writer.round(0, 9)
    clock = Clock(monkeypatch)
    maintainer = Maintainer(lake.root, limits=SMALL)
    look_again = Maintainer._look_again

    def slowly(self: Maintainer) -> None:
        clock.now += 0.01
        look_again(self)

    monkeypatch.setattr(Maintainer, "_look_again", slowly)
    assert [done.table for done in maintainer.work(left=0.035, whole=0.035)] == ["lag"]


def test_a_checkpoint_takes_along_the_sums_that_spark_has_left_of_files_which_are_gone(tmp_path: Path) -> None:
    lake = new_lake(tmp_path)
    log = Path(lake.path("lag")) / "_delta_log"
    for name in (f"{0:020d}.json", f"{7:020d}.json", f"{7:020d}.checkpoint.parquet"):
        (log / f".{name}.crc").touch()
    opened = open_table(lake.root, table_named("lag"))
    assert opened is not None
    opened.checkpoint()
    assert [file.name for file in log.glob(".*.crc")] == [f".{0:020d}.json.crc"]
