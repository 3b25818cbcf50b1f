"""One group: problems, expected and actual owners, lag and rebalances over time, members, other strategies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.alerts import firing
from dashboards.boards.decision import strategies
from dashboards.boards.owners import lag_by_member, owners
from dashboards.boards.rebalances import decided, timeline
from dashboards.boards.states import HeldValue, since_of, states, states_within
from dashboards.charts import Heard, held, measure_plot, moment_of
from dashboards.format import Row
from dashboards.page.board import TIMES, Board, View, by_group, key, name_of
from dashboards.spans import RANGES, Range
from streaming.terminal import age

__all__ = ["BOARD", "history_of", "named_group"]

_SHOWN_DECISIONS: Final = 15

_SOURCES: Final = {"log": "its log", "admin": "requests in rounds", "rocketmq": "RocketMQ, in rounds"}

_SOURCE_TITLES: Final = {
    "log": "__consumer_offsets: no completed rebalance is missed",
    "admin": "its log is not read: rebalances between two rounds are seen as one; generations, commits and the cost of "
    "rebalances are not known (docs/admin-mode.md)",
    "rocketmq": "every name server, broker and client is asked: changes between two rounds are seen as one; RocketMQ "
    "has no generations and no leader, and how often offsets were committed is not known (docs/rocketmq.md)",
}

# The lag as a chart shows it: an axis to ten at least.
_LEAST_TOP: Final = 10.0


def named_group(view: View) -> Row:
    """The living group that the address names.

    Raises:
        NotThereError: There is none, or several clusters have one.
    """
    return view.named(lambda name: view.groups(group_id=name), "group")


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
        "facts": _facts(group, verdict, view, values),
        "states": states(group, span, values, history),
        "in_this_time": _in_this_time(history),
        "alerts": firing(view, group),
        "owners": owners(members, verdict, partitions),
        "broker_lists": view.rows("broker_members", **name) if group["source"] == "rocketmq" else [],
        # A line for each of very many decisions would hide the lag.
        "lag": _lag(view, group, found.rows if found.steps is None else (), history),
        "moves": timeline(found),
        "decisions": found.rows[:_SHOWN_DECISIONS],
        "decided": len(found.rows),
        "left_out": found.left_out,
        "strategies": strategies(view.rows("what_if", **name), verdict),
        "members": members,
        "lag_by_member": lag_by_member(partitions),
    }


def _facts(
    group: Row, verdict: Row | None, view: View, values: Mapping[str, Sequence[HeldValue]]
) -> list[tuple[str, str, str]]:
    since = since_of(values, "state", group["state"])
    library = verdict["matching_library"] if verdict is not None and verdict["own_verdict"] == "identical" else None
    read, lost = group["lag_read_committed_total"], group["lost_records"]
    facts: list[tuple[str, str, str]] = [
        ("lag", words.number(group["lag_total"]), f"largest of one partition: {words.number(group['lag_max'])}"),
        ("lag, read committed", words.number(read), "without the records of open transactions"),
        ("lost records", words.number(lost), "offsets deleted before the group committed past them"),
        (
            "behind",
            words.behind(group["time_behind_seconds_min"], group["time_behind_seconds_max"]),
            "since when the oldest unread record has waited, as bounds",
        ),
        ("members", words.number(group["members"]), ""),
        ("partitions", words.number(group["partitions"]), f"of {group['topics']} topics"),
        ("imbalance", _imbalance(group), "max / mean - 1 of partitions per member, and the least that could be"),
        ("verdict", words.verdict(group["verdict"], group["verdict_basis"]), group["verdict_reason"] or ""),
        (
            "recomputed as",
            words.cut(library or words.DASH, 32),
            "client library, or broker, that gives this assignment, and the first release that computes like it",
        ),
        ("strategy", words.cut(group["strategy"] or words.DASH, 32), group["strategy"] or ""),
        ("generation", words.number(group["generation"]), ""),
        ("state", words.cut(group["state"] or words.DASH, 24) + (f" since {since}" if since else ""), ""),
        ("read from", _SOURCES.get(group["source"], words.DASH), _SOURCE_TITLES.get(group["source"], "")),
        ("rebalanced", words.time(group["last_decision_time"]), words.whole(group["last_decision_time"])),
        ("owner", words.cut(view.owner(group["group_id"]) or words.DASH, 32), "[[owners]] of evenkeel.toml"),
    ]
    left_out = {
        "lag, read committed": read is None or read == group["lag_total"],
        "lost records": not lost,
        "generation": group["source"] == "rocketmq",
        "owner": not view.owners,
    }
    return [fact for fact in facts if not left_out.get(fact[0])]


def _imbalance(group: Row) -> str:
    if group["imbalance"] is None:
        return words.DASH
    return f"{words.ratio(group['imbalance'])}, could be {words.ratio(group['imbalance_optimal'])}"


def _in_this_time(history: Sequence[Row]) -> list[tuple[str, str, str]]:
    """Extremes of a span, from its roll-ups; empty without them."""
    if not history:
        return []

    def known(column: str) -> list[Any]:
        return [row[column] for row in history if row[column] is not None]

    def most(column: str) -> Any:
        return max(known(column), default=None)

    fewest = min(known("members_min"), default=None)
    seconds = sum(known("members_known_seconds"))
    mean = sum((row["members_mean"] or 0) * (row["members_known_seconds"] or 0) for row in history) / (seconds or 1)
    idle = timedelta(seconds=sum(known("members_beyond_partitions_seconds")))
    return [
        (
            "members",
            " to ".join(dict.fromkeys((words.number(fewest), words.number(most("members_max"))))),
            f"mean {words.ratio(mean)}" if seconds else "",
        ),
        ("highest imbalance", words.ratio(most("imbalance_max")), "max / mean - 1 of partitions per member"),
        ("most drifted partitions", words.number(most("drifted_count_max")), "of one decision"),
        ("lost records", words.number(most("lost_records_max")), "most at once: deleted before they were read"),
        ("generations without a record", words.number(sum(known("generations_skipped"))), "the leader never synced"),
        (
            "spare members",
            f"{words.number(most('members_beyond_partitions_max'))} for {age(idle)}" if idle else "none",
            "more members than partitions, so that some had nothing to read",
        ),
    ]


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
