from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema, write_deltalake

from streaming.tables import ALL_TABLES, VIEWS, DeltaLake, LakeReader, table_named, to_arrow
from tests.empty_lake import empty_lake

_TIMES = [1_700_000_000_000, 19_675, 1_700_000_000_500]
_ROUND: list[Any] = [
    "c",
    None,
    7,
    *_TIMES,
    2000,
    "p",
    3,
    9,
    50,
    0,
    120,
    4000,
    7,
    10_080,
    "log",
    2,
    [(3, "kafka-3", "a", _TIMES[0])],
    [],
]


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return empty_lake(tmp_path / "lake", ALL_TABLES)


def _health(group: str, round_time: int, *, ended: bool = False, findings: list[Any] | None = None) -> list[Any]:
    named = {
        "cluster": "c",
        "group_id": group,
        "log_partition": 1,
        "round": round_time // 1000,
        "round_time": round_time,
        "event_date": round_time // 86_400_000,
        "ended": ended,
        "state": "Stable",
        "verdict": "identical",
        "findings": findings or [],
    }
    return [named.get(column.name) for column in table_named("group_health").columns]


def test_rows_appended_are_rows_read(lake: DeltaLake) -> None:
    assert lake.append("rounds", [_ROUND], "query", 0) == 1
    row = LakeReader(lake.root).rows("SELECT * FROM rounds")[0]
    assert row["round_time"] == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert row["closed_time"] == datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC)
    assert row["event_date"] == date(2023, 11, 14)
    assert (row["cluster"], row["cluster_id"], row["round"], row["log_records"]) == ("c", None, 7, 120)
    gone = {"broker": 3, "host": "kafka-3", "rack": "a", "since": row["round_time"]}
    assert (row["brokers"], row["brokers_gone"], row["brokers_joined"]) == (2, [gone], [])


def test_a_batch_that_runs_again_is_written_once(lake: DeltaLake) -> None:
    lake.append("rounds", [_ROUND], "query", 4)
    assert lake.append("rounds", [_ROUND], "query", 4) == 0
    assert DeltaLake(lake.root).append("rounds", [_ROUND], "query", 4) == 0, "another process must know it too"
    assert LakeReader(lake.root).count("rounds") == 1


def between(monkeypatch: pytest.MonkeyPatch, *commits: Callable[[], object]) -> None:
    """Let others commit, one before each attempt at an append, after the table was looked at."""
    left = list(commits)

    def write(*given: Any, **named: Any) -> None:
        if left:
            left.pop(0)()
        write_deltalake(*given, **named)

    monkeypatch.setattr("streaming.tables.lake.write_deltalake", write)


def delete(lake: DeltaLake, number: int) -> None:
    DeltaTable(lake.path("rounds")).delete(f"round = {number}")


def test_a_batch_is_written_although_others_delete_rows_meanwhile(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for batch in range(3):
        lake.append("rounds", [[*_ROUND[:2], batch, *_ROUND[3:]]], "query", batch)
    between(monkeypatch, *(partial(delete, lake, number) for number in (0, 1)))
    assert lake.append("rounds", [_ROUND], "query", 3) == 1
    assert LakeReader(lake.root).rows("SELECT round FROM rounds ORDER BY 1") == [{"round": 2}, {"round": 7}]


def test_a_batch_that_somebody_else_has_written_meanwhile_is_not_written_again(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.append("rounds", [_ROUND], "query", 0)

    def same_batch_and_a_deletion() -> None:
        monkeypatch.undo()
        DeltaLake(lake.root).append("rounds", [_ROUND], "query", 1)
        DeltaTable(lake.path("rounds")).delete("round = 8")

    between(monkeypatch, same_batch_and_a_deletion)
    assert lake.append("rounds", [_ROUND], "query", 1) == 0
    assert LakeReader(lake.root).count("rounds") == 2


def test_another_query_begins_at_batch_0_and_is_not_taken_for_the_first(lake: DeltaLake) -> None:
    lake.append("rounds", [_ROUND], "query", 4)
    assert lake.append("rounds", [_ROUND], "another", 0) == 1


def test_tables_that_are_there_stay_as_they_are(lake: DeltaLake) -> None:
    lake.append("rounds", [_ROUND], "query", 0)
    DeltaLake(lake.root).create()
    assert LakeReader(lake.root).count("rounds") == 1


def test_a_column_that_a_later_release_appends_is_added_to_an_older_table(tmp_path: Path) -> None:
    table = table_named("rounds")
    older = pa.schema([field for field in table.arrow_schema if field.name != "log_records"])
    DeltaTable.create(str(tmp_path / "rounds"), older, partition_by=["event_date"])
    lake = DeltaLake(str(tmp_path))
    lake.create()
    assert lake.append("rounds", [_ROUND], "query", 0) == 1
    assert LakeReader(tmp_path).rows("SELECT log_records FROM rounds") == [{"log_records": 120}]


@pytest.mark.parametrize("older", [False, True], ids=["missing", "of an older release"])
def test_many_that_create_a_table_at_once_all_find_it_complete(tmp_path: Path, *, older: bool) -> None:
    marks = table_named("marks")
    wanted = set(marks.arrow_schema.names)
    # In every fifth of these rounds, one of the four meets another's commit.
    for number in range(20):
        root = tmp_path / str(number)
        if older:
            left = [field for field in marks.arrow_schema if field.name not in {"group_id", "made_by"}]
            DeltaTable.create(str(root / "marks"), pa.schema(left), partition_by=list(marks.partition_by))
        together = Barrier(4)

        def create(root: Path = root, together: Barrier = together) -> set[str]:
            lake = DeltaLake(str(root))
            together.wait()
            lake.create([marks])
            return {field.name for field in DeltaTable(lake.path("marks")).schema().fields}

        with ThreadPoolExecutor(4) as pool:
            found = [one.result() for one in [pool.submit(create) for _ in range(4)]]
        assert found == [wanted] * 4


def test_tables_have_no_feature_that_other_readers_refuse(lake: DeltaLake) -> None:
    for table in ALL_TABLES:
        protocol = DeltaTable(lake.path(table.name)).protocol()
        assert (protocol.min_reader_version, protocol.reader_features) == (1, None), table.name


def test_a_lake_nobody_has_created_reads_as_empty_tables(tmp_path: Path) -> None:
    reader = LakeReader(tmp_path / "nothing")
    names = [*(table.name for table in ALL_TABLES), *VIEWS]
    assert {name: reader.count(name) for name in names} == dict.fromkeys(names, 0)


def test_a_reader_sees_what_came_after_it_began(tmp_path: Path) -> None:
    reader = LakeReader(tmp_path / "lake")
    lake = DeltaLake(str(tmp_path / "lake"))
    lake.create()
    lake.append("rounds", [_ROUND], "query", 0)
    reader.refresh()
    assert reader.count("rounds") == 1
    lake.append("rounds", [_ROUND], "query", 1)
    reader.refresh()
    assert reader.count("rounds") == 2


def test_rows_go_into_a_table_whose_columns_have_other_comments(tmp_path: Path) -> None:
    table = table_named("rounds")
    older = pa.schema([field.with_metadata({"comment": "as it was said then"}) for field in table.arrow_schema])
    DeltaTable.create(str(tmp_path / "rounds"), older, partition_by=["event_date"])
    lake = DeltaLake(str(tmp_path))
    lake.create([table])
    assert lake.append("rounds", [_ROUND], "query", 0) == 1


def test_a_question_about_a_column_without_statistics_finds_its_rows(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path))
    lake.create([table_named("rounds")])
    lake.append("rounds", [_ROUND], "query", 0)
    # The log entry of a file written by an engine with statistics of the first column only.
    commit = tmp_path / "rounds" / "_delta_log" / f"{1:020d}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            first = {"cluster": _ROUND[0]}
            action["add"]["stats"] = json.dumps({"numRecords": 1, "minValues": first, "maxValues": first})
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    reader = LakeReader(tmp_path)
    (row,) = reader.rows("SELECT * FROM rounds")
    for column, value in row.items():
        if value is not None:
            assert reader.rows(f"SELECT count(*) AS n FROM rounds WHERE {column} = ?", [value]) == [{"n": 1}], column


def test_the_current_view_has_the_newest_row_of_each_group_and_no_ended_one(lake: DeltaLake) -> None:
    rows = [_health("a", 1_000), _health("a", 3_000), _health("b", 1_000), _health("b", 2_000, ended=True)]
    lake.append("group_health", rows, "query", 0)
    current = LakeReader(lake.root).rows("SELECT group_id, round FROM group_health_current")
    assert current == [{"group_id": "a", "round": 3}]


def test_an_ended_group_takes_its_verdict_out_of_the_current_view(lake: DeltaLake) -> None:
    names = [column.name for column in table_named("drift").columns]
    for number, group in enumerate(("a", "b")):
        named = {"cluster": "c", "group_id": group, "round": 1, "round_time": 1_000, "drifted_partitions": []}
        lake.append("drift", [[named.get(name) for name in names]], "query", number)
    lake.append("group_health", [_health("a", 1_000), _health("b", 1_000, ended=True)], "query", 0)
    assert LakeReader(lake.root).rows("SELECT group_id FROM drift_current") == [{"group_id": "a"}]


@pytest.mark.parametrize(
    "name", ["two\nlines", "<b>&amp;", "quote'\"`;--", "../../etc", "C:\\x", "\u202eright", "x" * 32_000, ""]
)
def test_hostile_names_are_kept_as_they_are(lake: DeltaLake, name: str) -> None:
    lake.append("group_health", [_health(name, 1_000)], "query", 0)
    assert LakeReader(lake.root).rows("SELECT group_id FROM group_health_current") == [{"group_id": name}]


def test_what_is_no_time_becomes_null_instead_of_stopping_the_job() -> None:
    table = table_named("quarantine")
    names = [column.name for column in table.columns]
    rows = [
        [{"record_time": time, "event_date": time // 86_400_000}.get(name) for name in names]
        for time in (-1, 2**63 - 1, -(2**63), 0)
    ]
    made = to_arrow(table, rows)
    assert made["record_time"].to_pylist() == [None, None, None, datetime(1970, 1, 1, tzinfo=UTC)]
    assert made["event_date"].to_pylist() == [None, None, None, date(1970, 1, 1)]


def test_numbers_beyond_a_type_end_at_its_bounds_instead_of_stopping_the_job() -> None:
    table = table_named("lag")
    names = [column.name for column in table.columns]
    rows = [[{"rewound_by": number}.get(name) for name in names] for number in (2**64 - 1, 5, None)]
    assert to_arrow(table, rows)["rewound_by"].to_pylist() == [2**63 - 1, 5, None]


def _transition(number: int, state: str, group: str = "a") -> list[Any]:
    named = {
        "transition_id": f"{group}{number}",
        "cluster": "c",
        "rule": "drift",
        "entity": f'{{"group_id":"{group}"}}',
        "state": state,
        "ended": state in ("resolved", "gone"),
        "labels": [["team", "orders"]],
        "decision": number,
        "round": 1,
        "round_time": 1_000,
        "event_date": 0,
    }
    return [named.get(column.name) for column in table_named("alerts").columns]


def test_an_alert_is_current_until_it_is_resolved_or_gone(lake: DeltaLake) -> None:
    lake.append("alerts", [_transition(1, "pending"), _transition(1, "firing", "b")], "alerter", 1)
    reader = LakeReader(lake.root)
    sql = "SELECT transition_id, state, labels FROM alerts_current ORDER BY transition_id"
    labels = [{"name": "team", "value": "orders"}]
    assert reader.rows(sql) == [
        {"transition_id": "a1", "state": "pending", "labels": labels},
        {"transition_id": "b1", "state": "firing", "labels": labels},
    ]
    lake.append("alerts", [_transition(2, "resolved"), _transition(2, "gone", "b")], "alerter", 2)
    reader.refresh()
    assert reader.rows(sql) == []


def test_rows_have_null_in_columns_that_a_newer_release_or_a_user_has_added(tmp_path: Path) -> None:
    lake = empty_lake(tmp_path / "lake")
    row = [1 if column.name == "round" else None for column in table_named("rounds").columns]
    lake.append("rounds", [row], "query", 1)
    newer = [pa.field("newer", pa.string()), pa.field("newest", pa.list_(pa.int64()))]
    DeltaTable(lake.path("rounds")).alter.add_columns(list(Schema.from_arrow(pa.schema(newer)).fields))
    for again in (lake, DeltaLake(lake.root)):
        assert again.append("rounds", [row], "query", 2 if again is lake else 3) == 1
    found = DeltaTable(lake.path("rounds")).to_pyarrow_table(columns=["round", "newer", "newest"]).to_pylist()
    assert found == [{"round": 1, "newer": None, "newest": None}] * 3
