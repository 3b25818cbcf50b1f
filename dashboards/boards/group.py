"""One group: problems, expected and actual owners, lag and rebalances over time, members, other strategies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.overview import behind
from dashboards.boards.parts.broker_lists import broker_lists
from dashboards.boards.parts.decisions import decision_rows
from dashboards.boards.parts.firing import firing
from dashboards.boards.parts.owners import owners
from dashboards.boards.parts.past import in_memory, ranges
from dashboards.boards.parts.states import since_of, states, states_within
from dashboards.boards.parts.strategies import strategies
from dashboards.boards.parts.timeline import decided, timeline
from dashboards.charts.held import HeldValue
from dashboards.charts.plots import Heard, history_plot, lag_plot
from dashboards.format import Row
from dashboards.lake import since
from dashboards.page.board import Board, NotThereError, View
from dashboards.spans import LIVE, RANGES, Range
from streaming.terminal import age

__all__ = ["BOARD", "found_group", "members_of", "topic_link"]

_SHOWN_DECISIONS: Final = 15
_MOST_MEMBERS: Final = 100

_SOURCES: Final = {"log": "its log", "admin": "requests in rounds", "rocketmq": "RocketMQ, in rounds"}

_SOURCE_TITLES: Final = {
    "log": "__consumer_offsets: no completed rebalance is missed",
    "admin": "its log is not read: rebalances between two rounds are seen as one; generations, commits and the cost of "
    "rebalances are not known (docs/admin-mode.md)",
    "rocketmq": "every name server, broker and client is asked: changes between two rounds are seen as one; RocketMQ "
    "has no generations and no leader, and how often offsets were committed is not known (docs/rocketmq.md)",
}

# Longer spans come from roll-ups by day.
_BY_HOUR: Final = RANGES["30d"]


def _fill(view: View) -> Mapping[str, Any]:
    group = found_group(view)
    name = {"cluster": group["cluster"], "group_id": group["group_id"]}
    members, partitions = view.ask("members", **name), view.ask("partitions", **name)
    verdict = next(iter(view.ask("verdict", **name)), None)
    span = view.address.range(view.now)
    of_rocketmq = group["source"] == "rocketmq"
    found = decided(view, span, group["cluster"], group["group_id"])
    decisions = found.rows if found is not None else ()
    moves = timeline(found, span)
    history, held = _history(view, group, span), states_within(view, group, span)
    # (A line for each of very many decisions would hide the lag.)
    plot = _lag(view, group, decisions if found is not None and found.steps is None else (), span, history)
    return {
        "group": _head(group, verdict, view, held or {}),
        "states": states(view, group, span, held, history or ()),
        "in_this_time": _in_this_time(history or ()),
        "span_begin": view.clock.time(span.begin, exact=False),
        "span_end": view.clock.time(span.end, exact=False),
        "alerts": firing(view, group["cluster"], group["group_id"]),
        "owners": owners(members, verdict, partitions, view.clock, topic_link(view, group["cluster"])),
        "broker_lists": broker_lists(view.ask("broker_members", **name), view.clock) if of_rocketmq else [],
        "ranges": ranges(view, span, RANGES),
        "reading": found is None or plot is None or held is None,
        "lag": plot,
        "by_partition": view.address.link(
            "groups", group["group_id"], "lag", cluster=view.cluster, range=span.name if span.name != LIVE else None
        ),
        "moves": moves,
        "decisions": decision_rows(decisions[:_SHOWN_DECISIONS], view, with_group=False),
        "decided": len(decisions),
        "left_out": found.left_out if found is not None else "",
        "all_decisions": view.address.link("rebalances", cluster=group["cluster"], range=span.name),
        "strategies": strategies(view.ask("what_if", **name), verdict, view.clock),
        "members": members_of(members, partitions, view, group["cluster"]),
        "load": view.address.link("groups", group["group_id"], "load", cluster=view.cluster),
        "number_of_members": len(members),
    }


def found_group(view: View) -> Row:
    """The living group that the address names.

    Raises:
        NotThereError: There is none, or several clusters have one.
    """
    asked = view.address.path[1]
    groups = view.groups(view.cluster)
    named = [group for group in groups if group["group_id"] == asked]
    named = named or [group for group in groups if words.key_of(group["group_id"]) == asked]
    if not named:
        where = f" in {words.cut(view.cluster)}" if view.cluster else ""
        message = (
            f"No active group is called {words.cut(asked, 120)}{where}: it was deleted, is not watched, or never was."
        )
        raise NotThereError(message)
    if len(named) > 1:
        clusters = ", ".join(words.cut(group["cluster"]) for group in named)
        message = f"Several clusters have this group ({clusters}): add ?cluster= and a name to the address."
        raise NotThereError(message)
    return named[0]


def _head(group: Row, verdict: Row | None, view: View, held: Mapping[str, Sequence[HeldValue]]) -> dict[str, Any]:
    clock = view.clock
    known = next(
        (
            row
            for row in view.ask("since", since=view.since)
            if (row["cluster"], row["group_id"]) == (group["cluster"], group["group_id"])
        ),
        None,
    )
    since = since_of(held, "state", group["state"], view)
    library = verdict["matching_library"] if verdict is not None and verdict["own_verdict"] == "identical" else None
    facts = [
        ("lag", words.number(group["lag_total"]), f"largest of one partition: {words.number(group['lag_max'])}"),
        *_beside_lag(group),
        ("behind", behind(group), "since when the oldest unread record has waited, as bounds"),
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
        *([] if group["source"] == "rocketmq" else [("generation", words.number(group["generation"]), "")]),
        ("state", words.cut(group["state"] or words.DASH, 24) + (f" since {since}" if since else ""), ""),
        ("read from", _SOURCES.get(group["source"], group["source"]), _SOURCE_TITLES.get(group["source"], "")),
        ("rebalanced", clock.time(group["last_decision_time"]), clock.whole(group["last_decision_time"])),
    ]
    if view.owners:
        facts.append(
            ("owner", words.cut(view.owner(group["group_id"]) or words.DASH, 32), "[[owners]] of evenkeel.toml")
        )
    return {
        "name": group["group_id"],
        "cluster": group["cluster"],
        "health": group["health"],
        "reasons": [*words.reasons(group, clock, known), *words.passing(group, clock)],
        "calm": words.calm(group),
        "facts": [{"word": word, "value": value, "title": title} for word, value, title in facts],
    }


def _beside_lag(group: Row) -> list[tuple[str, str, str]]:
    """What only some groups have beside their lag: records of open transactions, records that were deleted unread."""
    read, lost, found = group["lag_read_committed_total"], group["lost_records"], []
    if read is not None and read != group["lag_total"]:
        found.append(("lag, read committed", words.number(read), "without the records of open transactions"))
    if lost:
        found.append(("lost records", words.number(lost), "offsets deleted before the group committed past them"))
    return found


def _imbalance(group: Row) -> str:
    if group["imbalance"] is None:
        return words.DASH
    return f"{words.ratio(group['imbalance'])}, could be {words.ratio(group['imbalance_optimal'])}"


def _history(view: View, group: Row, span: Range) -> list[dict[str, Any]] | None:
    """The roll-ups of a span that is not held in memory; None while they are being read, and empty for one that is."""
    if in_memory(view, span):
        return []
    begin = span.begin.replace(minute=0, second=0, microsecond=0)
    return view.archive.ask(
        "group_hours" if span.length <= _BY_HOUR else "group_days",
        cluster=group["cluster"],
        group_id=group["group_id"],
        since=begin,
        until=span.end.replace(second=0, microsecond=0),
    )


def _in_this_time(history: Sequence[Row]) -> list[dict[str, str]]:
    """Extremes of a span, from its roll-ups; empty without them."""
    if not history:
        return []

    def most(column: str) -> Any:
        return max((row[column] for row in history if row[column] is not None), default=None)

    fewest = min((row["members_min"] for row in history if row["members_min"] is not None), default=None)
    known = sum(row["members_known_seconds"] or 0 for row in history)
    mean = sum((row["members_mean"] or 0) * (row["members_known_seconds"] or 0) for row in history) / (known or 1)
    said = f"mean {words.ratio(mean)}" if known else ""
    idle = timedelta(seconds=sum(row["members_beyond_partitions_seconds"] or 0 for row in history))
    facts = [
        ("members", " to ".join(dict.fromkeys((words.number(fewest), words.number(most("members_max"))))), said),
        ("highest imbalance", words.ratio(most("imbalance_max")), "max / mean - 1 of partitions per member"),
        ("most drifted partitions", words.number(most("drifted_count_max")), "of one decision"),
        ("lost records", words.number(most("lost_records_max")), "most at once: deleted before they were read"),
        (
            "generations without a record",
            words.number(sum(row["generations_skipped"] or 0 for row in history)),
            "the leader never synced",
        ),
        (
            "spare members",
            f"{words.number(most('members_beyond_partitions_max'))} for {age(idle)}" if idle else "none",
            "more members than partitions, so that some had nothing to read",
        ),
    ]
    return [{"word": word, "value": value, "title": title} for word, value, title in facts]


def _lag(
    view: View, group: Row, decisions: Sequence[Row], span: Range, history: Sequence[Row] | None
) -> dict[str, Any] | None:
    name = {"cluster": group["cluster"], "group_id": group["group_id"]}
    if in_memory(view, span):
        # (All rows in memory, so that the line starts at the left edge with the value that held there.)
        step = "second" if span.length <= RANGES["6h"] else "minute"
        rows = view.ask("lag", **name, since=since(view.lake.past, view.now), step=step)
        newest = next((r["round_time"] for r in view.ask("rounds") if r["cluster"] == group["cluster"]), view.now)
        # (A broker's clock may be ahead.)
        return lag_plot(rows, decisions, span, Heard(min(newest, view.now), view.lake.reach))
    return None if history is None else history_plot(history, span, "hour" if span.length <= _BY_HOUR else "event_date")


def topic_link(view: View, cluster: str) -> Callable[[str], str]:
    """The addresses of a cluster's topics, by their names; a broker behind an "@", which no topic has, is left out."""
    return lambda topic: view.address.link("topics", topic.partition("@")[0], cluster=cluster)


def members_of(members: Sequence[Row], partitions: Sequence[Row], view: View, cluster: str) -> list[dict[str, Any]]:
    """Values of the members' table, from rows of members.sql and partitions.sql."""
    lag: Counter[str] = Counter()
    for row in partitions:
        if row["member_id"] is not None and row["lag"] is not None:
            lag[row["member_id"]] += row["lag"]
    return [
        {
            "client": member["client_id"] or "",
            "href": view.address.link("clients", name=(member["client_id"] or "")[:200], cluster=cluster),
            "id": member["member_id"],
            "host": member["client_host"] or "",
            "instance": member["group_instance_id"],
            "rack": member["rack"],
            "timeouts": _timeouts(member),
            "leader": member["leader"],
            "partitions": member["partition_count"],
            "idle": member["partition_count"] == 0,
            "lag": lag.get(member["member_id"]),
        }
        for member in members[:_MOST_MEMBERS]
    ]


def _timeouts(member: Row) -> str:
    """Session and rebalance timeout, as far as they are known: "45 s, 5 min"."""
    known = (member["session_timeout_ms"], member["rebalance_timeout_ms"])
    return ", ".join(age(timedelta(milliseconds=ms)) for ms in known if ms is not None)


BOARD = Board(
    path=("groups", "{group}"),
    template="group.html.j2",
    fill=_fill,
    title="{group} · Evenkeel",
    parameters=frozenset({"range", "from", "to"}),
)
