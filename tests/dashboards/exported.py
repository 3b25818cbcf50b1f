"""The exported board over the tables in Grafana: its panels, and what Grafana makes of a query before it sends it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote

from dashboards.export import export

Engine = Literal["databricks", "duckdb"]

_EPOCH = datetime.fromtimestamp(0, UTC)

# The files of `dashboards/queries/` that the panels show, in order.
_QUERIES = ("rounds", "alerts", "groups", "verdict", "lag", "partitions", "members", "rebalances", "unseen")


@dataclass(frozen=True)
class SqlPanel:
    query: str
    shown: dict[str, Any]

    @property
    def sql(self) -> str:
        (target,) = self.shown["targets"]
        return str(target["rawSql"])

    @property
    def columns(self) -> set[str]:
        return set(self.shown["transformations"][0]["options"]["include"]["names"])

    @property
    def present(self) -> bool:
        """Whether it has to be empty while the cluster is silent."""
        return "fresh.round_time" in self.sql

    @property
    def one_group(self) -> bool:
        return "${group:" in self.sql


def sql_panels(engine: Engine) -> list[SqlPanel]:
    panels = json.loads(export("grafana", engine))["panels"]
    shown = (panel for panel in panels if panel["type"] != "row")
    return [SqlPanel(*pair) for pair in zip(_QUERIES, shown, strict=True)]


def interpolated(text: str, cluster: str = "", group: str = "", since: datetime = _EPOCH) -> str:
    """The query with values for its variables, and without the tables' schema.

    Grafana's percent encoding is encodeURIComponent, and of !'()* as well: letters, digits and -_.~ stay.
    """
    return (
        text.replace("${cluster:percentencode}", quote(cluster, safe=""))
        .replace("${group:percentencode}", quote(group, safe=""))
        .replace("${__from}", str(int(since.timestamp() * 1000)))
        .replace("${schema:raw}.", "")
    )
