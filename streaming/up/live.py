"""The tables in a terminal: groups, verdicts, lag, last rebalances; read from the lake like everything people see."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from streaming.tables import LakeReader
from streaming.up.cells import cell, lines

__all__ = ["render"]

# Colours that a colour-blind person can tell apart, and a sign beside each, so that colour is never alone.
_VERDICTS = {
    "identical": ("=", "cyan"),
    "drifted": ("!", "bold red"),
    "valid_unverified": ("~", "yellow"),
    "not_applicable": ("-", "dim"),
    "pending": ("…", "dim"),
}
_BAD_LAG = {"stopped", "stalled", "falling_behind", "rewound", "ahead"}

_GROUPS = """
SELECT group_id, state, strategy, members, generation, verdict, verdict_reason, drifted_count, lag_total, lag_status,
       imbalance, imbalance_least, findings
FROM group_health_current ORDER BY (verdict <> 'drifted'), (lag_status IN ('ok', 'no_commit')), group_id LIMIT ?
"""
_CHURN = """
SELECT record_time, group_id, kind, generation, len(joined) AS joined, len("left") AS gone, moves, moves_least,
       unowned_partition_seconds_max AS cost
FROM rebalance_churn_current ORDER BY record_time DESC LIMIT ?
"""
_NEWEST = "SELECT max(round_time) AS newest, count(*) AS n FROM rounds"


def render(reader: LakeReader, height: int, notice: str = "") -> RenderableType:
    """Draw what the tables hold now, in at most `height` lines."""
    rebalances = 6
    fixed = 2 + 4 + rebalances + 5 + (notice.count("\n") + 1 if notice else 0)
    newest = reader.rows(_NEWEST)[0]
    if not newest["n"]:
        waiting = "waiting for the first round: the probe and Spark need about half a minute …"
        return lines(f"{waiting}\n{notice}")
    groups = reader.rows(_GROUPS, [max(5, height - fixed)])
    total = reader.count("group_health_current")
    head = Text(f"newest round {_age(newest['newest'])}, {newest['n']} rounds, {total} groups", style="bold")
    if total > len(groups):
        head.append(f" ({len(groups)} shown)", style="dim")
    if notice:
        head.append("\n").append(lines(notice, style="yellow not bold"))
    return Group(head, _groups_table(groups), _churn_table(reader.rows(_CHURN, [rebalances])))


def _groups_table(groups: list[dict[str, Any]]) -> Table:
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
            _imbalance(group["imbalance"], group["imbalance_least"]),
            cell(", ".join(str(f["finding"]) for f in group["findings"] or ())),
        )
    return table


def _churn_table(decisions: list[dict[str, Any]]) -> Table:
    table = Table(expand=True, box=None, pad_edge=False, header_style="bold", title_justify="left")
    for name in ("last decisions", "group", "kind"):
        table.add_column(name, no_wrap=True, ratio=3 if name == "group" else None)
    for name in ("gen", "joined", "left", "moves (least)", "unowned ≤ s"):
        table.add_column(name, justify="right")
    for row in decisions:
        moves = cell(row["moves"])
        if row["moves_least"] is not None:
            moves.append(" (").append(cell(row["moves_least"])).append(")")
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


def _imbalance(value: float | None, least: float | None) -> Text:
    if value is None:
        return Text("-", style="dim")
    # Three partitions on two members are uneven and as even as can be: only the difference is remarkable.
    return Text(f"{value:.2f}", style="bold red" if value - (least or 0.0) > 0.5 else "")


def _age(time: datetime | None) -> str:
    if time is None:
        return "of unknown age"
    seconds = max(0.0, (datetime.now(UTC) - time).total_seconds())
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago"
