"""Boards for other tools: the page's rows, and never the past as the present."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashboards.export import export
from dashboards.query import queries
from streaming.cli import app
from streaming.exceptions import SetupError
from streaming.tables import ALL_TABLES, LakeReader, with_parameters
from tests.dashboards.exported import Engine, SqlPanel, interpolated, sql_panels
from tests.dashboards.made_lake import CLUSTER, HOSTILE, MadeGroup, MadeLake, stories
from tests.examples import by_day

SOURCES = ("prometheus", "databricks", "duckdb")


def board(source: Any) -> dict[str, Any]:
    return json.loads(export("grafana", source))


def panels(source: str) -> list[dict[str, Any]]:
    return [panel for panel in board(source)["panels"] if panel["type"] != "row"]


@pytest.mark.parametrize("source", SOURCES)
def test_every_panel_says_what_it_shows_and_asks_the_source_that_the_viewer_chose(source: str) -> None:
    for panel in panels(source):
        assert panel["description"].endswith((".", "?"))
        assert panel["datasource"]["uid"] == "${datasource}"
        assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])


def test_what_is_no_line_asks_for_the_present_alone() -> None:
    for panel in panels("prometheus"):
        for target in panel["targets"]:
            assert target["range"] is (panel["type"] == "timeseries")
            assert target["instant"] is (panel["type"] != "timeseries")
        if panel["type"] == "stat":
            assert panel["options"]["reduceOptions"]["calcs"] == ["last"]


def test_tables_are_looked_up_in_the_schema_that_was_named() -> None:
    _, schema, *_ = json.loads(export("grafana", "databricks", "main", "kafka"))["templating"]["list"]
    assert (schema["name"], schema["type"], schema["query"]) == ("schema", "constant", "main.kafka")
    bare = set(re.findall(r"(?:FROM|JOIN) (\w+)", export("grafana", "databricks")))
    assert bare.isdisjoint(name for table in ALL_TABLES for name in (table.name, f"{table.name}_current"))


@pytest.mark.parametrize("name", ["a.b", "x; DROP", "", "`a`"])
def test_a_schema_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(SetupError, match="is not a name of a catalog or schema"):
        export("grafana", "duckdb", schema=name)


def test_the_board_on_evenkeel_itself_is_another_one_over_prometheus_alone() -> None:
    itself = json.loads(export("grafana", about="itself"))
    assert itself["uid"] != board("prometheus")["uid"]
    shown = [panel for panel in itself["panels"] if panel["type"] != "row"]
    assert all(panel["description"].endswith(".") for panel in shown)
    assert not any("$cluster" in target["expr"] for panel in shown for target in panel["targets"])
    for given in (("databricks", "prometheus"), ("grafana", "duckdb")):
        with pytest.raises(SetupError, match=r"is made for Grafana over Prometheus: leave out --source\.$"):
            export(*given, about="itself")  # type: ignore[arg-type]


SILENT_AFTER = timedelta(seconds=30)


def made(root: Path, end: datetime) -> LakeReader:
    groups = [*stories(), *(MadeGroup(name, topics={"t": 2}) for name in (*HOSTILE, "back\\slash\\"))]
    lake = MadeLake(root, groups, end=end, rounds=3)
    ms = int(end.timestamp() * 1000)
    lake.add("alerts", {"cluster": CLUSTER, "rule": "drift", "severity": "critical", "state": "firing", "ended": False,
                        "group_id": "mailer", "entity": "1", "alert_id": "a", "decision": 1, "round": 1, "since": ms,
                        "round_time": ms, "event_date": ms // 86_400_000, "message": "it drifted"})  # fmt: skip
    lake.add("quarantine", {"cluster": CLUSTER, "topic": "t", "partition": 0, "record_offset": 7, "records": 3})
    return LakeReader(root)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> LakeReader:
    """A lake whose newest round is of now, and stays so for the test's time."""
    return made(tmp_path_factory.mktemp("tables") / "lake", datetime.now(UTC) + timedelta(minutes=30))


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> LakeReader:
    """The same, whose job has stopped for a little longer than is allowed."""
    return made(tmp_path_factory.mktemp("old") / "lake", datetime.now(UTC) - SILENT_AFTER - timedelta(seconds=1))


def asked_by_grafana(group: str) -> Iterator[tuple[SqlPanel, str]]:
    for panel in sql_panels("duckdb"):
        yield panel, interpolated(panel.sql, CLUSTER, group, datetime.now(UTC) - timedelta(hours=24))


def rows_of_the_page(lake: LakeReader, panel: SqlPanel, group: str) -> list[dict[str, Any]]:
    query = queries()[panel.query]
    values = {
        "cluster": CLUSTER, "group_id": group if panel.one_group else None, "imbalance": 0.5, "most": 100,
        "since": datetime.now(UTC) - timedelta(hours=24), "step": "minute",
    }  # fmt: skip
    return lake.rows(query.duckdb, {name: values[name] for name in query.parameters})


@pytest.mark.parametrize(
    "group",
    by_day(["payments-audit", *HOSTILE, "back\\slash\\"], ["payments-audit", HOSTILE[0]]),
    ids=lambda name: ascii(name[:12]),
)
def test_every_panel_gives_the_rows_of_the_pages_query_for_any_name(lake: LakeReader, group: str) -> None:
    for panel, text in asked_by_grafana(group):
        found = lake.rows(text)
        assert found == rows_of_the_page(lake, panel, group), panel.query
        assert found, panel.query
        assert panel.columns <= found[0].keys()


def test_what_is_chosen_from_is_what_is_there(lake: LakeReader) -> None:
    *_, cluster, group = board("duckdb")["templating"]["list"]
    assert lake.rows(interpolated(cluster["query"])) == [{"cluster": CLUSTER}]
    ids = [row["group_id"] for row in lake.rows(interpolated(group["query"], CLUSTER))]
    assert {"payments-audit", *HOSTILE, "back\\slash\\"} <= set(ids)
    assert ids == sorted(ids)


def test_panels_of_the_present_are_empty_while_no_round_comes(old: LakeReader) -> None:
    for panel, text in asked_by_grafana("payments-audit"):
        assert bool(old.rows(text)) is not panel.present, panel.query


@pytest.mark.parametrize("engine", ["databricks", "duckdb"])
def test_every_panel_of_a_state_is_one_of_the_present(engine: Engine) -> None:
    # What says when, or counts over the whole past, is none.
    past = {"rounds", "lag", "rebalances", "unseen"}
    assert {panel.query for panel in sql_panels(engine) if not panel.present} == past
    for panel in sql_panels(engine):
        without = "nothing" if panel.query in past else "silent, or nothing"
        assert panel.shown["fieldConfig"]["defaults"]["noValue"] == without


# The cluster as panels of the present have it.
NOT_SILENT = (
    "coalesce((SELECT max(fresh.cluster) FROM rounds_current AS fresh WHERE fresh.cluster = :cluster AND "
    "fresh.round_time + CAST(greatest(20000, 3 * coalesce(fresh.interval_ms, 0)) AS INT) * INTERVAL 1 MILLISECOND > "
    "now()), '')"
)


def test_databricks_asks_what_the_pages_files_say() -> None:
    _, _, *datasets = json.loads(export("databricks"))["datasets"]
    for panel, dataset in zip(sql_panels("databricks"), datasets, strict=True):
        assert dataset["name"] == panel.query
        given = {
            "cluster": NOT_SILENT if panel.present else ":cluster",
            "group_id": ":group_id" if panel.one_group else "CAST(NULL AS STRING)",
            "since": ":time_range.min", "imbalance": "0.5", "step": "'minute'", "most": "100",
        }  # fmt: skip
        own = re.sub(r"\A(--.*\n)+", "", queries()[panel.query].sql).strip()
        assert "".join(dataset["queryLines"]) == with_parameters(own, given.__getitem__)


@pytest.mark.parametrize(
    ("engine", "since"),
    [("databricks", "timestamp_millis(${__from})"), ("duckdb", "to_timestamp(${__from} / 1000.0)")],
)
def test_grafana_asks_what_databricks_does_with_names_percent_encoded(engine: Engine, since: str) -> None:
    asked = [variable["query"] for variable in board(engine)["templating"]["list"][2:]]
    asked += [panel.sql for panel in sql_panels(engine)]
    ours = {
        "${schema:raw}.": "",
        "url_decode('${cluster:percentencode}')": ":cluster",
        "url_decode('${group:percentencode}')": ":group_id",
        since: ":time_range.min",
    }
    for theirs, own in ours.items():
        asked = [text.replace(theirs, own) for text in asked]
    assert asked == ["".join(dataset["queryLines"]) for dataset in json.loads(export("databricks"))["datasets"]]


def run(*arguments: str) -> tuple[int, str, BaseException | None]:
    done = CliRunner().invoke(app, ["export", *arguments])
    return done.exit_code, done.stdout, done.exception


def test_standard_output_and_a_file_get_the_same_bytes(tmp_path: Path) -> None:
    file = tmp_path / "board.json"
    assert run("grafana", "--source", "duckdb", "-o", str(file))[:2] == (0, "")
    assert run("grafana", "--source", "duckdb")[:2] == (0, file.read_text())
    assert file.read_text() == export("grafana", "duckdb")
    assert file.read_bytes().isascii()


@pytest.mark.parametrize("where", ["missing/board.json", "."])
def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path, where: str) -> None:
    _, printed, error = run("databricks", "--output", str(tmp_path / where))
    assert printed == ""
    assert isinstance(error, SetupError)
    assert str(error).startswith(f"The board cannot be written to {tmp_path / where} (")


def test_the_bounds_are_those_of_the_settings_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("thresholds: {silent_at_least_s: 77, silent_intervals: 5.5, imbalance: 0.25}\nrules: []\n")
    monkeypatch.setenv("EVENKEEL_ALERTS__RULES", str(rules))
    for arguments in (["databricks"], ["grafana", "--source", "duckdb"]):
        text = run(*arguments)[1]
        assert set(re.findall(r"greatest\((.*?) coalesce\(fresh", text)) == {"77000, 5.5 *"}
        assert re.findall(r"avoidable > ([\d.]+) THEN", text) == ["0.25"]


def test_alert_rules_that_cannot_be_read_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_ALERTS__RULES", str(tmp_path / "none.yaml"))
    assert isinstance(run("databricks")[2], SetupError)
    # Metrics bring their own judgement along.
    assert run("grafana")[0] == 0


# The dashboard for Databricks: every reference in it leads somewhere.


@pytest.fixture(scope="module")
def of_databricks() -> dict[str, Any]:
    return json.loads(export("databricks", catalog="main", schema="kafka"))


@pytest.fixture(scope="module")
def widgets(of_databricks: dict[str, Any]) -> list[dict[str, Any]]:
    return [item["widget"] for page in of_databricks["pages"] for item in page["layout"]]


def test_both_tools_show_the_same_columns(widgets: list[dict[str, Any]]) -> None:
    shown = {widget["name"]: widget["queries"][0]["query"] for widget in widgets}
    for panel in sql_panels("databricks"):
        assert {field["name"] for field in shown[f"panel-{panel.query}"]["fields"]} == panel.columns


def test_each_dataset_reads_the_named_schema_and_no_table_takes_a_name_for_html(of_databricks: dict[str, Any]) -> None:
    assert {(dataset["catalog"], dataset["schema"]) for dataset in of_databricks["datasets"]} == {("main", "kafka")}
    assert set(re.findall(r'"allowHTML": (\w+)', export("databricks"))) == {"false"}


def test_each_filter_sets_its_parameter_in_every_dataset_that_has_it(
    of_databricks: dict[str, Any], widgets: list[dict[str, Any]]
) -> None:
    declared = {
        (parameter["keyword"], dataset["name"])
        for dataset in of_databricks["datasets"]
        for parameter in dataset.get("parameters", ())
    }
    set_by_filters = {
        (parameter["keyword"], asked["query"]["datasetName"])
        for widget in widgets
        for asked in widget["queries"]
        for parameter in asked["query"].get("parameters", ())
    }
    assert set_by_filters == declared


def test_every_field_that_is_shown_is_asked_for(of_databricks: dict[str, Any], widgets: list[dict[str, Any]]) -> None:
    datasets = {dataset["name"] for dataset in of_databricks["datasets"]}
    for widget in widgets:
        asked = {one["name"]: one["query"] for one in widget["queries"]}
        assert {query["datasetName"] for query in asked.values()} <= datasets
        encodings = widget["spec"]["encodings"]
        shown = [*encodings.get("columns", ()), *encodings.get("fields", ())]
        if "x" in encodings:
            shown += [encodings["x"], *encodings["y"]["fields"]]
        for field in shown:
            query = asked[field.get("queryName", "main_query")]
            if "fieldName" in field:
                assert field["fieldName"] in {one["name"] for one in query["fields"]}
            else:
                assert field["parameterName"] in {one["name"] for one in query["parameters"]}
