"""One group: problems, owners, states, lag and rebalances over time, members, other strategies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.alerts import firing
from dashboards.boards.owners import lag_by_member, owners
from dashboards.boards.rebalances import decided, strategies, timeline
from dashboards.charts import Heard, held, measure_plot, moment_of, reaching
from dashboards.format import Row
from dashboards.page.board import TIMES, Board, View, by_group, grouped, key, name_of
from dashboards.spans import DAY, HOUR, MINUTE, RANGES, Range
from streaming.terminal import age

_MEASURES: Final = {"state": "coordinator state", "verdict": "verdict", "lag_status": "lag status"}
"""Columns of which a group always has one value, with their words."""

_HOLDS: Final = "holds"
"""The only value of a finding."""

_TONES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("Stable", "identical", "ok"), "fine"),
    **dict.fromkeys(("drifted", "stalled", "stopped", "Dead"), "bad"),
    **dict.fromkeys(("unverified", "unknown"), "unsure"),
    **dict.fromkeys(("Empty", "not_applicable", "no_commit", "pending"), "rest"),
}
"""How values are drawn; all others, such as PreparingRebalance and findings, as `warn`."""

# Changes in the list: a group that rebalances every minute makes as many in half an hour.
_CHANGES: Final = 60


@dataclass(frozen=True, slots=True)
class HeldValue:
    """A value and a time for which it held without a pause.

    Attributes:
        value: The value.
        begin: Its first moment within what is shown.
        end: Its last.
        whole: Whether it began then; False where it already held when the rows began.
    """

    value: str
    begin: datetime
    end: datetime
    whole: bool


def held_in(rows: Sequence[Row], span: Range, heard: Heard) -> dict[str, list[HeldValue]]:
    """What held when, by measure; each finding is a measure of its own: "finding unassigned".

    Args:
        rows: Rows of states.sql, the oldest first, with rows before the span if there are any.
        span: What is shown.
        heard: How long a value holds.
    """
    found: dict[str, list[HeldValue]] = {name: [] for name in _MEASURES}
    changes = ((row["round_time"], row["last_time"], row) for row in rows)
    for begin, end, row, _ in reaching(changes, span, heard):
        if row["ended"] or end <= begin:
            continue
        whole = row is not rows[0] and row["round_time"] >= span.begin
        for name, value in _values(row).items():
            known = found.setdefault(name, [])
            if known and (known[-1].value, known[-1].end) == (value, begin):
                known[-1] = replace(known[-1], end=end)
            else:
                known.append(HeldValue(value, begin, end, whole))
    return found


def _values(row: Row) -> dict[str, str]:
    """Values by measure, as a row has them."""
    return {name: row[name] for name in _MEASURES if row[name] is not None} | {
        f"finding {finding['finding']}": _HOLDS for finding in row["findings"] or ()
    }


def times_of(held: Mapping[str, Iterable[HeldValue]]) -> dict[str, dict[str, timedelta]]:
    """The time of each value by measure, the longest first."""
    return _summed((name, one.value, one.end - one.begin) for name, of in held.items() for one in of)


def rolled_up(rows: Sequence[Row]) -> dict[str, dict[str, timedelta]]:
    """The same from rows of group_hours.sql or group_days.sql."""
    named = ((name, row[f"{name}_seconds"]) for row in rows for name in _MEASURES)
    values = [(name, item["name"], item["seconds"]) for name, items in named for item in items or ()]
    findings = [item for row in rows for item in row["finding_seconds"] or ()]
    values += [(f"finding {item['name']}", _HOLDS, item["seconds"]) for item in findings]
    return _summed((name, value, timedelta(seconds=seconds)) for name, value, seconds in values)


def _summed(times: Iterable[tuple[str, str, timedelta]]) -> dict[str, dict[str, timedelta]]:
    found: dict[str, dict[str, timedelta]] = {}
    for name, value, time in times:
        of_name = found.setdefault(name, {})
        of_name[value] = of_name.get(value, timedelta()) + time
    return {name: dict(sorted(of.items(), key=lambda item: (-item[1], item[0]))) for name, of in found.items()}


def states_within(view: View, group: Row, span: Range) -> dict[str, list[HeldValue]]:
    """What held when in a span.

    Empty for a span that is not held in memory, of which the roll-ups have only durations, and while the rows are still
    being read.
    """
    if not view.in_memory(span):
        return {}
    asked = span.whole(MINUTE)
    name = name_of(group)
    rows = view.newest("states", MINUTE, **name, since=asked.begin - view.lake.reach, until=asked.end)
    if "states" in view.unread:
        return {}
    if not rows or rows[-1]["last_time"] < group["round_time"] < span.end:
        # The group's newest row is in memory before the next question is asked.
        rows = [*rows, {**group, "ended": False, "last_time": group["round_time"]}]
    return held_in(rows, span, Heard(view.newest_round(group["cluster"]), view.lake.reach))


def since_of(held: Mapping[str, Sequence[HeldValue]], measure: str, value: str | None) -> str:
    """Since when the present value holds: a time, or a time before which it began; "" where that is not known."""
    known = held.get(measure) or ()
    if not known or known[-1].value != value:
        return ""
    if known[-1].whole:
        return words.time(known[-1].begin)
    return f"before {words.time(known[-1].begin, exact=False)}"


def states(group: Row, span: Range, held: Mapping[str, Sequence[HeldValue]], history: Sequence[Row]) -> dict[str, Any]:
    """Values of `states.html.j2`.

    Args:
        group: The row of groups.sql.
        span: What is shown.
        held: By `states_within`.
        history: Rows of group_hours.sql or group_days.sql, where that has nothing.
    """
    times = times_of(held) or rolled_up(history)
    now = _values(group)
    begun = {f"finding {finding['finding']}": words.time(finding["since"]) for finding in group["findings"] or ()}
    rows = [
        {
            "word": _MEASURES.get(name) or _said(name.removeprefix("finding ")),
            "finding": name not in _MEASURES,
            "now": _said(now.get(name, "")) or words.DASH,
            "since": begun.get(name) or since_of(held, name, now.get(name)),
            "strip": [_bar(one, span) for one in held.get(name, ())],
            "times": {_said(value): time for value, time in times.get(name, {}).items() if time},
        }
        for name in dict.fromkeys((*_MEASURES, *now, *times))
    ]
    newest_first = list(reversed(held.get("state", ())))[:_CHANGES]
    changes = [
        [f"{'' if one.whole else 'before '}{words.time(one.begin)}", _said(one.value), age(one.end - one.begin)]
        for one in newest_first
    ]
    table = {"head": ["Since", "Coordinator state", "For"], "rows": changes}
    return {"rows": rows, "drawn": bool(held), "span": span, "changes": table}


def _bar(held: HeldValue, span: Range) -> dict[str, str]:
    """A bar on a strip from 0 to 1000."""
    begin, length = (held.begin - span.begin) / span.length, (held.end - held.begin) / span.length
    # A state of a second is still seen in a day.
    width = max(1000 * length, 1.5)
    return {"x": f"{1000 * begin:.1f}", "width": f"{width:.1f}", "tone": _TONES.get(held.value, "warn")}


def _said(value: str) -> str:
    return words.cut(value.replace("_", " "), 40)


_SHOWN_DECISIONS: Final = 15

_SOURCES: Final = {"log": "its log", "admin": "requests in rounds", "rocketmq": "RocketMQ, in rounds"}

_SOURCE_TITLES: Final = {
    "log": "__consumer_offsets: no completed rebalance is missed",
    "admin": "its log is not read: rebalances between two rounds are seen as one; generations, commits and the cost of "
    "rebalances are not known (docs/admin-mode.md)",
    "rocketmq": "every name server, broker and client is asked: changes between two rounds are seen as one; RocketMQ "
    "has no generations and no leader, and how often offsets were committed is not known (docs/rocketmq.md)",
}

# Rows of group_hours.sql or group_days.sql to one of the whole span.
EXTREMES: Final = """
SELECT min(members_min) AS members_min, max(members_max) AS members_max,
  sum(members_mean * members_known_seconds) / nullif(sum(members_known_seconds), 0) AS members_mean,
  max(imbalance_max) AS imbalance_max, max(drifted_count_max) AS drifted_count_max,
  max(lost_records_max) AS lost_records_max, max(members_beyond_partitions_max) AS members_beyond_partitions_max,
  coalesce(sum(generations_skipped), 0)::BIGINT AS generations_skipped,
  coalesce(sum(members_beyond_partitions_seconds), 0) AS members_beyond_partitions_seconds
FROM found
"""

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
    asked = span.whole(HOUR if hourly else DAY)
    name = "group_hours" if hourly else "group_days"
    rows = view.rows(name, **name_of(group), since=asked.begin, until=asked.end)
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
        "extremes": next(iter(grouped(history, EXTREMES)), None),
        "alerts": firing(view, group),
        "owners": owners(members, verdict, partitions, group["protocol_type"]),
        # A line for each of very many decisions would hide the lag.
        "lag": _lag(view, group, found.rows if found.steps is None else (), history),
        "moves": timeline(found, span),
        "decisions": found.rows[:_SHOWN_DECISIONS],
        "decided": len(found.rows),
        "left_out": found.left_out,
        "strategies": strategies(view.rows("what_if", **name), group["protocol_type"]),
        "members": members,
        "lag_by_member": lag_by_member(partitions),
    }


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
