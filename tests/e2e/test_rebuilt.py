"""The recorded topics, compacted anywhere or read again after a lost checkpoint: the same present, no invented past."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rich.console import Console

from streaming.config import Settings
from streaming.groups import GroupConfig, Rows, encode_rows
from streaming.groups.rows import LagRow
from streaming.job.batch import rows_by_table
from streaming.job.rebuild.lake import RebuildingLake, gone_members, incarnations_of
from streaming.job.rebuild.plan import Rebuild, plan_rebuild, rounds_held, write_gap
from streaming.maintain import Maintainer, repair
from streaming.tables import TABLES, DeltaLake, LakeReader
from streaming.tables import Lake as Writes
from tests.e2e.compacting import RECORDS, ROUNDS, SETTINGS, CompactedTopics, job_on
from tests.e2e.lakes import Lake, contents, differences, without_rebuilds
from tests.e2e.plain_job import PAST, PlainJob, present
from tests.e2e.recording import CLUSTER
from tests.empty_lake import empty_lake
from tests.examples import examples
from tests.job.source.fake_reader import both

NOW = max(record.time for record in RECORDS)


class Job:
    """A job on topics, with a checkpoint that is lost with it, and a lake that is not."""

    def __init__(self, topics: CompactedTopics, lake: Writes, query: str, plan: Rebuild | None = None) -> None:
        self._job = PlainJob(SETTINGS, lambda *_: both(topics), ROUNDS)  # type: ignore[arg-type, return-value]
        if plan is not None:
            self._job.offsets = dict(plan.start)
            self._job.config = GroupConfig(CLUSTER, incarnations=incarnations_of(lake.root, CLUSTER))
        self.lake = lake
        self._query = query
        self._batch = -1

    def take(self, rounds: int, tables: int = len(TABLES)) -> bool:
        """One batch of so many rounds, of which the first tables are written; False where there is nothing left."""
        before = self._job.offsets
        self._job.rows = Rows()
        self._job.run(rounds)
        self._batch += 1
        self.write(tables)
        return self._job.offsets != before

    def made(self) -> dict[str, pa.Table]:
        """Rows of the last batch, by table."""
        return rows_by_table([encode_rows(self._job.rows)])

    def write(self, tables: int = len(TABLES)) -> None:
        """Write the last batch, or write it again."""
        made = self.made()
        for table in TABLES[:tables]:
            if table.name in made:
                self.lake.append(table.name, made[table.name], self._query, self._batch)


@contextmanager
def lake_for_a_while() -> Iterator[DeltaLake]:
    with tempfile.TemporaryDirectory() as folder:
        yield empty_lake(folder)


@dataclass(frozen=True)
class Truth:
    """The lake of a job that was never interrupted: its rows, its present, its rounds."""

    rows: Lake
    present: Mapping[str, list[dict[str, Any]]]
    rounds: list[dict[str, Any]]


@cache
def truth() -> Truth:
    with lake_for_a_while() as lake:
        Job(CompactedTopics(RECORDS), lake, "undisturbed").take(ROUNDS)
        return Truth(contents(Path(lake.root)), present_of(lake), counted_rounds(lake))


def counted_rounds(lake: DeltaLake) -> list[dict[str, Any]]:
    """Rows of `rounds`, without what the first round that is left has as the log's records since the one before."""
    return LakeReader(lake.root).rows("SELECT * EXCLUDE (log_records) FROM rounds ORDER BY round")


def present_of(lake: DeltaLake) -> dict[str, list[dict[str, Any]]]:
    """The `_current` views, without the columns of `PAST`."""
    reader = LakeReader(lake.root)
    return {
        name: reader.rows(f"SELECT * EXCLUDE ({', '.join(past)}) FROM {name}_current ORDER BY ALL")
        for name, past in PAST.items()
    }


def plan_for(topics: CompactedTopics, lake: DeltaLake) -> Rebuild:
    return plan_rebuild(lake.root, CLUSTER, *rounds_held(both(topics), SETTINGS))


def read_all_again(topics: CompactedTopics, lake: DeltaLake, rounds: int = ROUNDS) -> None:
    """Rebuild to the end of the topics, in batches of so many rounds."""
    plan = plan_for(topics, lake)
    write_gap(lake, CLUSTER, plan)
    rebuilt = Job(topics, RebuildingLake(lake, CLUSTER, plan, kept_nowhere), "rebuilt", plan)
    while rebuilt.take(rounds):
        pass


def of_another_cluster(rows: pa.Table) -> pa.Table:
    """The same rows for another cluster, with higher numbers of rounds."""
    rows = rows.set_column(0, "cluster", pa.array(["another"] * rows.num_rows))
    if "round" in rows.column_names:
        rows = rows.set_column(rows.column_names.index("round"), "round", pc.add(rows["round"], 5_000))
    return rows


def kept_nowhere(_: Rebuild) -> None:
    pass


@pytest.mark.turn(6)
@pytest.mark.nightly
@settings(deadline=None, max_examples=examples(6), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.data())
def test_a_rebuilt_lake_is_that_of_a_job_that_was_never_interrupted(data: st.DataObject) -> None:
    topics = CompactedTopics(RECORDS)
    batches = st.integers(1, ROUNDS // 2)
    with lake_for_a_while() as lake:
        lost = Job(topics, lake, "lost")
        lost.take(data.draw(batches, "rounds of the first batch"))
        # The last batch was torn: it has reached some of the tables.
        lost.take(data.draw(batches, "rounds of the last batch"), data.draw(st.integers(0, len(TABLES)), "tables"))

        plan = plan_for(topics, lake)
        rebuilt = Job(topics, RebuildingLake(lake, CLUSTER, plan, kept_nowhere), "rebuilt", plan)
        more = True
        while more:
            killed_after = data.draw(st.none() | st.integers(0, len(TABLES)), "killed after so many tables")
            more = rebuilt.take(data.draw(batches, "rounds"), len(TABLES) if killed_after is None else killed_after)
            if killed_after is not None:
                # It starts again with the plan of its checkpoint, and writes the batch again.
                rebuilt.lake = RebuildingLake(lake, CLUSTER, plan, kept_nowhere)
                rebuilt.write()
        assert differences(contents(Path(lake.root)), truth().rows) == {}


# Without shrinking: an example takes seconds.
@pytest.mark.turn(6)
@pytest.mark.nightly
@settings(deadline=None, max_examples=examples(6), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.data())
def test_on_a_compacted_log_without_old_rounds_the_past_stays_and_the_present_is_true(data: st.DataObject) -> None:
    topics = CompactedTopics(RECORDS)
    with lake_for_a_while() as lake:
        root = Path(lake.root)
        Job(topics, lake, "lost").take(data.draw(st.integers(ROUNDS // 4, ROUNDS), "rounds"))
        before = contents(root)
        newest = LakeReader(root).rows("SELECT max(round) AS round FROM rounds")[0]["round"]
        ends = topics.log_ends().items()
        upto = {p: data.draw(st.integers(0, end), f"cleaned of {p}") for p, end in ends if end}
        topics.compact_log(upto, tombstones=data.draw(st.booleans(), "tombstones"))
        cut = data.draw(st.integers(0, 2 * ROUNDS - 4), "rounds begin")
        topics.cut_rounds(cut)

        read_all_again(topics, lake, data.draw(st.integers(5, ROUNDS), "rounds of a batch"))

        after = contents(root)
        assert {table: rows - after[table] for table, rows in before.items() if rows - after[table]} == {}
        reader = LakeReader(root)
        for name in ("lag", "group_health", "member_load", "rounds", "open_transactions"):
            assert (
                sum(after[name].values()) - sum(before[name].values())
                == reader.rows(f"SELECT count(*) AS n FROM {name} WHERE round > {newest}")[0]["n"]
            )
        for table in TABLES:
            twice = f"SELECT {', '.join(table.identity)} FROM {table.name} GROUP BY ALL HAVING count(*) > 1"
            assert reader.rows(twice) == [], table.name
        assert len(reader.rows("SELECT 1 FROM gaps WHERE kind = 'state'")) == 1
        lake.append("members", gone_members(lake.root, CLUSTER), "gone", 0)
        assert present_of(lake) == truth().present
        if cut <= newest:
            # Rounds and the time between them are those of a job that was never interrupted.
            assert counted_rounds(lake) == truth().rounds


@pytest.mark.turn(6)
@settings(deadline=None, max_examples=examples(3), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.data())
def test_rows_of_deleted_tables_and_lost_files_are_written_again(data: st.DataObject) -> None:
    topics = CompactedTopics(RECORDS)
    with lake_for_a_while() as lake:
        root = Path(lake.root)
        lost = Job(topics, lake, "lost")
        for _ in range(4):
            lost.take(6)
        # Another cluster's job, far ahead.
        for name, rows in lost.made().items():
            lake.append(name, of_another_cluster(rows), "another", 0)
        another = contents(root, "WHERE cluster = 'another'")
        # Files that hold rows of several batches, of some groups each.
        for _ in Maintainer(lake.root, now=lambda: NOW).work():
            pass
        for table in data.draw(st.sets(st.sampled_from(TABLES), min_size=1), "tables"):
            files = sorted((root / table.name).rglob("*.parquet"))
            if not files or data.draw(st.booleans(), f"all of {table.name}"):
                shutil.rmtree(root / table.name)
            elif len(DeltaTable(lake.path(table.name)).file_uris()) > 1:
                data.draw(st.sampled_from(files), "lost file").unlink()
        repair(Settings(lake=lake.root), Console(quiet=True))
        lake.create()
        read_all_again(topics, DeltaLake(lake.root), data.draw(st.integers(5, ROUNDS), "rounds of a batch"))
        assert differences(without_rebuilds(contents(root, "WHERE cluster = 'recorded'")), truth().rows) == {}
        written = {n: rows - another[n] for n, rows in contents(root, "WHERE cluster = 'another'").items()}
        assert not any(written.values())


ALARMING = {"rewound", "falling_behind", "stalled", "stopped"}


@cache
def whole_rows() -> Rows:
    """The rows without any compaction."""
    job = job_on(CompactedTopics(RECORDS), 60)
    job.run()
    return job.rows


@st.composite
def cleanings(draw: st.DrawFn, topics: CompactedTopics) -> dict[int, int]:
    return {partition: draw(st.integers(0, end)) for partition, end in topics.log_ends().items() if end}


class _AsOf:
    """Rows of `lag` as of any round."""

    def __init__(self, rows: list[LagRow]) -> None:
        self._rows: dict[tuple[str, str, int], list[LagRow]] = defaultdict(list)
        for row in sorted(rows, key=lambda r: r.round):
            self._rows[row.group_id, row.topic, row.partition].append(row)

    def __call__(self, row: LagRow) -> LagRow | None:
        of_place = [r for r in self._rows[row.group_id, row.topic, row.partition] if r.round <= row.round]
        return of_place[-1] if of_place else None


def assert_nothing_is_made_up(rows: Rows) -> None:
    as_of = _AsOf(whole_rows().lag)
    rewound = {(row.group_id, row.topic, row.partition) for row in whole_rows().lag if row.rewound_by}
    for row in rows.lag:
        true = as_of(row)
        assert _lag_facts(row) == _lag_facts(true)
        assert row.lag_status not in ALARMING or row.lag_status == true.lag_status
        assert row.rewound_by == 0 or (row.group_id, row.topic, row.partition) in rewound
    # By generation: its only remaining record may be that of a static member's return, which got no verdict.
    verdicts = {(r.group_id, r.generation): r.verdict for r in whole_rows().drift}
    for drift in rows.drift:
        if drift.verdict in {"drifted", "identical"}:
            assert verdicts[drift.group_id, drift.generation] == drift.verdict
    changes = {(r.group_id, r.decision): r for r in whole_rows().rebalance_churn if r.revision == 1}
    for churn in rows.rebalance_churn:
        real = msgspec.structs.asdict(changes[churn.group_id, churn.decision])
        said: dict[str, Any] = msgspec.structs.asdict(churn)
        for name in (
            "kind",
            "generation",
            "strategy",
            "leader",
            "members",
            "partitions",
            "record_time",
            "join_completed_time",
        ):
            assert said[name] == real[name], name
        for name in (
            "joined",
            "partitions_moved",
            "partitions_moved_optimal",
            "follows",
            "unassigned_partition_seconds_min",
        ):
            assert said[name] in (None, real[name]), name
        for name in ("left", "replaced"):
            assert said[name] in ((), real[name]), name
    told = {(r.group_id, r.decision) for r in rows.members}
    assert told <= {(r.group_id, r.decision) for r in whole_rows().members}
    assert [gap for gap in rows.gaps if gap.kind == "log"] == []


def _lag_facts(row: LagRow) -> tuple[object, ...]:
    return row.committed_offset, row.high_watermark, row.lag, row.reason, row.subscribed, row.member_id, row.ended


@settings(deadline=None, max_examples=8)
@given(st.data())
def test_a_job_that_starts_late_sees_the_same_present_and_claims_nothing_else_of_the_past(data: st.DataObject) -> None:
    topics = CompactedTopics(RECORDS)
    topics.compact_log(data.draw(cleanings(topics)), tombstones=data.draw(st.booleans()))
    if data.draw(st.booleans()):
        topics.cut_rounds(data.draw(st.integers(0, 2 * ROUNDS - 4)))
    late = job_on(topics, data.draw(st.integers(1, 60)))
    late.run()
    assert present(late.rows) == present(whole_rows())
    assert_nothing_is_made_up(late.rows)


@pytest.mark.nightly
@settings(deadline=None, max_examples=8)
@given(st.data())
def test_a_job_that_comes_back_sees_the_same_present_and_claims_nothing_else_of_the_past(data: st.DataObject) -> None:
    topics = CompactedTopics(RECORDS)
    resumed = job_on(topics, data.draw(st.integers(1, 60)))
    resumed.run(data.draw(st.integers(1, ROUNDS - 1)))
    topics.compact_log(data.draw(cleanings(topics)), tombstones=True)
    resumed.run()
    assert present(resumed.rows) == present(whole_rows())
    assert_nothing_is_made_up(resumed.rows)


@pytest.mark.nightly
@settings(deadline=None, max_examples=8)
@given(st.data())
def test_the_cut_into_batches_makes_no_difference_on_a_compacted_log(data: st.DataObject) -> None:
    topics = CompactedTopics(RECORDS)
    topics.compact_log(data.draw(cleanings(topics)), tombstones=data.draw(st.booleans()))
    rows = []
    for each in (ROUNDS, data.draw(st.integers(1, ROUNDS // 2))):
        job = job_on(topics, each)
        job.run()
        rows.append({table: sorted(map(repr, getattr(job.rows, table))) for table in Rows.__struct_fields__})
    assert rows[0] == rows[1]
