"""One group: problems, expected and actual owners, lag and rebalances over time, members, other strategies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.alerts import firing
from dashboards.boards.decision import strategies
from dashboards.boards.owners import lag_by_member, owners
from dashboards.boards.rebalances import decided, timeline
from dashboards.boards.states import since_of, states, states_within
from dashboards.charts import Heard, held, measure_plot, moment_of
from dashboards.format import Row
from dashboards.page.board import TIMES, Board, View, by_group, key, name_of
from dashboards.spans import RANGES, Range

_SHOWN_DECISIONS: Final = 15

_SOURCES: Final = {"log": "its log", "admin": "requests in rounds", "rocketmq": "RocketMQ, in rounds"}

_SOURCE_TITLES: Final = {
    "log": "__consumer_offsets: no completed rebalance is missed",
    "admin": "its log is not read: rebalances between two rounds are seen as one; generations, commits and the cost of "
    "rebalances are not known (docs/admin-mode.md)",
    "rocketmq": "every name server, broker and client is asked: changes between two rounds are seen as one; RocketMQ "
    "has no generations and no leader, and how often offsets were committed is not known (docs/rocketmq.md)",
}

_EXTREMES: Final[Mapping[Callable[[Sequence[Any]], Any], Sequence[str]]] = {
    min: ("members_min",),
    max: (
        "members_max", "imbalance_max", "drifted_count_max", "lost_records_max", "members_beyond_partitions_max",
    ),
    sum: ("generations_skipped", "members_beyond_partitions_seconds"),
}  # fmt: skip
"""How a column of the roll-ups is taken together over a span."""

# The lag as a chart shows it: an axis to ten at least.
_LEAST_TOP: Final = 10.0


def named_group(view: View) -> Row:
    """The living group that the address names.

    Raises:
        NotThereError: There is none, or several clusters have one.
    """
    return view.named(lambda name: view.rows("groups", group_id=name), "group")


def history_of(view: View, group: Row, span: Range) -> list[dict[str, Any]]:
    """The roll-ups of a group over a span, by hour or by day, each with its beginning as `time`."""
    hourly = span.length <= RANGES["30d"]
    rows = view.rows(
        "group_hours" if hourly else "group_days",
        **name_of(group),
        since=span.begin.replace(minute=0, second=0, microsecond=0),
        until=span.end.replace(second=0, microsecond=0),
    )
    return [{**row, "time": moment_of(row["hour" if hourly else "event_date"])} for row in rows]


def _fill(view: View) -> Mapping[str, Any]:
    group, span = named_group(view), view.span
    name = name_of(group)
    members, partitions = view.rows("members", **name), view.rows("partitions", **name)
    verdict = next(iter(view.rows("verdict", **name)), None)
    found = decided(view, span, **name)
    history = [] if view.in_memory(span) else history_of(view, group, span)
    values = states_within(view, group, span)
    return {
        "group": group,
        "reasons": [
            *words.reasons(group, view.clock, by_group(view.rows("since")).get(key(group))),
            *words.passing(group, view.clock),
        ],
        "verdict": verdict,
        "state_since": since_of(values, "state", group["state"]),
        "sources": _SOURCES,
        "source_titles": _SOURCE_TITLES,
        "states": states(group, span, values, history),
        "extremes": _extremes(history),
        "alerts": firing(view, group),
        "owners": owners(members, verdict, partitions, group["protocol_type"]),
        # A line for each of very many decisions would hide the lag.
        "lag": _lag(view, group, found.rows if found.steps is None else (), history),
        "moves": timeline(found, span),
        "decisions": found.rows[:_SHOWN_DECISIONS],
        "decided": len(found.rows),
        "left_out": found.left_out,
        "strategies": strategies(view.rows("what_if", **name), verdict, group["protocol_type"]),
        "members": members,
        "lag_by_member": lag_by_member(partitions),
    }


def _extremes(history: Sequence[Row]) -> Row | None:
    """Extremes of a span, from its roll-ups, by their columns; None without them."""
    if not history:
        return None
    found: dict[str, Any] = {}
    for over, columns in _EXTREMES.items():
        for column in columns:
            known = [row[column] for row in history if row[column] is not None]
            found[column] = over(known) if known or over is sum else None
    seconds = sum(row["members_known_seconds"] or 0 for row in history)
    mean = sum((row["members_mean"] or 0) * (row["members_known_seconds"] or 0) for row in history)
    found["members_mean"] = mean / seconds if seconds else None
    return found


def _lag(view: View, group: Row, decisions: Sequence[Row], history: Sequence[Row]) -> dict[str, Any]:
    """Lag over time: of all partitions and of the worst one; over months the highest and the mean of each step."""
    span = view.span
    if not view.in_memory(span):
        means = [None if row["lag_total_mean"] is None else round(row["lag_total_mean"], 1) for row in history]
        series = [[int(row["time"].timestamp()) for row in history], [row["lag_total_max"] for row in history], means]
        names = ("highest of all partitions", "mean")
        return measure_plot(series, span, names, unit="count", lowest_top=_LEAST_TOP, points=True)
    # All rows in memory, so that the line starts at the left edge with the value that held there.
    step = "second" if span.length <= RANGES["6h"] else "minute"
    rows = view.rows("lag", **name_of(group), step=step)
    heard = Heard(view.newest_round(group["cluster"]), view.lake.reach)
    series = held(((row["time"], (row["lag_total"], row["lag_max"])) for row in rows), span, heard)
    rules = [row["record_time"] for row in decisions]
    names = ("all partitions", "worst partition")
    return measure_plot(series, span, names, unit="count", lowest_top=_LEAST_TOP, rules=rules)


BOARD = Board(
    path=("groups", "{group}"),
    template="group.html.j2",
    fill=_fill,
    title="{group} · Evenkeel",
    parameters=TIMES,
)
