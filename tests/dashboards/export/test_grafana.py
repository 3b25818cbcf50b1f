"""Boards for Grafana: of its own schema, stable, and never the past as the present."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.export import export
from streaming.exceptions import SetupError

SOURCES = ("prometheus", "databricks", "duckdb")


def board(source: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(export("grafana", source))
    return found


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
