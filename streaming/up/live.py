"""The tables in a terminal, live and as a summary: groups, verdicts, lag, rebalances; read from the lake.

Text that a record or a broker has written has one way to a terminal, `cell` and `lines`: escaped, without markup,
shortened.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from streaming.config import Thresholds
from streaming.tables import TABLES, LakeReader, TableCache, Wanted, reach_of_living
from streaming.terminal import age, counted, printable

# Colours that a colour-blind person can distinguish, each with a sign, so that colour is never the only mark.
_VERDICTS = {
    "identical": ("=", "cyan"),
    "drifted": ("!", "bold red"),
    "unverified": ("~", "yellow"),
    "not_applicable": ("-", "dim"),
    "pending": ("…", "dim"),
}
_BAD_LAG = {"stopped", "stalled", "falling_behind", "rewound", "ahead"}

_HEALTH = (
    "group_id", "state", "strategy", "members", "generation", "verdict", "lag_total", "lag_status", "imbalance",
    "imbalance_optimal", "findings",
)  # fmt: skip
_GROUPS = f"""
SELECT {", ".join(_HEALTH)}
FROM group_health_current WHERE cluster = $cluster
ORDER BY (verdict <> 'drifted'), (lag_status IN ('ok', 'no_commit')), group_id LIMIT $most
"""  # noqa: S608
_DECIDED = (
    "record_time", "group_id", "kind", "generation", "joined", "left", "partitions_moved", "partitions_moved_optimal",
    "unassigned_partition_seconds_max",
)  # fmt: skip
_CHURN = """
SELECT record_time, group_id, kind, generation, len(joined) AS joined, len("left") AS gone, partitions_moved,
       partitions_moved_optimal, unassigned_partition_seconds_max AS cost
FROM rebalance_churn_current WHERE cluster = $cluster ORDER BY record_time DESC LIMIT $most
"""
_ALL_GROUPS = """
WITH churn AS (
  SELECT cluster, group_id, count(*) FILTER (WHERE kind = 'rebalance') AS rebalances,
         count(*) FILTER (WHERE kind = 'static_replacement') AS replaced, sum(partitions_moved) AS partitions_moved
  FROM rebalance_churn_current GROUP BY ALL
), verdicts AS (
  SELECT cluster, group_id, string_agg(verdict || ' ' || n, ', ' ORDER BY verdict) AS verdicts
  FROM (SELECT cluster, group_id, verdict, count(*) AS n FROM drift GROUP BY ALL) GROUP BY ALL
)
SELECT h.group_id, h.state, h.ended, h.verdict, verdicts, rebalances, replaced, partitions_moved, h.lag_total,
       h.lag_status
FROM (
  SELECT *, row_number() OVER (PARTITION BY cluster, group_id ORDER BY round DESC) AS age
  FROM group_health
) AS h
LEFT JOIN churn USING (cluster, group_id) LEFT JOIN verdicts USING (cluster, group_id)
WHERE age = 1 ORDER BY h.group_id
"""
# Each cluster numbers its rounds by itself: the highest number of a lake says nothing of the others.
_NEWEST = """
SELECT max(round) AS round, arg_max(round_time, round) AS newest, arg_max(interval_ms, round) AS interval_ms,
       (SELECT count(*) FROM group_health_current WHERE cluster = $cluster) AS groups
FROM rounds_current WHERE cluster = $cluster
"""

# Decisions older than this are not on the live view; the page and SQL have them.
_DECISIONS = timedelta(days=1)


def live_rows(lake: str, heartbeat: timedelta) -> TableCache:
    """The rows that the live view shows, read once and then from new files alone, however large the lake is.

    Args:
        lake: Folder or URI.
        heartbeat: How often the job repeats rows that do not change (`job.heartbeat_ms`).
    """
    wanted = {
        "group_health": Wanted(frozenset(_HEALTH), reach=reach_of_living(heartbeat)),
        "rebalance_churn": Wanted(frozenset(_DECIDED), reach=_DECISIONS),
        "rounds": Wanted(frozenset({"round", "round_time", "interval_ms"}), reach=timedelta(minutes=1)),
    }
    return TableCache(lake, wanted, past=timedelta(0))


_WIDTH = 48
"""Enough for the names that people give; in a longer one both ends are more useful than the middle."""

_READ = 500
"""Characters read of a longer value: a name may have 32,000."""

_LINE = 1_000
"""Characters of a line outside a table: longer ones would push the tables off the screen."""


class Quiet:
    """How long ago the last new round was seen, by steady time, because clocks can be wrong."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady = steady
        self._seen: tuple[int | None, float] = (None, steady())

    def saw(self, number: int | None) -> float:
        """Take the newest round's number; returns the seconds since it was new."""
        if number != self._seen[0]:
            self._seen = (number, self._steady())
        return self._steady() - self._seen[1]


def render(
    reader: TableCache | LakeReader,
    cluster: str,
    height: int,
    notice: str = "",
    thresholds: Thresholds | None = None,
    quiet: Quiet | None = None,
) -> RenderableType:
    """Draw what the tables say now of one cluster.

    Args:
        reader: The lake, or what `live_rows` has of it; other clusters may share it.
        cluster: The cluster, by its name in the tables.
        height: Lines at the most.
        notice: The caller's lines, shown below the head.
        thresholds: Limits of the alert rules, used for colours; None for the defaults.
        quiet: The same object at each refresh; without it no silence is shown.
    """
    bounds = thresholds or Thresholds()
    rebalances = 6
    fixed = 2 + 4 + rebalances + 5 + (notice.count("\n") + 1 if notice else 0)
    of_cluster = {"cluster": cluster}
    newest = reader.rows(_NEWEST, of_cluster)[0]
    if newest["round"] is None:
        waiting = "waiting for the first round: the probe and Spark need about half a minute …"
        return lines(f"{waiting}\n{notice}")
    groups = reader.rows(_GROUPS, {**of_cluster, "most": max(5, height - fixed)})
    total = newest["groups"]
    at = newest["newest"]
    ago = "of unknown age" if at is None else f"{age(datetime.now(UTC) - at)} ago"
    head = Text(f"newest round {ago}, {counted(total, 'group')}", style="bold")
    quiet_s = quiet.saw(newest["round"]) if quiet is not None else 0.0
    if quiet_s > bounds.silent_after_s(newest["interval_ms"]):
        head.append(f"\nno new round for {quiet_s:.0f} s: check that probe and job are running", style="bold red")
    if total > len(groups):
        head.append(f" ({len(groups)} shown)", style="dim")
    if notice:
        head.append("\n").append(lines(notice, style="yellow not bold"))
    decisions = reader.rows(_CHURN, {**of_cluster, "most": rebalances})
    return Group(head, _groups_table(groups, bounds.imbalance), _churn_table(decisions))


def _groups_table(groups: list[dict[str, Any]], bound: float) -> Table:
    table = Table(expand=True, box=None, pad_edge=False, header_style="bold")
    for name, options in (
        ("group", {"no_wrap": True, "ratio": 3}),
        ("state", {"no_wrap": True}),
        ("strategy", {"no_wrap": True}),
        ("members", {"justify": "right"}),
        ("gen", {"justify": "right"}),
        ("verdict", {"no_wrap": True}),
        ("lag", {"justify": "right"}),
        ("imbalance", {"justify": "right"}),
        ("findings", {"no_wrap": True, "ratio": 2}),
    ):
        table.add_column(name, **options)
    for group in groups:
        sign, style = _VERDICTS.get(group["verdict"], ("?", ""))
        lag = cell(group["lag_total"], ",")
        if group["lag_status"] in _BAD_LAG:
            lag = Text(f"{lag.plain} {group['lag_status']}", style="bold magenta")
        table.add_row(
            cell(group["group_id"]),
            cell(group["state"]),
            cell(group["strategy"] or None),
            cell(group["members"]),
            cell(group["generation"]),
            Text(f"{sign} ", style=style).append(cell(group["verdict"])),
            lag,
            _imbalance(group["imbalance"], group["imbalance_optimal"], bound),
            cell(", ".join(str(f["finding"]) for f in group["findings"] or ())),
        )
    return table


def _churn_table(decisions: list[dict[str, Any]]) -> Table:
    table = Table(expand=True, box=None, pad_edge=False, header_style="bold", title_justify="left")
    for name in ("last decisions", "group", "kind"):
        table.add_column(name, no_wrap=True, ratio=3 if name == "group" else None)
    for name in ("gen", "joined", "left", "moves (least)", "unassigned ≤ s"):
        table.add_column(name, justify="right")
    for row in decisions:
        moves = cell(row["partitions_moved"])
        if row["partitions_moved_optimal"] is not None:
            moves.append(" (").append(cell(row["partitions_moved_optimal"])).append(")")
        table.add_row(
            cell(row["record_time"], "%H:%M:%S"),
            cell(row["group_id"]),
            cell(row["kind"]),
            cell(row["generation"]),
            cell(row["joined"]),
            cell(row["gone"]),
            moves,
            cell(row["cost"], ",.1f"),
        )
    return table


def _imbalance(value: float | None, least: float | None, bound: float) -> Text:
    if value is None:
        return Text("-", style="dim")
    # Three partitions on two members are uneven, but no assignment is more even: only the difference is remarkable, if
    # it is known (as in groups.sql and in the rule).
    return Text(f"{value:.2f}", style="bold red" if least is not None and value - least > bound else "")


def print_summary(console: Console, reader: LakeReader) -> None:
    """Print the tables' contents: rows per table, verdicts and churn of each group, lag per group."""
    tables = Table("table", "rows", box=None, header_style="bold")
    tables.columns[1].justify = "right"
    for table in TABLES:
        tables.add_row(table.name, f"{reader.count(table.name):,}")
    console.print(tables)
    groups = Table("group", "state", "verdict", "verdicts so far", box=None, header_style="bold")
    for name in ("rebalances", "replaced", "partitions_moved", "lag"):
        groups.add_column(name, justify="right")
    groups.add_column("lag status")
    for row in reader.rows(_ALL_GROUPS):
        groups.add_row(
            cell(row["group_id"]),
            cell(row["state"]),
            cell(row["verdict"]),
            cell(row["verdicts"] or ""),
            cell(row["rebalances"] or 0),
            cell(row["replaced"] or 0),
            cell(row["partitions_moved"]),
            cell(row["lag_total"], ","),
            cell(row["lag_status"]),
        )
    console.print(groups)


def cell(value: object, spec: str = "", style: str = "") -> Text:
    """Any value as text for one cell: no markup, control characters escaped, NULL as a dash.

    Args:
        value: The value.
        spec: Format, as in an f-string; a value that it does not fit is shown as it is.
        style: Style of the text.
    """
    if value is None:
        return Text("-", style=style)
    try:
        plain = format(value, spec)
    except (TypeError, ValueError):
        plain = str(value)
    visible = printable(plain[:_READ])
    if len(visible) > _WIDTH:
        visible = f"{visible[: _WIDTH // 2 - 1]}…{visible[-_WIDTH // 2 :]}"
    return Text(visible, style=style)


def lines(text: str, style: str = "") -> Text:
    """Sentences, one per line, shown as `cell` shows a value, but longer."""
    return Text("\n".join(printable(line[:_LINE]) for line in text.splitlines()), style=style)
