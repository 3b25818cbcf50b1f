"""`evenkeel export` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashboards.export import export
from streaming.cli import app
from streaming.exceptions import SetupError


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
def board() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(export("databricks", catalog="main", schema="kafka"))
    return found


@pytest.fixture(scope="module")
def widgets(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [item["widget"] for page in board["pages"] for item in page["layout"]]


def test_it_has_the_shape_of_published_dashboards(board: dict[str, Any], widgets: list[dict[str, Any]]) -> None:
    assert set(board) == {"datasets", "pages"}
    for dataset in board["datasets"]:
        assert set(dataset) <= DATASET
        assert (dataset["catalog"], dataset["schema"]) == ("main", "kafka")
        assert all(set(parameter) <= PARAMETER for parameter in dataset.get("parameters", ()))
    for page in board["pages"]:
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
    board: dict[str, Any], widgets: list[dict[str, Any]]
) -> None:
    declared = {
        (parameter["keyword"], dataset["name"])
        for dataset in board["datasets"]
        for parameter in dataset.get("parameters", ())
    }
    set_by_filters = {
        (parameter["keyword"], asked["query"]["datasetName"])
        for widget in widgets
        for asked in widget["queries"]
        for parameter in asked["query"].get("parameters", ())
    }
    assert set_by_filters == declared


def test_every_field_that_is_shown_is_asked_for(board: dict[str, Any], widgets: list[dict[str, Any]]) -> None:
    datasets = {dataset["name"] for dataset in board["datasets"]}
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
