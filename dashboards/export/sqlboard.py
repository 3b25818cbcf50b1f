"""The board over the tables, for Grafana with a data source that runs the SQL files as they are."""

from __future__ import annotations

from typing import Final

from dashboards.export.board import Ask, Choice, ExportedBoard, Panel, PanelKind, PanelRow
from dashboards.export.sqlfiles import SECTIONS, Values, clusters, groups
from streaming.config import Thresholds

# The plugin's id, and the beginning of the chosen time (Grafana gives it in ms since the epoch), by engine.
_ENGINES: Final = {
    "databricks": ("grafana-databricks-datasource", "timestamp_millis(${__from})"),
    "duckdb": ("motherduck-duckdb-datasource", "to_timestamp(${__from} / 1000.0)"),
}


def board(engine: str, catalog: str | None, schema: str, thresholds: Thresholds) -> ExportedBoard:
    """The board for an engine: "databricks" or "duckdb"."""
    plugin, since = _ENGINES[engine]
    values = Values(
        cluster=_chosen("cluster"),
        group=_chosen("group"),
        since=since,
        schema=f"{catalog}.{schema}." if catalog else f"{schema}.",
        thresholds=thresholds,
    )
    rows = [
        PanelRow(
            f"{section.title}: $group" if all(panel.one_group for panel in section.panels) else section.title,
            [
                Panel(
                    panel.title,
                    panel.question,
                    panel.kind,
                    [Ask(panel.sql(values))],
                    columns=panel.columns,
                    width=24 if panel.query in {"groups", "rebalances", "unseen"} else 12,
                    height=10 if panel.query == "groups" else 8,
                    holds=panel.kind is PanelKind.LINES,
                    without="silent, or nothing" if panel.present else "nothing",
                )
                for panel in section.panels
            ],
        )
        for section in SECTIONS
    ]
    return ExportedBoard(
        uid=f"evenkeel-{engine}",
        title="Evenkeel (tables)",
        told="Consumer groups: who should own which partition, who does, how far behind they are. Over the Delta "
        "tables; while no round comes, panels of the present are empty.",
        source=plugin,
        choices=[Choice("cluster", "Cluster", clusters(values)), Choice("group", "Group", groups(values))],
        rows=rows,
    )


def _chosen(variable: str) -> str:
    # (Grafana puts text into the query, and group ids are anybody's. Percent-encoded they have no quote and no
    # backslash, whose meaning differs between engines.)
    return f"url_decode('${{{variable}:percentencode}}')"
