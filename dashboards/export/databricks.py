"""The board over the tables as a dashboard of Databricks (`.lvdash.json`).

There is no published schema of these files: the shape is that of dashboards in databricks/bundle-examples and
databrickslabs/dqx. The queries' parameters stay parameters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from dashboards.export.board import Form, PanelKind, form_of
from dashboards.export.tables import SECTIONS, SqlPanel, Values, clusters, groups
from streaming.config import Thresholds

_WIDTH: Final = 6
_HEIGHT: Final = 6

_SHOWN: Final = {
    Form.TEXT: ("string", "string"),
    Form.NUMBER: ("integer", "number"),
    Form.SECONDS: ("float", "number"),
    Form.TIME: ("datetime", "datetime"),
    Form.AGO: ("datetime", "datetime"),
}

_CLUSTER: Final = "cluster"
_GROUP: Final = "group_id"
_TIME: Final = "time_range"


def databricks_json(catalog: str | None, schema: str, thresholds: Thresholds) -> str:
    """The dashboard as a file; the same arguments always give the same text.

    Args:
        catalog: Catalog of the tables; None leaves it to the workspace.
        schema: Their schema.
        thresholds: Those of the alert rules.
    """
    values = Values(cluster=f":{_CLUSTER}", group=f":{_GROUP}", since=f":{_TIME}.min", schema="", thresholds=thresholds)
    where = {"schema": schema} if catalog is None else {"catalog": catalog, "schema": schema}
    datasets = [
        _dataset("clusters", "clusters", clusters(values), where),
        _dataset("group-ids", "groups of the cluster", groups(values), where),
    ]
    datasets += [
        _dataset(panel.query, panel.question, panel.sql(values), where)
        for panels in SECTIONS.values()
        for panel in panels
    ]
    pages = [
        {
            "name": f"page-{number}",
            "displayName": title,
            "pageType": "PAGE_TYPE_CANVAS",
            "layout": [
                {"position": _position(row * _HEIGHT), "widget": _widget(panel)} for row, panel in enumerate(panels)
            ],
        }
        for number, (title, panels) in enumerate(SECTIONS.items(), start=1)
    ]
    filters = {
        "name": "filters",
        "displayName": "Filters",
        "pageType": "PAGE_TYPE_GLOBAL_FILTERS",
        "layout": list(_filters(datasets)),
    }
    board = {"datasets": datasets, "pages": [*pages, filters]}
    return json.dumps(board, indent=2) + "\n"


def _dataset(name: str, told: str, sql: str, where: dict[str, str]) -> dict[str, Any]:
    parameters = []
    if f":{_CLUSTER}" in sql:
        parameters.append(_text_parameter(_CLUSTER))
    if f":{_GROUP}" in sql:
        parameters.append(_text_parameter(_GROUP))
    if f":{_TIME}.min" in sql:
        chosen = {"dataType": "DATETIME", "min": {"value": "now-24h/h"}, "max": {"value": "now/h"}}
        parameters.append(
            {"displayName": _TIME, "keyword": _TIME, "dataType": "DATETIME", "complexType": "RANGE",
             "defaultSelection": {"range": chosen}}
        )  # fmt: skip
    found = {"name": name, "displayName": told, "queryLines": sql.splitlines(keepends=True), **where}
    if parameters:
        return {**found, "parameters": parameters}
    return found


def _text_parameter(name: str) -> dict[str, Any]:
    # There is no default that could be right: until one is chosen, the panels are empty.
    chosen = {"values": {"dataType": "STRING", "values": [{"value": ""}]}}
    return {"displayName": name, "keyword": name, "dataType": "STRING", "defaultSelection": chosen}


def _position(y: int, *, x: int = 0, width: int = _WIDTH, height: int = _HEIGHT) -> dict[str, int]:
    return {"x": x, "y": y, "width": width, "height": height}


def _widget(panel: SqlPanel) -> dict[str, Any]:
    fields = [{"name": name, "expression": f"`{name}`"} for name in panel.columns]
    query = {"datasetName": panel.query, "fields": fields, "disaggregated": True}
    frame = {"showTitle": True, "title": panel.title, "showDescription": True, "description": panel.question}
    spec = _lines(panel) if panel.kind is PanelKind.LINES else _table(panel)
    return {
        "name": f"panel-{panel.query}",
        "queries": [{"name": "main_query", "query": query}],
        "spec": {**spec, "frame": frame},
    }


def _lines(panel: SqlPanel) -> dict[str, Any]:
    x, *lines = panel.columns
    return {
        "version": 3,
        "widgetType": "line",
        "encodings": {
            "x": {"fieldName": x, "displayName": panel.columns[x], "scale": {"type": "temporal"}},
            "y": {
                "fields": [{"fieldName": name, "displayName": panel.columns[name]} for name in lines],
                "scale": {"type": "quantitative"},
            },
        },
    }


def _table(panel: SqlPanel) -> dict[str, Any]:
    columns = [_column(name, title, order) for order, (name, title) in enumerate(panel.columns.items())]
    return {"version": 1, "widgetType": "table", "encodings": {"columns": columns}}


def _column(name: str, title: str, order: int) -> dict[str, Any]:
    kind, shown = _SHOWN[form_of(name)]
    return {
        "fieldName": name,
        "displayName": title,
        "title": title,
        "type": kind,
        "displayAs": shown,
        "visible": True,
        "order": 100_000 + order,
        # Names are anybody's text.
        "allowHTML": False,
        "highlightLinks": False,
    }


def _filters(datasets: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Global filters, which set one parameter in every dataset that has it."""
    kinds = (
        (_CLUSTER, "Cluster", "filter-single-select", ("clusters", "cluster")),
        (_GROUP, "Group", "filter-single-select", ("group-ids", "group_id")),
        (_TIME, "Time", "filter-date-range-picker", None),
    )
    for row, (name, title, widget, choices) in enumerate(kinds):
        queries = []
        fields = []
        if choices is not None:
            dataset, column = choices
            asked = [
                {"name": column, "expression": f"`{column}`"},
                {"name": f"{column}_associativity", "expression": "COUNT_IF(`associative_filter_predicate_group`)"},
            ]
            queries.append(
                {"name": f"choices_{name}", "query": {"datasetName": dataset, "fields": asked, "disaggregated": False}}
            )
            fields.append({"fieldName": column, "displayName": title, "queryName": f"choices_{name}"})
        for one in datasets:
            if any(parameter["keyword"] == name for parameter in one.get("parameters", ())):
                query = f"parameter_{one['name']}_{name}"
                set_here = [{"name": name, "keyword": name}]
                queries.append(
                    {
                        "name": query,
                        "query": {"datasetName": one["name"], "parameters": set_here, "disaggregated": False},
                    }
                )
                fields.append({"parameterName": name, "queryName": query})
        spec = {
            "version": 2,
            "widgetType": widget,
            "encodings": {"fields": fields},
            "frame": {"showTitle": True, "title": title},
        }
        position = _position(0, x=2 * row, width=2, height=1)
        yield {"position": position, "widget": {"name": f"filter-{name}", "queries": queries, "spec": spec}}
