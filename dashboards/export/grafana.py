"""A board as Grafana's JSON, by Grafana's own types (its classic schema, which every release since 10 imports)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog import variants
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as models
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.export.board import HEALTH, Ask, ExportedBoard, Form, Panel, PanelKind, ValueTexts, form_of

_PROMETHEUS: Final = "prometheus"

# The viewer chooses the data source at the top of the board.
_SOURCE: Final = "datasource"

# How plugins that are built with Grafana's SQL kit (`@grafana/plugin-ui`) number the form of an answer.
_AS_TABLE: Final = 1

_UNITS: Final = {Form.NUMBER: "short", Form.SECONDS: "s", Form.TIME: "dateTimeAsLocal", Form.AGO: "dateTimeFromNow"}


class _SqlQuery(variants.Dataquery):
    """A query as those plugins store it; the SDK has no type for it."""

    def __init__(self, sql: str, ref: str, source: DataSourceRef) -> None:
        self._payload = {"rawSql": sql, "format": _AS_TABLE, "rawQuery": True, "editorMode": "code", "refId": ref,
                         "datasource": source}  # fmt: skip

    def to_json(self) -> dict[str, object]:
        """As it is stored."""
        return dict(self._payload)


class _Built(Builder[variants.Dataquery]):
    """A query that is finished already."""

    def __init__(self, query: variants.Dataquery) -> None:
        self._query = query

    def build(self) -> variants.Dataquery:
        """Give it."""
        return self._query


def grafana_json(board: ExportedBoard) -> str:
    """The board as a file that Grafana imports; the same board always gives the same text."""
    source = DataSourceRef(board.source, f"${{{_SOURCE}}}")
    builder = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(board.told)
        .tags(["evenkeel", "kafka"])
        .timezone("browser")
        .time("now-6h", "now")
        .refresh("30s")
        .editable()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable(_SOURCE).label("Data source").type(board.source))
    )
    for choice in board.choices:
        builder.with_variable(_variable(*choice, source))
    number = 0
    for title, panels in board.rows.items():
        number += 1
        builder.with_row(dashboard.Row(title).id(number))
        for panel in panels:
            number += 1
            builder.with_panel(_panel(panel, board.source, source).id(number))
    return json.dumps(builder.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


def _variable(name: str, label: str, query: str, source: DataSourceRef) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(source)
        .query(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
    )


def _panel(panel: Panel, plugin: str, source: DataSourceRef) -> Any:
    builder = _looks(panel, plugin)
    builder.title(panel.title).description(panel.told).datasource(source).span(panel.width).height(panel.height)
    builder.unit(panel.unit)
    steps = [Threshold(value=value, color=colour) for value, colour in panel.steps]
    builder.thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
    if panel.words:
        builder.mappings([_mapping(panel.words)])
    if panel.without is not None:
        builder.no_value(panel.without)
    for name, title in (panel.columns or {}).items():
        if properties := _properties(name):
            builder.override_by_name(title, properties)
    if panel.columns is not None:
        for step in _columns(panel.columns):
            builder.with_transformation(step)
    for ask, ref in zip(panel.asks, "ABCDEFGH", strict=False):
        builder.with_target(_target(ask, ref, panel.kind, plugin, source))
    return builder


def _looks(panel: Panel, plugin: str) -> Any:
    match panel.kind:
        case PanelKind.NUMBER | PanelKind.WORD:
            mode = models.BigValueTextMode.NAME if panel.kind is PanelKind.WORD else models.BigValueTextMode.AUTO
            return (
                stat.Panel()
                # `last` and not `lastNotNull`, which would look for a value further back.
                .reduce_options(common.ReduceDataOptions().calcs(["last"]).values(False))
                .graph_mode(models.BigValueGraphMode.NONE)
                .color_mode(models.BigValueColorMode.VALUE)
                .text_mode(mode)
            )
        case PanelKind.LINES:
            return (
                timeseries.Panel()
                .line_width(1)
                .fill_opacity(0)
                # Where nothing was known, there is a gap.
                .span_nulls(False)
                .line_interpolation(
                    models.LineInterpolation.LINEAR if plugin == _PROMETHEUS else models.LineInterpolation.STEP_AFTER
                )
                .show_points(models.VisibilityMode.AUTO)
                .legend(
                    common.VizLegendOptions()
                    .display_mode(models.LegendDisplayMode.LIST)
                    .placement(models.LegendPlacement.BOTTOM)
                    .show_legend(True)
                )
                .tooltip(common.VizTooltipOptions().mode(models.TooltipDisplayMode.MULTI))
                .min(0)
            )
        case PanelKind.TABLE:
            return table.Panel().show_header(True).filterable(True)


def _properties(column: str) -> list[DynamicConfigValue]:
    unit = _UNITS.get(form_of(column))
    found = [DynamicConfigValue("unit", unit)] if unit else []
    if column == "health":
        found += [
            DynamicConfigValue("mappings", [_mapping(HEALTH)]),
            DynamicConfigValue("custom.cellOptions", {"type": "color-text"}),
        ]
    return found


def _mapping(words: ValueTexts) -> ValueMap:
    return ValueMap(
        options={str(value): ValueMappingResult(text=text, color=colour) for value, (text, colour) in words.items()}
    )


def _columns(columns: Mapping[str, str]) -> Sequence[DataTransformerConfig]:
    arranged = {
        "excludeByName": {},
        "indexByName": {name: place for place, name in enumerate(columns)},
        "renameByName": dict(columns),
    }
    return (
        DataTransformerConfig(id_val="filterFieldsByName", options={"include": {"names": list(columns)}}),
        DataTransformerConfig(id_val="organize", options=arranged),
    )


def _target(ask: Ask, ref: str, kind: PanelKind, plugin: str, source: DataSourceRef) -> Builder[variants.Dataquery]:
    if plugin != _PROMETHEUS:
        return _Built(_SqlQuery(ask.text, ref, source))
    query = prometheus.Dataquery().expr(ask.text).ref_id(ref).datasource(source)
    if ask.legend:
        query.legend_format(ask.legend)
    if kind is PanelKind.LINES:
        return query.range()
    return query.instant().format(PromQueryFormat.TABLE if kind is PanelKind.TABLE else PromQueryFormat.TIME_SERIES)
