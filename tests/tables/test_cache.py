"""The lake in memory against the lake read whole."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, WriterProperties

from streaming.tables import DeltaLake, LakeReader, Wanted, table_named
from tests.empty_lake import empty_lake
from tests.tables.cached import CURRENT, CURRENT_OF_TWO, HEALTH, PAST, begun, cache, health, read_all


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return empty_lake(tmp_path / "lake")


def test_batch_by_batch_it_shows_what_a_reader_of_the_whole_lake_shows(lake: DeltaLake) -> None:
    followed = cache(lake)
    batches = [
        [health("a", 1), health("b", 1)],
        [health("a", 2)],
        [health("b", 3, ended=True), health("x'\"\n", 3, cluster="d")],
        [health("b", 4)],
    ]
    for number, rows in enumerate(batches):
        lake.append("group_health", rows, "query", number)
        assert followed.update() is True
        read_all(followed)
        assert followed.update() is False
        whole = LakeReader(lake.root)
        begun_later = begun(lake)
        for sql in (CURRENT, PAST):
            assert followed.rows(sql) == whole.rows(sql)
            assert begun_later.rows(sql) == whole.rows(sql)
    followed.tidy()
    assert followed.rows(CURRENT) == LakeReader(lake.root).rows(CURRENT)
    assert followed.rows(PAST) == LakeReader(lake.root).rows(PAST)


def test_a_lake_that_is_not_there_reads_as_empty_until_it_is(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path / "later"))
    early = cache(lake)
    assert early.update() is False
    assert early.rows(CURRENT) == []
    lake.create()
    lake.append("group_health", [health("a", 1)], "query", 0)
    assert early.update() is True
    assert len(early.rows(CURRENT)) == 1


def test_files_put_together_are_no_news_and_change_nothing(lake: DeltaLake) -> None:
    for number in range(5):
        lake.append("group_health", [health("a", number)], "query", number)
    followed = begun(lake)
    before = followed.rows(PAST)
    DeltaTable(lake.path("group_health")).optimize.compact()
    assert followed.update() is False
    assert followed.rows(PAST) == before
    lake.append("group_health", [health("a", 9)], "query", 9)
    followed.update()
    assert len(followed.rows(PAST)) == 6
    begun_later = begun(lake)
    assert begun_later.rows(PAST) == followed.rows(PAST)


def test_a_table_made_again_is_read_again(lake: DeltaLake, tmp_path: Path) -> None:
    lake.append("group_health", [health("old", 1)], "query", 0)
    followed = begun(lake)
    (tmp_path / "lake").rename(tmp_path / "away")
    assert followed.update() is True
    assert followed.rows(CURRENT) == []
    again = DeltaLake(lake.root)
    again.create()
    again.append("group_health", [health("new", 1)], "query", 0)
    followed.update()
    assert [row["group_id"] for row in followed.rows(CURRENT)] == ["new"]


def test_a_silent_cluster_stays_in_the_present_and_what_is_old_leaves_the_past(lake: DeltaLake) -> None:
    lake.append("group_health", [health("silent", 1, cluster="d", hour=0)], "other", 0)
    for number, hour in enumerate((0.0, 30.0, 50.0)):
        lake.append("group_health", [health("g", number, hour=hour)], "query", number)
    followed = begun(lake)
    assert [row["group_id"] for row in followed.rows(CURRENT)] == ["g", "silent"]
    assert [row["lag_total"] for row in followed.rows(PAST) if row["group_id"] == "g"] == [1, 2]
    lake.append("group_health", [health("g", 7, hour=60)], "query", 7)
    followed.update()
    followed.tidy()
    assert [row["group_id"] for row in followed.rows(CURRENT)] == ["g", "silent"]
    assert [row["lag_total"] for row in followed.rows(PAST) if row["group_id"] == "g"] == [2, 7]


def test_a_group_that_has_left_the_past_is_forgotten_and_comes_back_as_itself(lake: DeltaLake) -> None:
    followed = cache(lake)
    numbers = "SELECT group_id FROM group_numbers ORDER BY group_id"
    for batch, (group, hour) in enumerate((("once", 0.0), ("a", 1.0), ("late", 2.0), ("a", 25.5))):
        lake.append("group_health", [health(group, batch, hour=hour)], "query", batch)
        followed.update()
        read_all(followed)
    assert [row["group_id"] for row in followed.rows(numbers)] == ["a", "late", "once"]
    followed.tidy()
    assert [row["group_id"] for row in followed.rows(numbers)] == ["a", "late"]
    for batch, group in enumerate(("new", "once", "a"), 10):
        lake.append("group_health", [health(group, batch, hour=26.0)], "query", batch)
        followed.update()
    rows = [(row["group_id"], row["lag_total"]) for row in followed.rows(PAST)]
    assert rows == [("a", 3), ("a", 12), ("late", 2), ("new", 10), ("once", 11)]


def test_a_column_that_came_later_is_null_in_older_files(lake: DeltaLake) -> None:
    lake.append("group_health", [health("a", 1)], "query", 0)
    data = next(Path(lake.path("group_health")).rglob("*.parquet"))
    import pyarrow.parquet as pq  # noqa: PLC0415

    pq.write_table(pq.read_table(data, partitioning=None).drop(["verdict"]), data)
    commit = max((Path(lake.path("group_health")) / "_delta_log").glob("*.json"))
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["size"] = data.stat().st_size
    commit.write_text("\n".join(map(json.dumps, lines)) + "\n")
    followed = begun(lake)
    assert [row["verdict"] for row in followed.rows(CURRENT)] == [None]


def test_a_round_of_the_future_drops_no_other_group(lake: DeltaLake) -> None:
    now = datetime.now(UTC).timestamp() / 3600
    lake.append("group_health", [health("a", 1, hour=now)], "query", 0)
    followed = begun(lake)
    lake.append("group_health", [health("b", 2, hour=now + 24)], "query", 1)
    lake.append("group_health", [health("c", 3, hour=now)], "query", 2)
    for reader in (followed, cache(lake)):
        reader.update()
        read_all(reader)
        reader.tidy()
        assert [row["group_id"] for row in reader.rows(CURRENT)] == ["a", "b", "c"]
        assert [row["lag_total"] for row in reader.rows(PAST)] == [1, 2, 3]


def test_rows_that_no_outage_repeats_stay_in_the_present(lake: DeltaLake) -> None:
    # After an outage of five hours nothing is repeated at once: heartbeats are counted in rounds.
    lake.append("group_health", [health("a", 1, hour=0)], "query", 0)
    followed = begun(lake)
    lake.append("group_health", [health("b", 2, hour=5)], "query", 1)
    followed.update()
    followed.tidy()
    assert [row["group_id"] for row in followed.rows(CURRENT)] == ["a", "b"]


def test_what_nobody_repeats_is_in_the_present_of_a_later_start_however_old_it_is(lake: DeltaLake) -> None:
    wanted = Wanted(current=frozenset({"group_id", "verdict"}), past=frozenset({"group_id", "verdict"}))
    for number, (group, hour) in enumerate((("old", 0.0), ("older_than_a_day", 24.0), ("new", 50.0))):
        lake.append("group_health", [health(group, number, hour=hour)], "query", number)
    followed = begun(lake, group_health=wanted)
    assert [row["group_id"] for row in followed.rows("SELECT * FROM group_health")] == ["new"]
    assert [(row["group_id"], row["verdict"]) for row in followed.rows(CURRENT_OF_TWO)] == [
        ("new", "v2"),
        ("old", "v0"),
        ("older_than_a_day", "v1"),
    ]


def test_partitions_of_brokers_and_verdicts_on_topics_are_kept_apart_and_null_is_one_key(lake: DeltaLake) -> None:
    def row(table: str, **values: Any) -> list[Any]:
        named = {"cluster": "c", "group_id": "g", "ended": False, "event_date": 0, "round_time": 1, **values}
        return [named.get(column.name) for column in table_named(table).columns]

    followed = cache(
        lake,
        lag=Wanted(current=frozenset({"lag"})),
        drift=Wanted(current=frozenset({"verdict"})),
        group_health=Wanted(current=frozenset({"verdict"})),
    )
    lake.append("group_health", [row("group_health", round=1, findings=[])], "query", 0)
    for number in (1, 2):
        places = [(broker, number * 10 + at) for at, broker in enumerate((None, "a", "b"))]
        lake.append(
            "lag",
            [row("lag", topic="t", broker=broker, partition=0, round=number, lag=lag) for broker, lag in places],
            "query",
            number,
        )
        lake.append(
            "drift",
            [row("drift", topic=topic, round=number, decision=number, verdict=f"v{number}") for topic in (None, "t")],
            "query",
            number,
        )
        followed.update()
        read_all(followed)
    for reader in (followed, LakeReader(lake.root)):
        lag = reader.rows("SELECT broker, lag FROM lag_current ORDER BY lag")
        assert lag == [{"broker": None, "lag": 20}, {"broker": "a", "lag": 21}, {"broker": "b", "lag": 22}]
        drift = reader.rows("SELECT topic, verdict FROM drift_current ORDER BY topic NULLS FIRST")
        assert drift == [{"topic": None, "verdict": "v2"}, {"topic": "t", "verdict": "v2"}]


def test_of_rows_of_a_key_the_newest_stays_in_whatever_order_they_come_and_one_without_a_number_is_the_oldest(
    lake: DeltaLake,
) -> None:
    ends = "SELECT to_offset FROM gaps_current"
    followed = cache(lake, gaps=Wanted(current=frozenset({"to_offset"})))
    for number, (end, newest) in enumerate([(None, None), (9, 9), (None, 9), (7, 9), (12, 12)]):
        named = {"cluster": "c", "kind": "log", "topic": "t", "partition": 0, "from_offset": 5, "to_offset": end}
        lake.append("gaps", [[named.get(column.name) for column in table_named("gaps").columns]], "query", number)
        followed.update()
        assert followed.rows(ends) == LakeReader(lake.root).rows(ends) == [{"to_offset": newest}]


def test_of_a_file_of_many_hours_only_the_rows_that_are_needed_are_held(lake: DeltaLake) -> None:
    day = [health("a", number, hour=number) for number in range(24)]
    lake.append("group_health", day, "query", 0)
    followed = begun(lake, group_health=Wanted(HEALTH.current, HEALTH.past, HEALTH.reach, span=timedelta(hours=2.5)))
    assert [row["lag_total"] for row in followed.rows(PAST)] == [21, 22, 23]
    assert [row["verdict"] for row in followed.rows(CURRENT)] == ["v23"]


def test_a_cluster_that_was_silent_for_hours_stays_where_its_rows_share_a_file_with_another(lake: DeltaLake) -> None:
    rows = [health("a", 1, hour=1), *(health("b", number, cluster="d", hour=number) for number in range(24))]
    lake.append("group_health", rows, "query", 0)
    followed = begun(lake, past=timedelta(hours=2))
    assert [(row["cluster"], row["verdict"]) for row in followed.rows(CURRENT)] == [("c", "v1"), ("d", "v23")]


@pytest.mark.nightly
def test_large_files_are_read_and_sorted_in_pieces_and_give_the_same_rows(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streaming.tables.cache._PIECE_ROWS", 7)
    monkeypatch.setattr("streaming.tables.cache._MOST_ROWS", 20)
    monkeypatch.setattr("streaming.tables.held._SORTED_AT_ONCE", 5)
    groups = [f"g{number}" for number in range(12)]
    for round_ in range(1, 6):
        lake.append("group_health", [health(group, round_) for group in groups], "query", round_)
    table = DeltaTable(lake.path("group_health"))
    table.optimize.compact(writer_properties=WriterProperties(max_row_group_size=6))
    lake.append("group_health", [health("g3", 6), health("new", 6)], "query", 6)
    followed = begun(lake)
    whole = LakeReader(lake.root)
    for sql in (CURRENT, PAST):
        assert followed.rows(sql) == whole.rows(sql)
    followed.tidy()
    for sql in (CURRENT, PAST):
        assert followed.rows(sql) == whole.rows(sql)
    laid_out = [tuple(row.values()) for row in followed.rows("SELECT number, round_time FROM past_group_health")]
    assert len(laid_out) == 62
    assert laid_out == sorted(laid_out)


def test_a_question_that_is_being_answered_does_not_stop_a_reading(lake: DeltaLake) -> None:
    lake.append("group_health", [health("a", 1)], "query", 1)
    followed = begun(lake)
    reader = followed._connection.cursor()
    reader.begin()
    reader.execute("SELECT count(*) FROM past_group_health").fetchall()
    lake.append("group_health", [health("a", 2)], "query", 2)
    assert followed.update() is True
    followed.tidy()
    assert len(followed.rows(PAST)) == 2
    reader.rollback()
