"""The SQL files: the same rows from DuckDB over the lake, from memory, and from Spark with Delta.

Spark reads the tables as a user's does: with Delta's extension and catalog, registered by the statements that `evenkeel
tables --ddl spark` prints.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dashboards.format import Clock, reasons
from dashboards.lake import PageLake
from dashboards.query import FOLDER, Query, history_queries, queries, server_queries
from streaming.catalog import statements
from streaming.groups.causes import CAUSES
from streaming.maintain import Maintainer
from streaming.tables import ALL_TABLES, VIEWS, LakeReader, table_named
from tests.dashboards.exported import interpolated, sql_panels
from tests.dashboards.made_events import add_events, add_load
from tests.dashboards.made_lake import CLUSTER, HOSTILE, MadeGroup, MadeLake, stories

# With other tests that need a Spark session in their own process.
pytestmark = [pytest.mark.xdist_group("recorded"), pytest.mark.turn(6)]

END = datetime(2026, 11, 21, 0, 20, tzinfo=UTC)
SINCE = END - timedelta(hours=24)

# A decision of those groups of `root` that decide at their first round, as all with two decisions long ago do.
DECISION = 500_000

EVERYTHING = {
    "cluster": None, "group_id": None, "topic": None, "status": None, "verdict": None, "since": SINCE, "most": 20,
    "step": "minute", "imbalance": 0.5, "text": "audit", "at": END, "decision": DECISION, "kind": None, "rule": None,
    "until": END,
    "generation": None, "minutes": 5, "hours": 4, "by": "seconds", "each": "yes",
}  # fmt: skip
ONE = EVERYTHING | {"cluster": CLUSTER, "group_id": "payments-audit"}
STRANGER = EVERYTHING | {"cluster": CLUSTER, "group_id": HOSTILE[1]}


def add_hard_to_count(lake: MadeLake, group: str) -> None:
    """What few groups have: queues of two brokers, a member that cannot be read, a decision of no known library."""
    now = int(lake.end.timestamp() * 1000)
    of_group = {"cluster": CLUSTER, "group_id": group, "event_date": now // 86_400_000}
    seen = of_group | {"round": lake.last, "round_time": now}
    decided = of_group | {"decision": lake.last * 100 + 1, "record_time": now - 1_000, "incarnation": 1}
    for broker in ("broker-a", "broker-b"):
        places = ({"topic": "queues", "broker": broker, "partition": number, "lag": number} for number in range(4))
        lake.add("lag", *(seen | {"ended": False, "subscribed": True, "lag_status": "ok"} | place for place in places))
    lake.add("members", decided | {"ended": False, "member_id": "unread", "client_id": "unread"})
    for topic, library in ((None, None), ("queues", "java:3.5")):
        lake.add("drift", seen | decided | {"topic": topic, "verdict": "identical", "matching_library": library})


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake across midnight, with a little of everything."""
    root = tmp_path_factory.mktemp("queries") / "lake"
    groups = [*stories(), *(MadeGroup(name, topics={name[:200]: 2}) for name in HOSTILE)]
    lake = MadeLake(root, groups, end=END, rounds=130)
    add_events(lake)
    # A topic that a group reads, and that the probe does not tell of.
    add_load(lake, untold=("refunds",))
    add_hard_to_count(lake, "mailer")
    # A day later all hours are closed. Nothing is joined, see `views`.
    later = int((END + timedelta(days=2)).timestamp() * 1000)
    list(Maintainer(str(root), now=lambda: later).work())
    return root


@pytest.fixture(scope="module")
def registered(spark: SparkSession, root: Path) -> SparkSession:
    """A session of a user whose current schema has the lake's tables and views."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    # For a few hundred rows most of the time would go into compiling each query.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    for statement in statements("spark", str(root), "evenkeel"):
        session.sql(statement)
    return session


@pytest.fixture(scope="module")
def reader(root: Path) -> LakeReader:
    return LakeReader(root)


@pytest.fixture(scope="module")
def memory(root: Path) -> PageLake:
    day, heartbeat, refresh = timedelta(hours=24), timedelta(minutes=10), timedelta(seconds=1)
    lake = PageLake(str(root), day, heartbeat, refresh, more=server_queries())
    lake.poll()
    while lake.read_on():
        pass
    assert lake.problem is None
    return lake


def _values(query: Query) -> list[dict[str, Any]]:
    """All groups where a query allows it, one group, and one with a hostile name."""
    if "topic" in query.parameters and "(:topic IS NULL" not in query.sql:
        return [ONE | {"topic": "payments"}]
    if "each" in query.parameters:
        return [EVERYTHING, EVERYTHING | {"each": "no"}, *([ONE] if "(:group_id IS NULL" in query.sql else [])]
    if "group_id" not in query.parameters:
        return [EVERYTHING] if "cluster" not in query.parameters or "(:cluster IS NULL" in query.sql else [ONE]
    return [EVERYTHING, ONE] if "(:group_id IS NULL" in query.sql else [ONE, STRANGER]


def _given(query: Query, values: dict[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in query.parameters}


def _plain(value: Any) -> Any:
    """Values as text, the same for both engines: times in UTC, structs as their fields."""
    if isinstance(value, datetime):
        # Spark's values have no zone and are in this machine's, as astimezone assumes.
        return value.astimezone(UTC).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if hasattr(value, "asDict"):
        value = value.asDict(recursive=False)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return round(value, 9) if isinstance(value, float) else value


def _in_spark(session: SparkSession, query: Query, given: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of a query; without the cache each would read every file of its tables again."""
    for table in {name.removesuffix("_current") for name in query.tables}:
        if not session.catalog.isCached(table):
            session.catalog.cacheTable(table)
    return [_plain(row) for row in session.sql(query.sql, args=given).collect()]


def _every() -> dict[str, Query]:
    return queries() | history_queries() | server_queries()


def _asked_of(query: Query) -> list[dict[str, Any]]:
    """The values for which a query is asked, the most telling first."""
    if query.name not in history_queries():
        return [_given(query, values) for values in _values(query)]
    # The lake covers a quarter of an hour of one day and a third of the next.
    span = {"before": SINCE - timedelta(days=1), "until": END + timedelta(days=1)}
    span["since"] = END.replace(hour=0, minute=0) if "before" in query.parameters else SINCE
    return [_given(query, {**values, **span}) for values in _values(query)]


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.parametrize("name", sorted(_every()))
def test_a_query_gives_the_same_rows_in_spark_and_in_duckdb(
    name: str, reader: LakeReader, registered: SparkSession
) -> None:
    query = _every()[name]
    given = _asked_of(query)[0]
    in_spark = _in_spark(registered, query, given)
    assert [_plain(row) for row in reader.rows(query.duckdb, given)] == in_spark
    # Every cluster of this lake has begun (`tests/serve/test_page.py` has one that has not).
    assert in_spark or name == "unstarted", "a query that finds nothing here shows nothing"


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.parametrize("name", sorted(name for name, query in _every().items() if len(_values(query)) > 1))
def test_a_query_gives_the_same_rows_in_spark_and_in_duckdb_for_one_group(
    name: str, reader: LakeReader, registered: SparkSession
) -> None:
    query = _every()[name]
    for given in _asked_of(query)[1:]:
        assert [_plain(row) for row in reader.rows(query.duckdb, given)] == _in_spark(registered, query, given)


@pytest.mark.parametrize("name", sorted({**queries(), **server_queries()}))
def test_a_query_gives_the_same_rows_from_memory_and_in_duckdb(name: str, reader: LakeReader, memory: PageLake) -> None:
    query = _every()[name]
    for given in _asked_of(query):
        from_memory = [_plain(row) for row in memory.ask(name, given)]
        assert from_memory == [_plain(row) for row in reader.rows(query.duckdb, given)]


@pytest.mark.nightly
@pytest.mark.spark
def test_spark_finds_the_columns_of_each_table_with_their_types(registered: SparkSession) -> None:
    for table in ALL_TABLES:
        columns = ", ".join(f"`{column.name}` {column.type.sql}" for column in table.columns)
        assert registered.table(table.name).schema.simpleString() == StructType.fromDDL(columns).simpleString()


@pytest.mark.nightly
@pytest.mark.spark
def test_what_no_query_reads_has_as_many_rows_in_spark_as_in_duckdb(
    registered: SparkSession, reader: LakeReader
) -> None:
    read = {name for query in _every().values() for name in query.tables}
    names = [name for name in (*(table.name for table in ALL_TABLES), *VIEWS) if name not in read]
    assert {name: registered.table(name).count() for name in names} == {name: reader.count(name) for name in names}


@pytest.mark.nightly
@pytest.mark.spark
def test_an_exported_boards_queries_give_the_same_rows_in_spark(reader: LakeReader, registered: SparkSession) -> None:
    for panel in sql_panels("databricks"):
        query = queries()[panel.query]
        for group in (ONE["group_id"], STRANGER["group_id"]):
            asked = interpolated(panel.sql, CLUSTER, group, SINCE)
            if panel.present:
                assert registered.sql(asked).collect() == [], "this lake is old"
            asked = asked.replace("now()", f"TIMESTAMP'{END:%Y-%m-%d %H:%M:%S}'")
            given = EVERYTHING | {"cluster": CLUSTER, "group_id": group if panel.one_group else None, "most": 100}
            in_duckdb = reader.rows(query.duckdb, _given(query, given))
            assert [_plain(row) for row in registered.sql(asked).collect()] == [_plain(row) for row in in_duckdb]
            assert in_duckdb, panel.query


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.sql")), ids=lambda path: path.stem)
def test_a_file_begins_with_its_question_its_parameters_and_its_columns(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    query = _every()[path.stem]
    comment = text[: re.search(r"^[^-]", text, re.MULTILINE).start()]  # type: ignore[union-attr]
    assert text.split("\n", 1)[0].endswith(("?", ".")), "the first line is a question, or says what the panel shows"
    assert "-- Parameters:" in comment
    assert "-- Columns:" in comment
    assert set(re.findall(r"^--\s+:([a-z_]+)\s+[A-Z]+\s", comment, re.MULTILINE)) == query.parameters


def test_a_query_reads_columns_that_the_tables_have_and_never_all_of_them() -> None:
    for query in (*queries().values(), *history_queries().values()):
        assert query.tables, query.name
        for name in query.tables:
            table_named(name.removesuffix("_current"))


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("cost_causes*.sql")), ids=lambda path: path.stem)
def test_every_cause_is_counted(path: Path) -> None:
    assert sorted(re.findall(r"'cause'(?: AS kind)?, '(\w+)'", path.read_text("utf-8"))) == sorted(CAUSES)


def test_the_worst_groups_come_first_and_say_why(memory: PageLake) -> None:
    groups = memory.ask("groups", {"cluster": CLUSTER, "group_id": None, "imbalance": 0.5})
    told = [(g["group_id"], g["health"], g["problems"]) for g in groups if g["health"] > 0]
    assert told == [
        ("clicks-pile-up", 3, "drifted imbalance"),
        ("payments-audit", 3, "drifted"),
        ("billing-stuck", 3, "stopped"),
        ("search-indexer", 2, "falling_behind"),
        ("signups-growing", 1, "stale_metadata"),
    ]
    clock = Clock(END)
    worst = [max(reason.health for reason in reasons(g, clock)) for g in groups if g["health"] > 0]
    assert worst == [g["health"] for g in groups if g["health"] > 0]
    assert [g["group_id"] for g in groups if g["health"] == -1] == ["orders-mirror"]


def test_drift_that_goes_on_over_decisions_began_with_the_first_of_them(tmp_path: Path) -> None:
    group = MadeGroup(
        "g", verdict="drifted", moved=(("orders", 0, 1),), drifted_since=100, decisions=(200, 100, 60, 20)
    )
    MadeLake(tmp_path, [group], end=END, rounds=240)
    rows = LakeReader(tmp_path).rows(queries()["since"].duckdb, {"since": SINCE})
    assert [row["drifted_since"] for row in rows] == [END - timedelta(seconds=100 * 10 + 1.5)]


def test_lag_of_one_status_began_when_the_status_did(tmp_path: Path) -> None:
    MadeLake(tmp_path, [MadeGroup("g", status=lambda ago: "stopped" if ago < 45 else "ok")], end=END, rounds=100)
    rows = LakeReader(tmp_path).rows(queries()["since"].duckdb, {"since": SINCE})
    assert [(row["lag_since"], row["drifted_since"]) for row in rows] == [(END - timedelta(seconds=440), None)]


def test_a_name_cannot_imitate_a_finding(tmp_path: Path) -> None:
    imitation = '{"finding":"unassigned","since":0}'
    group = MadeGroup("g", findings=(("partitions_pending_handover", f"partitions of {imitation} given up"),))
    MadeLake(tmp_path, [group], end=END)
    rows = LakeReader(tmp_path).rows(queries()["groups"].duckdb, {"cluster": None, "group_id": None, "imbalance": 0.5})
    assert [(row["health"], row["problems"]) for row in rows] == [(0, "")]


def test_an_imbalance_that_no_assignment_could_avoid_is_no_problem(tmp_path: Path) -> None:
    # Three partitions on two members: max / mean - 1 is a third for every assignment.
    MadeLake(tmp_path, [MadeGroup("g", members=("a", "b", "c", "d", "e"), topics={"t": 3})], end=END)
    rows = LakeReader(tmp_path).rows(queries()["groups"].duckdb, {"cluster": None, "group_id": None, "imbalance": 0.5})
    assert [row["problems"] for row in rows] == [""]


def _asked(root: Path, name: str, **values: Any) -> list[dict[str, Any]]:
    query = (queries() | server_queries())[name]
    return LakeReader(root).rows(query.duckdb, _given(query, EVERYTHING | values))


def test_partitions_of_a_topic_are_counted_on_each_broker_that_numbers_its_own(tmp_path: Path) -> None:
    add_hard_to_count(MadeLake(tmp_path, [MadeGroup("g", topics={"orders": 6})], end=END), "g")
    rows = {row["topic"]: row["partitions"] for row in _asked(tmp_path, "topics", topic=None)}
    assert rows == {"orders": 6, "queues": 8}


def test_members_that_own_nothing_are_not_counted_where_one_of_them_cannot_be_read(tmp_path: Path) -> None:
    idle = MadeGroup("idle", members=("a", "b", "c"), topics={"t": 2})
    lake = MadeLake(tmp_path, [idle, MadeGroup("unread"), MadeGroup("empty", members=())], end=END)
    add_hard_to_count(lake, "unread")
    rows = {row["group_id"]: row["idle_members"] for row in _asked(tmp_path, "metric_groups")}
    assert rows == {"empty": None, "idle": 1, "unread": None}


def test_a_member_with_nothing_but_a_standby_task_is_not_idle(tmp_path: Path) -> None:
    lake = MadeLake(tmp_path, [MadeGroup("g", members=("a",))], end=END)
    now = int(END.timestamp() * 1000)
    decided = {"cluster": CLUSTER, "group_id": "g", "event_date": now // 86_400_000, "decision": lake.last * 100 + 1}
    decided |= {"record_time": now - 1_000, "incarnation": 1, "ended": False, "partition_count": 0, "partitions": []}
    spare = {"member_id": "spare", "tasks": [("standby", "0", [1])]}
    lake.add("members", decided | spare, decided | {"member_id": "idle", "tasks": []}, decided | {"member_id": "bare"})
    assert [row["idle_members"] for row in _asked(tmp_path, "metric_groups")] == [2]


def test_the_library_of_an_older_decision_does_not_stand_for_the_newest_one(tmp_path: Path) -> None:
    lake = MadeLake(tmp_path, [MadeGroup("known"), MadeGroup("unknown")], end=END)
    add_hard_to_count(lake, "unknown")
    of_clients = {(row["group_id"], row["library"]) for row in _asked(tmp_path, "clients", text="") if row["leads"]}
    assert of_clients == {("known", "java:3.5"), ("unknown", None)}
    of_groups = [(row["library"], row["groups"]) for row in _asked(tmp_path, "libraries")]
    assert of_groups == [("java:3.5", 1), (None, 1)]


def test_a_pace_is_made_of_the_times_between_rounds_and_one_round_has_none(tmp_path: Path) -> None:
    lake = MadeLake(tmp_path, [MadeGroup("g")], end=END, rounds=3)
    ms = int(END.timestamp() * 1000)
    seen = {"event_date": ms // 86_400_000, "closed_time": None, "events": 4}
    lake.add("rounds", seen | {"cluster": CLUSTER, "round": lake.last + 1, "round_time": ms + 80_000})
    lake.add("rounds", seen | {"cluster": "other", "round": 1, "round_time": ms})
    rows = {row["cluster"]: row for row in _asked(tmp_path, "rounds_pace", cluster=None)}
    pace = rows[CLUSTER]
    assert (pace["rounds"], pace["step_median"], pace["step_max"]) == (4, timedelta(seconds=10), timedelta(seconds=80))
    assert (pace["closing_median"], pace["closing_max"]) == (timedelta(seconds=0.04), timedelta(seconds=0.04))
    assert (pace["log_records"], rows["other"]["rounds"], rows["other"]["step_median"]) == (300, 1, None)
    assert rows["other"]["closing_median"] is None
