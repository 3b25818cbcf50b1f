"""`evenkeel export`: boards for Grafana and Databricks, which are files of `exported/` (docs/metrics.md).

A file is what its tool stores, so that a board can be edited there and saved here. In `tables.json` the data source is
Databricks, and the constant `schema` says where the tables are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal

from streaming.config import Thresholds
from streaming.exceptions import SetupError

_FOLDER: Final = Path(__file__).parent / "exported"

# Names of catalogs and schemas stand in the queries as they are.
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# What another engine has in place of the text of `tables.json`: the board's id, the plugin's, and the beginning of the
# chosen time, which Grafana gives in ms since the epoch.
_ENGINES: Final = {
    "databricks": {},
    "duckdb": {
        "evenkeel-databricks": "evenkeel-duckdb",
        "grafana-databricks-datasource": "motherduck-duckdb-datasource",
        "timestamp_millis(${__from})": "to_timestamp(${__from} / 1000.0)",
    },
}


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
        SetupError: There is no such board, a name is none, or the alert rules cannot be read.
    """
    for name in (catalog, schema):
        if name is not None and not _NAME.fullmatch(name):
            message = f"{name!r} is not a name of a catalog or schema: use letters, digits and _."
            raise SetupError(message)
    if about == "itself" and (tool, source) != ("grafana", "prometheus"):
        message = "The board on Evenkeel itself is made for Grafana over Prometheus: leave out --source."
        raise SetupError(message)
    if tool == "databricks":
        where = f'"schema": "{schema}"'
        if catalog:
            where = f'"catalog": "{catalog}",\n      {where}'
        return _with("tables.lvdash.json", {'"schema": "evenkeel"': where}, rules)
    if source == "prometheus":
        return _text(f"prometheus-{about}.json")
    where = f"{catalog}.{schema}" if catalog else schema
    return _with("tables.json", {'"query": "evenkeel"': f'"query": "{where}"', **_ENGINES[source]}, rules)


def _text(file: str) -> str:
    return (_FOLDER / file).read_text(encoding="utf-8")


def _with(file: str, changes: dict[str, str], rules: Path | None) -> str:
    """A board over the tables with another text in some places, and with the alert rules' thresholds."""
    bounds = Thresholds.load(rules)
    silent_after = f"greatest({bounds.silent_at_least_s * 1000:.0f}, {bounds.silent_intervals:g} * "
    changes |= {
        "greatest(20000, 3 * ": silent_after,
        "avoidable > 0.5 ": f"avoidable > {bounds.imbalance:g} ",
    }
    text = _text(file)
    for shipped, wanted in changes.items():
        text = text.replace(shipped, wanted)
    return text
