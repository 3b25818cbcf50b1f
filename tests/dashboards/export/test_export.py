"""Boards for other tools: of their own schemas, stable, the page's rows, and never the past as the present."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from typer.testing import CliRunner

from dashboards.export import export
from dashboards.export.tables import SECTIONS, SqlPanel, Values
from dashboards.query import queries
from streaming.cli import app
from streaming.config import Thresholds
from streaming.exceptions import SetupError
from streaming.tables import LakeReader
from tests.dashboards.export.interpolate import interpolated
from tests.dashboards.made_lake import CLUSTER, HOSTILE, MadeGroup, MadeLake, stories
from tests.examples import by_day

SOURCES = ("prometheus", "databricks", "duckdb")


def board(source: Any) -> dict[str, Any]:
    return json.loads(export("grafana", source))


def panels(source: str) -> list[dict[str, Any]]:
    return [panel for panel in board(source)["panels"] if panel["type"] != "row"]


@pytest.mark.parametrize("source", SOURCES)
def test_grafanas_own_types_read_the_board_and_write_it_again(source: Any) -> None:
    given = board(source)
    # It has no type for queries in SQL.
    if source != "prometheus":
        for panel in given["panels"]:
            panel.pop("targets", None)
    again = json.loads(json.dumps(Dashboard.from_json(given), cls=JSONEncoder))
    assert again == given


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


@pytest.mark.parametrize("source", ["databricks", "duckdb"])
def test_names_reach_the_sql_without_quotes_or_backslashes(source: str) -> None:
    asked = [target["rawSql"] for panel in panels(source) for target in panel["targets"]]
    asked += [variable["query"] for variable in board(source)["templating"]["list"][1:]]
    used = {found for text in asked for found in re.findall(r"\$\S*?[})]", text)}
    assert used == {"${cluster:percentencode}", "${group:percentencode}", "${__from}"}


def test_tables_are_looked_up_in_the_schema_that_was_named() -> None:
    found = export("grafana", "databricks", "main", "kafka")
    assert "FROM main.kafka.group_health_current" in found
    assert "FROM main.kafka.rounds_current AS fresh" in found
    assert not re.search(r"(FROM|JOIN) (rounds|group_health|lag|drift|members|alerts)_current", found)


@pytest.mark.parametrize("name", ["a.b", "x; DROP", "", "`a`"])
def test_a_schema_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(SetupError, match="is not a name of a catalog or schema"):
        export("grafana", "duckdb", schema=name)


def test_without_grafanas_types_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("grafana_foundation_sdk", "dashboards.export.graf"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "grafana_foundation_sdk", None)
    with pytest.raises(SetupError, match=r"^Boards for Grafana need .*: install evenkeel\[export\]\.$"):
        export("grafana")
    assert export("databricks")


def test_the_board_on_evenkeel_itself_is_another_one_over_prometheus_alone() -> None:
    itself = json.loads(export("grafana", about="itself"))
    assert json.loads(json.dumps(Dashboard.from_json(itself), cls=JSONEncoder)) == itself
    assert itself["uid"] != board("prometheus")["uid"]
    shown = [panel for panel in itself["panels"] if panel["type"] != "row"]
    assert all(panel["description"].endswith(".") for panel in shown)
    assert not any("$cluster" in target["expr"] for panel in shown for target in panel["targets"])
    for given in (("databricks", "prometheus"), ("grafana", "duckdb")):
        with pytest.raises(SetupError, match=r"is made for Grafana over Prometheus: leave out --source\.$"):
            export(*given, about="itself")  # type: ignore[arg-type]


PANELS = [panel for panels in SECTIONS.values() for panel in panels]
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
    board = json.loads(export("grafana", "duckdb"))
    texts = [target["rawSql"] for panel in board["panels"] for target in panel.get("targets", ())]
    for panel, text in zip(PANELS, texts, strict=True):
        yield panel, interpolated(text, CLUSTER, group, datetime.now(UTC) - timedelta(hours=24))


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
        assert found == rows_of_the_page(lake, panel, group), panel.title
        assert found, panel.title
        assert panel.columns.keys() <= found[0].keys()


def test_what_is_chosen_from_is_what_is_there(lake: LakeReader) -> None:
    _, cluster, group = json.loads(export("grafana", "duckdb"))["templating"]["list"]
    assert lake.rows(interpolated(cluster["query"])) == [{"cluster": CLUSTER}]
    ids = [row["group_id"] for row in lake.rows(interpolated(group["query"], CLUSTER))]
    assert {"payments-audit", *HOSTILE, "back\\slash\\"} <= set(ids)
    assert ids == sorted(ids)


def test_panels_of_the_present_are_empty_while_no_round_comes(old: LakeReader) -> None:
    for panel, text in asked_by_grafana("payments-audit"):
        assert bool(old.rows(text)) is not panel.present, panel.title


def test_every_panel_of_a_state_is_one_of_the_present() -> None:
    # What says when, or counts over the whole past, is none.
    assert {panel.query for panel in PANELS if not panel.present} == {"rounds", "lag", "rebalances", "unseen"}


def test_the_bounds_of_silence_and_imbalance_are_those_of_the_alert_rules() -> None:
    values = Values(
        ":cluster", ":group", ":since", "", Thresholds(imbalance=0.25, silent_intervals=5, silent_at_least_s=90)
    )
    groups = next(panel for panel in PANELS if panel.query == "groups").sql(values)
    assert "avoidable > 0.25" in groups
    assert "greatest(90000, 5 * coalesce(fresh.interval_ms, 0))" in groups


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.query)
def test_the_text_is_the_files(panel: SqlPanel) -> None:
    values = Values(":cluster", ":group_id", ":since", "", Thresholds())
    text = replace(panel, present=False, one_group=True).sql(values)
    own = re.sub(r"^--.*\n", "", queries()[panel.query].sql, flags=re.MULTILINE).strip()
    for name, value in {"imbalance": "0.5", "step": "'minute'", "most": "100"}.items():
        own = re.sub(rf":{name}\b", value, own)
    assert text == own


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
    rules.write_text("thresholds: {silent_at_least_s: 77}\nrules: []\n")
    monkeypatch.setenv("EVENKEEL_ALERTS__RULES", str(rules))
    for arguments in (["databricks"], ["grafana", "--source", "duckdb"]):
        assert "greatest(77000, 3 * " in run(*arguments)[1]


def test_alert_rules_that_cannot_be_read_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_ALERTS__RULES", str(tmp_path / "none.yaml"))
    assert isinstance(run("databricks")[2], SetupError)
    # Metrics bring their own judgement along.
    assert run("grafana")[0] == 0


# The dashboard for Databricks: the shape of published ones, and every reference in it leads somewhere.


# Widgets with their version, and the keys of each part, as found in dashboards that were published in November 2026:
# databricks/bundle-examples (nyc_taxi_trip_analysis, "CDC Connector Monitoring") and databrickslabs/dqx.
WIDGETS = {"table": 1, "line": 3, "filter-single-select": 2, "filter-date-range-picker": 2}
DATASET = {"name", "displayName", "queryLines", "parameters", "catalog", "schema"}
PARAMETER = {"displayName", "keyword", "dataType", "complexType", "defaultSelection"}
PAGE = {"name", "displayName", "pageType", "layout"}
PAGES = {"PAGE_TYPE_CANVAS", "PAGE_TYPE_GLOBAL_FILTERS"}
COLUMN = {"fieldName", "displayName", "title", "type", "displayAs", "visible", "order", "allowHTML", "highlightLinks"}


@pytest.fixture(scope="module")
def of_databricks() -> dict[str, Any]:
    return json.loads(export("databricks", catalog="main", schema="kafka"))


@pytest.fixture(scope="module")
def widgets(of_databricks: dict[str, Any]) -> list[dict[str, Any]]:
    return [item["widget"] for page in of_databricks["pages"] for item in page["layout"]]


def test_it_has_the_shape_of_published_dashboards(of_databricks: dict[str, Any], widgets: list[dict[str, Any]]) -> None:
    assert set(of_databricks) == {"datasets", "pages"}
    for dataset in of_databricks["datasets"]:
        assert set(dataset) <= DATASET
        assert (dataset["catalog"], dataset["schema"]) == ("main", "kafka")
        assert all(set(parameter) <= PARAMETER for parameter in dataset.get("parameters", ()))
    for page in of_databricks["pages"]:
        assert set(page) == PAGE
        assert page["pageType"] in PAGES
        for item in page["layout"]:
            assert set(item) == {"position", "widget"}
            assert item["position"]["x"] + item["position"]["width"] <= 6
    for widget in widgets:
        assert set(widget) == {"name", "queries", "spec"}
        assert WIDGETS[widget["spec"]["widgetType"]] == widget["spec"]["version"]
        for column in widget["spec"]["encodings"].get("columns", ()):
            assert set(column) == COLUMN
            assert column["allowHTML"] is False


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
