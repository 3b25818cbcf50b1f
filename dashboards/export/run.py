"""`evenkeel export`: a board as text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal

from dashboards.export.databricks import databricks_json
from dashboards.export.promql import BOARD, ITSELF
from dashboards.export.tables import board
from streaming.config import Thresholds
from streaming.exceptions import SetupError

# Names of catalogs and schemas stand in the queries as they are.
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def export(
    tool: Literal["grafana", "databricks"],
    source: Literal["prometheus", "databricks", "duckdb"] = "prometheus",
    catalog: str | None = None,
    schema: str = "evenkeel",
    rules: Path | None = None,
    about: Literal["groups", "itself"] = "groups",
) -> str:
    """A board as the tool imports it; the same arguments always give the same text.

    Args:
        tool: What will show it.
        source: For Grafana: what answers its queries, Prometheus or the tables in an engine.
        catalog: Catalog of the tables; None leaves it to the engine.
        schema: Schema of the tables, as `evenkeel tables --ddl` registers them.
        rules: File of the alert rules, whose thresholds the boards over the tables have; None finds it as the alerter
            does.
        about: What the board shows: groups, or Evenkeel itself, for Grafana over Prometheus alone.

    Raises:
        SetupError: There is no such board, a name is none, Grafana's types are not installed, or the alert rules cannot
            be read.
    """
    for name in (catalog, schema):
        if name is not None and not _NAME.fullmatch(name):
            message = f"{name!r} is not a name of a catalog or schema: use letters, digits and _."
            raise SetupError(message)
    if about == "itself" and (tool, source) != ("grafana", "prometheus"):
        message = "The board on Evenkeel itself is made for Grafana over Prometheus: leave out --source."
        raise SetupError(message)
    if tool == "databricks":
        return databricks_json(catalog, schema, Thresholds.load(rules))
    try:
        from dashboards.export.grafana import grafana_json  # noqa: PLC0415 - an extra, which only this needs
    except ModuleNotFoundError as missing:
        message = f"Boards for Grafana need the package {missing.name}: install evenkeel[export]."
        raise SetupError(message) from None
    if source == "prometheus":
        return grafana_json(ITSELF if about == "itself" else BOARD)
    return grafana_json(board(source, catalog, schema, Thresholds.load(rules)))
