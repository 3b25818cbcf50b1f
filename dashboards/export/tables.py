"""The board over the tables: which SQL file each panel shows, and what stands in the place of its parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dashboards.export.board import Ask, ExportedBoard, Panel, PanelKind
from dashboards.query import Query, queries
from streaming.config import Thresholds
from streaming.tables import with_parameters

_HEADER = re.compile(r"(?:--[^\n]*\n)+")
_QUESTION = re.compile(r"-- (.*)\n")
_TABLE = re.compile(r"\b(FROM|JOIN) (\w+)")


@dataclass(frozen=True, slots=True)
class Values:
    """What stands in the place of parameters, as SQL.

    Attributes:
        cluster: The chosen cluster.
        group: The chosen group.
        since: The beginning of the chosen time.
        schema: What stands before the tables' names, such as "evenkeel."; "" for nothing.
        thresholds: Those of the alert rules.
    """

    cluster: str
    group: str
    since: str
    schema: str
    thresholds: Thresholds

    def silent_is_nobody(self) -> str:
        """The chosen cluster, or '' while it is silent.

        The tables keep what was true when the last round came. No cluster is named '', so a panel of the present is
        empty then.
        """
        least, intervals = f"{self.thresholds.silent_at_least_s * 1000:.0f}", f"{self.thresholds.silent_intervals:g}"
        silent_after = f"CAST(greatest({least}, {intervals} * coalesce(fresh.interval_ms, 0)) AS INT)"
        newest = f"fresh.round_time + {silent_after} * INTERVAL 1 MILLISECOND"
        known = f"{self.schema}rounds_current AS fresh WHERE fresh.cluster = {self.cluster}"
        return f"coalesce((SELECT max(fresh.cluster) FROM {known} AND {newest} > now()), '')"  # noqa: S608 - our text


@dataclass(frozen=True, slots=True)
class SqlPanel:
    """A panel that shows the rows of one SQL file.

    Attributes:
        query: The file's name.
        title: Its title.
        kind: A table, or lines over the column `time`.
        columns: What it shows of the file's columns, in order, with their titles.
        present: Whether it shows the present, so that it has to be empty while the cluster is silent.
        one_group: Whether it shows the chosen group alone.
    """

    query: str
    title: str
    kind: PanelKind
    columns: Mapping[str, str]
    present: bool = False
    one_group: bool = False

    @property
    def question(self) -> str:
        """The question at the top of the file."""
        return question(queries()[self.query])

    def sql(self, values: Values) -> str:
        """The file's text without its header, with values for its parameters."""
        return put(queries()[self.query], values, present=self.present, one_group=self.one_group)


def put(query: Query, values: Values, *, present: bool, one_group: bool) -> str:
    """A file's text without its header, with values for its parameters, its tables in their schema."""
    given = {
        "cluster": values.silent_is_nobody() if present else values.cluster,
        "group_id": values.group if one_group else "CAST(NULL AS STRING)",
        "since": values.since,
        "imbalance": f"{values.thresholds.imbalance:g}",
        "step": "'minute'",
        "most": "100",
    }
    text = _HEADER.sub("", query.sql, count=1)
    named = _TABLE.sub(lambda found: f"{found[1]} {values.schema if found[2] in query.tables else ''}{found[2]}", text)
    return with_parameters(named, given.__getitem__).strip()


def question(query: Query) -> str:
    """The question at the top of a file."""
    found = _QUESTION.match(query.sql)
    if found:
        return found[1]
    return query.name


def clusters(values: Values) -> str:
    """Names of the clusters."""
    known = put(queries()["rounds"], values, present=False, one_group=False)
    return f"SELECT cluster FROM (\n{known}\n) AS known"  # noqa: S608 - our text


def groups(values: Values) -> str:
    """Ids of the chosen cluster's groups."""
    known = put(queries()["groups"], values, present=False, one_group=False)
    return f"SELECT group_id FROM (\n{known}\n) AS known ORDER BY group_id"  # noqa: S608 - our text


SECTIONS: Final[Mapping[str, Sequence[SqlPanel]]] = {
    "All groups of the cluster": [
        SqlPanel(
            "rounds",
            "Newest round",
            PanelKind.TABLE,
            {
                "cluster": "cluster",
                "round_time": "newest round",
                "interval_ms": "interval, ms",
                "groups": "groups",
                "held_partitions": "log partitions held",
            },
        ),
        SqlPanel(
            "alerts",
            "Firing",
            PanelKind.TABLE,
            {
                "severity": "severity",
                "rule": "rule",
                "group_id": "group",
                "topic": "topic",
                "since": "since",
                "message": "message",
            },
            present=True,
        ),
        SqlPanel(
            "groups",
            "Groups, the worst first",
            PanelKind.TABLE,
            {
                "health": "health",
                "group_id": "group",
                "problems": "because of",
                "verdict": "verdict",
                "lag_total": "lag",
                "lag_unknown": "partitions with unknown lag",
                "time_behind_seconds_min": "behind, at least",
                "time_behind_seconds_max": "behind, at most",
                "members": "members",
                "state": "state",
                "round_time": "as of",
            },
            present=True,
        ),
    ],
    "One group": [
        SqlPanel(
            "verdict",
            "Newest verdict",
            PanelKind.TABLE,
            {
                "record_time": "decided",
                "strategy": "strategy",
                "verdict": "verdict",
                "reason": "reason",
                "drifted_count": "partitions without the expected owner",
                "matching_library": "recomputed as",
            },
            present=True,
            one_group=True,
        ),
        SqlPanel(
            "lag",
            "Lag",
            PanelKind.LINES,
            {
                "time": "time",
                "lag_total": "all partitions with a known lag",
                "lag_max": "worst partition",
                "unknown": "partitions with unknown lag",
            },
            one_group=True,
        ),
        SqlPanel(
            "partitions",
            "Partitions",
            PanelKind.TABLE,
            {
                "topic": "topic",
                "partition": "partition",
                "lag": "lag",
                "lag_status": "status",
                "reason": "unknown because of",
                "committed_offset": "committed",
                "high_watermark": "end",
                "client_id": "client",
                "client_host": "host",
                "round_time": "as of",
            },
            present=True,
            one_group=True,
        ),
        SqlPanel(
            "members",
            "Members",
            PanelKind.TABLE,
            {
                "client_id": "client",
                "client_host": "host",
                "group_instance_id": "instance",
                "partition_count": "partitions",
                "record_time": "since the decision of",
            },
            present=True,
            one_group=True,
        ),
    ],
    "Rebalances": [
        SqlPanel(
            "rebalances",
            "Decisions of all groups, the newest first",
            PanelKind.TABLE,
            {
                "record_time": "when",
                "group_id": "group",
                "kind": "kind",
                "strategy": "strategy",
                "members": "members",
                "partitions_moved": "moved",
                "partitions_moved_optimal": "fewest possible",
                "unassigned_partition_seconds_min": "partition-seconds without owner, at least",
                "verdict": "verdict",
            },
        )
    ],
    "Evenkeel itself": [
        SqlPanel(
            "unseen",
            "Records not decoded, and gaps",
            PanelKind.TABLE,
            {
                "cluster": "cluster",
                "kind": "kind",
                "number": "number",
            },
        )
    ],
}
"""The board over the tables: panels by their headings."""

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
    rows = {
        f"{title}: $group" if all(panel.one_group for panel in panels) else title: [
            Panel(
                panel.title,
                panel.question,
                panel.kind,
                [Ask(panel.sql(values))],
                columns=panel.columns,
                width=24 if panel.query in {"groups", "rebalances", "unseen"} else 12,
                height=10 if panel.query == "groups" else 8,
                without="silent, or nothing" if panel.present else "nothing",
            )
            for panel in panels
        ]
        for title, panels in SECTIONS.items()
    }
    return ExportedBoard(
        uid=f"evenkeel-{engine}",
        title="Evenkeel (tables)",
        told="Consumer groups: who should own which partition, who does, how far behind they are. Over the Delta "
        "tables; while no round comes, panels of the present are empty.",
        source=plugin,
        choices=[("cluster", "Cluster", clusters(values)), ("group", "Group", groups(values))],
        rows=rows,
    )


def _chosen(variable: str) -> str:
    # Grafana puts text into the query, and group ids are anybody's. Percent-encoded they have no quote and no
    # backslash, whose meaning differs between engines.
    return f"url_decode('${{{variable}:percentencode}}')"
