"""The panels over the tables: which SQL file each shows, and what stands in the place of its parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dashboards.export.board import GREEN, ORANGE, RED, ExportedColumn, Form, PanelKind
from dashboards.query import Query, queries
from streaming.config import Thresholds
from streaming.tables import with_parameters

_HEADER = re.compile(r"(?:--[^\n]*\n)+")
_QUESTION = re.compile(r"-- (.*)\n")
_TABLE = re.compile(r"\b(FROM|JOIN) (\w+)")

# Colours and words of the column health of groups.sql.
_HEALTH: Final = {
    3: ("critical", RED),
    2: ("warning", ORANGE),
    1: ("unknown", "purple"),
    0: ("ok", GREEN),
    -1: ("no members", "text"),
}


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
        columns: What it shows of the file's columns, in order.
        present: Whether it shows the present, so that it has to be empty while the cluster is silent.
        one_group: Whether it shows the chosen group alone.
    """

    query: str
    title: str
    kind: PanelKind
    columns: Mapping[str, ExportedColumn]
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
    return found[1] if found else query.name


def clusters(values: Values) -> str:
    """Names of the clusters."""
    known = put(queries()["rounds"], values, present=False, one_group=False)
    return f"SELECT cluster FROM (\n{known}\n) AS known"  # noqa: S608 - our text


def groups(values: Values) -> str:
    """Ids of the chosen cluster's groups."""
    known = put(queries()["groups"], values, present=False, one_group=False)
    return f"SELECT group_id FROM (\n{known}\n) AS known ORDER BY group_id"  # noqa: S608 - our text


@dataclass(frozen=True, slots=True)
class SqlSection:
    """Panels under one heading."""

    title: str
    panels: Sequence[SqlPanel]


_NUMBER: Final = Form.NUMBER

SECTIONS: Final = (
    SqlSection(
        "All groups of the cluster",
        [
            SqlPanel(
                "rounds",
                "Newest round",
                PanelKind.TABLE,
                {
                    "cluster": ExportedColumn("cluster"),
                    "round_time": ExportedColumn("newest round", Form.AGO),
                    "interval_ms": ExportedColumn("interval, ms", _NUMBER),
                    "groups": ExportedColumn("groups", _NUMBER),
                    "held_partitions": ExportedColumn("log partitions held", _NUMBER),
                },
            ),
            SqlPanel(
                "alerts",
                "Firing",
                PanelKind.TABLE,
                {
                    "severity": ExportedColumn("severity"),
                    "rule": ExportedColumn("rule"),
                    "group_id": ExportedColumn("group"),
                    "topic": ExportedColumn("topic"),
                    "since": ExportedColumn("since", Form.TIME),
                    "message": ExportedColumn("message"),
                },
                present=True,
            ),
            SqlPanel(
                "groups",
                "Groups, the worst first",
                PanelKind.TABLE,
                {
                    "health": ExportedColumn("health", _NUMBER, _HEALTH),
                    "group_id": ExportedColumn("group"),
                    "problems": ExportedColumn("because of"),
                    "verdict": ExportedColumn("verdict"),
                    "lag_total": ExportedColumn("lag", _NUMBER),
                    "lag_unknown": ExportedColumn("partitions with unknown lag", _NUMBER),
                    "time_behind_seconds_min": ExportedColumn("behind, at least", Form.SECONDS),
                    "time_behind_seconds_max": ExportedColumn("behind, at most", Form.SECONDS),
                    "members": ExportedColumn("members", _NUMBER),
                    "state": ExportedColumn("state"),
                    "round_time": ExportedColumn("as of", Form.AGO),
                },
                present=True,
            ),
        ],
    ),
    SqlSection(
        "One group",
        [
            SqlPanel(
                "verdict",
                "Newest verdict",
                PanelKind.TABLE,
                {
                    "record_time": ExportedColumn("decided", Form.TIME),
                    "strategy": ExportedColumn("strategy"),
                    "verdict": ExportedColumn("verdict"),
                    "reason": ExportedColumn("reason"),
                    "drifted_count": ExportedColumn("partitions without the expected owner", _NUMBER),
                    "matching_library": ExportedColumn("recomputed as"),
                },
                present=True,
                one_group=True,
            ),
            SqlPanel(
                "lag",
                "Lag",
                PanelKind.LINES,
                {
                    "time": ExportedColumn("time", Form.TIME),
                    "lag_total": ExportedColumn("all partitions with a known lag", _NUMBER),
                    "lag_max": ExportedColumn("worst partition", _NUMBER),
                    "unknown": ExportedColumn("partitions with unknown lag", _NUMBER),
                },
                one_group=True,
            ),
            SqlPanel(
                "partitions",
                "Partitions",
                PanelKind.TABLE,
                {
                    "topic": ExportedColumn("topic"),
                    "partition": ExportedColumn("partition", _NUMBER),
                    "lag": ExportedColumn("lag", _NUMBER),
                    "lag_status": ExportedColumn("status"),
                    "reason": ExportedColumn("unknown because of"),
                    "committed_offset": ExportedColumn("committed", _NUMBER),
                    "high_watermark": ExportedColumn("end", _NUMBER),
                    "client_id": ExportedColumn("client"),
                    "client_host": ExportedColumn("host"),
                    "round_time": ExportedColumn("as of", Form.AGO),
                },
                present=True,
                one_group=True,
            ),
            SqlPanel(
                "members",
                "Members",
                PanelKind.TABLE,
                {
                    "client_id": ExportedColumn("client"),
                    "client_host": ExportedColumn("host"),
                    "group_instance_id": ExportedColumn("instance"),
                    "partition_count": ExportedColumn("partitions", _NUMBER),
                    "record_time": ExportedColumn("since the decision of", Form.TIME),
                },
                present=True,
                one_group=True,
            ),
        ],
    ),
    SqlSection(
        "Rebalances",
        [
            SqlPanel(
                "rebalances",
                "Decisions of all groups, the newest first",
                PanelKind.TABLE,
                {
                    "record_time": ExportedColumn("when", Form.TIME),
                    "group_id": ExportedColumn("group"),
                    "kind": ExportedColumn("kind"),
                    "strategy": ExportedColumn("strategy"),
                    "members": ExportedColumn("members", _NUMBER),
                    "partitions_moved": ExportedColumn("moved", _NUMBER),
                    "partitions_moved_optimal": ExportedColumn("fewest possible", _NUMBER),
                    "unassigned_partition_seconds_min": ExportedColumn(
                        "partition-seconds without owner, at least", _NUMBER
                    ),
                    "verdict": ExportedColumn("verdict"),
                },
            )
        ],
    ),
    SqlSection(
        "Evenkeel itself",
        [
            SqlPanel(
                "unseen",
                "Records not decoded, and gaps",
                PanelKind.TABLE,
                {
                    "cluster": ExportedColumn("cluster"),
                    "kind": ExportedColumn("kind"),
                    "number": ExportedColumn("number", _NUMBER),
                },
            )
        ],
    ),
)
"""The board over the tables."""
