"""Load of one group: by topic, partition and member, now and over a time; hot partitions apart from hot members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.group import found_group
from dashboards.boards.load import could_be, headroom, hot, judged, whole_hours
from dashboards.boards.parts.past import in_memory, ranges
from dashboards.charts.measures import held, measure_plot
from dashboards.charts.plots import Heard
from dashboards.charts.steps import floor
from dashboards.format import Row
from dashboards.page.board import Board, NotThereError, View
from dashboards.spans import LIVE, RANGES, Range

__all__ = ["BOARD", "by_member", "by_partition", "by_topic", "history_series"]

# Rows of a table; the busiest are what people look for, the rest is counted.
_SHOWN: Final = 60

# Points of a chart: as many as a screen has room for.
_MOST_STEPS: Final = 300

# Longer spans are drawn by the day.
_BY_HOUR: Final = RANGES["30d"]

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


def by_topic(now: Sequence[Row], told: Sequence[Row], before: Sequence[Row]) -> list[dict[str, Any]]:
    """Sums over the partitions of each topic, the busiest first.

    Args:
        now: Rows of load_partitions.sql.
        told: Rows of load_topics.sql of a time; they may have partitions that are gone.
        before: Those of the time before.
    """
    found: dict[str, dict[str, Any]] = {}

    def of(topic: str) -> dict[str, Any]:
        return found.setdefault(
            topic,
            {"topic": topic, "partitions": 0, "produced": None, "consumed": None, "unknown": 0, "lag": None,
             "records": None, "records_before": None},
        )  # fmt: skip

    for row in now:
        one = of(row["topic"])
        one["partitions"] += 1
        one["unknown"] += row["produced_per_second"] is None
        for name, column in (("produced", "produced_per_second"), ("consumed", "consumed_per_second"), ("lag", "lag")):
            _add(one, name, row[column])
    for rows, name in ((told, "records"), (before, "records_before")):
        for row in rows:
            _add(of(row["topic"]), name, row["high_watermark_growth"])
    return sorted(found.values(), key=lambda one: (-(one["produced"] or 0), -(one["records"] or 0), one["topic"]))


def _add(one: dict[str, Any], name: str, value: float | None) -> None:
    if value is not None:
        one[name] = (one[name] or 0) + value


def by_partition(
    group: Row, now: Sequence[Row], told: Sequence[Row], before: Sequence[Row], most: int
) -> list[dict[str, Any]]:
    """Partitions as they are now, the busiest first, with what a time had of them."""
    hot_ones = {(item["topic"], item["partition"]) for item in group["hot_partitions"] or ()}
    total = sum(row["produced_per_second"] or 0 for row in now)

    def grown(rows: Sequence[Row]) -> dict[tuple[Any, ...], int | None]:
        return {(row["topic"], row["broker"], row["partition"]): row["high_watermark_growth"] for row in rows}

    records, records_before = grown(told), grown(before)
    return [
        {
            "topic": row["topic"],
            "partition": str(row["partition"]) if row["broker"] is None else f"{row['broker']}/{row['partition']}",
            "produced": row["produced_per_second"],
            "consumed": row["consumed_per_second"],
            "share": row["produced_per_second"] / total if total and row["produced_per_second"] is not None else None,
            "hot": (row["topic"], row["partition"]) in hot_ones,
            "client": row["client_id"] or "",
            "lag": row["lag"],
            "records": records.get((row["topic"], row["broker"], row["partition"])),
            "records_before": records_before.get((row["topic"], row["broker"], row["partition"])),
        }
        for row in now[:most]
    ]


def by_member(now: Sequence[Row], told: Sequence[Row], most: int) -> list[dict[str, Any]]:
    """Members, those that carry most now first; then those that a time had and that are gone.

    Args:
        now: Rows of load_members.sql.
        told: Rows of load_shares.sql of a time.
        most: Most rows.
    """
    earlier = {row["member_id"]: row for row in told}
    fair = 1 / len(now) if now else None
    here = [(row["member_id"], row, earlier.pop(row["member_id"], None)) for row in now]
    gone = [(name, None, row) for name, row in earlier.items()]
    return [
        {
            "id": name,
            "client": (row or past or {}).get("client_id") or "",
            "host": (row or past or {}).get("client_host") or "",
            "gone": row is None,
            "partitions": row["partitions"] if row else None,
            "produced": row["produced_per_second"] if row else None,
            "consumed": row["consumed_per_second"] if row else None,
            "share": row["share"] if row else None,
            "of_fair": row["share"] / fair if row and fair and row["share"] is not None else None,
            "mean": past["produced_per_second"] if past else None,
            "share_mean": past["share_mean"] if past else None,
            "share_max": past["share_max"] if past else None,
        }
        for name, row, past in (*here, *gone)[:most]
    ]


def history_series(growth: Sequence[Row], observed: Sequence[Row], column: str) -> tuple[list[Any], list[Any]]:
    """Rates and imbalances of hours or days.

    Args:
        growth: Rows of load_hours.sql.
        observed: Rows of group_hours.sql or group_days.sql: a step without one is a gap, a step with one in which
            nothing grew has a rate of 0.
        column: `hour` or `event_date`.

    Returns:
        Series of measure_plot: produced and consumed per second; imbalance by number and the least possible.
    """
    grown = {_moment(row["time"]): row for row in growth}
    rates: list[list[Any]] = [[], [], []]
    even: list[list[Any]] = [[], [], []]
    for row in observed:
        time, seconds = _moment(row[column]), row["observed_seconds"]
        found = grown.get(time)
        at = int(time.timestamp())
        values = [None, None] if not seconds else [0.0, 0.0]
        if seconds and found is not None:
            values = [
                None if found[name] is None else found[name] / seconds
                for name in ("high_watermark_growth", "committed_offset_growth")
            ]
        for series, value in zip(rates, (at, *values), strict=True):
            series.append(value)
        for series, value in zip(even, (at, row["imbalance_mean"], row["imbalance_optimal_mean"]), strict=True):
            series.append(value)
    return rates, even


def _moment(begin: Any) -> datetime:
    return begin if isinstance(begin, datetime) else datetime(begin.year, begin.month, begin.day, tzinfo=UTC)


def _fill(view: View) -> Mapping[str, Any]:
    group = found_group(view)
    name = {"cluster": group["cluster"], "group_id": group["group_id"]}
    row = next((r for r in view.ask("load", cluster=group["cluster"]) if r["group_id"] == group["group_id"]), None)
    if row is None:  # (It has ended since the line before.)
        message = f"The group {words.cut(group['group_id'], 120)} has just ended."
        raise NotThereError(message)
    span = view.address.range(view.now)
    compared = view.address.one_of("compare", ("before",)) == "before"
    of_time = span.name != LIVE
    whole = whole_hours(span)
    told = shares = before = None
    if of_time:
        told = view.archive.ask("load_topics", **name, since=whole.begin, until=whole.end)
        shares = view.archive.ask("load_shares", **name, since=whole.begin, until=whole.end)
        if compared:
            before = view.archive.ask("load_topics", **name, since=whole.before.begin, until=whole.before.end)
    partitions, members = view.ask("load_partitions", **name), view.ask("load_members", **name)
    plots = _plots(view, group, row, span)
    topics = by_topic(partitions, told or (), before or ())
    named = {"cluster": group["cluster"] if view.cluster else None}
    return {
        "name": group["group_id"],
        "cluster": group["cluster"],
        "group_href": view.address.link("groups", group["group_id"], **named),
        "lag_href": view.address.link("groups", group["group_id"], "lag", range=span.name, **named),
        "says": hot(row),
        "kinds": judged(row),
        "facts": _facts(row, view),
        "ranges": ranges(view, span, RANGES),
        "of_time": of_time,
        "compare": view.address.here(compare=None if compared else "before"),
        "compared": compared and of_time,
        "reading": plots is None or (of_time and (told is None or shares is None or (compared and before is None))),
        "plots": plots,
        "topics": [
            {**one, "href": view.address.link("topics", one["topic"], cluster=group["cluster"])}
            for one in topics[:_SHOWN]
        ],
        "number_of_topics": len(topics),
        "members": [
            {**one, "href": view.address.link("clients", name=one["client"][:200], cluster=group["cluster"])}
            for one in by_member(members, shares or (), _SHOWN)
        ],
        "number_of_members": len(members),
        "partitions": [
            {**one, "href": view.address.link("topics", one["topic"], cluster=group["cluster"])}
            for one in by_partition(row, partitions, told or (), before or (), _SHOWN)
        ],
        "number_of_partitions": len(partitions),
        "window": view.clock.time(members[0]["round_time"]) if members else "",
    }


def _facts(row: Row, view: View) -> list[dict[str, str]]:
    facts = [
        ("produced, /s", words.rate(row["produced_per_second"]), "offsets by which the ends of its partitions grew"),
        ("consumed, /s", words.rate(row["consumed_per_second"]), "offsets by which its commits grew"),
        (
            "consumed when behind, /s",
            words.rate(row["consumed_per_second_behind"]),
            "in the newest window in which it was behind all the time: so much it can do at least",
        ),
        ("headroom", headroom(row), "that, against what is produced now; below 1 it would not catch up"),
        ("load imbalance", words.ratio(row["load_imbalance"]), "max / mean - 1 of what is produced per member"),
        ("could be", could_be(row), "the least that an assignment could reach, as bounds"),
        ("by number", words.ratio(row["imbalance"]), "max / mean - 1 of partitions per member"),
        ("could be by number", words.ratio(row["imbalance_optimal"]), ""),
        ("members", words.number(row["members"]), ""),
        ("partitions", words.number(row["partitions"]), f"of {row['topics']} topics"),
        ("as of", view.clock.time(row["round_time"]), "the group's newest row"),
    ]
    return [{"word": word, "value": value, "title": title} for word, value, title in facts]


def _plots(view: View, group: Row, row: Row, span: Range) -> dict[str, Any] | None:
    """The two charts; None while their rows are still being read. `row` is the group's of load.sql."""
    name = {"cluster": group["cluster"], "group_id": group["group_id"]}
    rated = ("produced", "consumed")
    if in_memory(view, span):
        minutes = next((m for m in (1, 2, 5, 10) if span.length <= m * timedelta(minutes=_MOST_STEPS)), 10)
        width = timedelta(minutes=minutes)
        live = view.now - span.end < width
        # (Whole steps, so that the same question is asked for as long as a step; the present is known without one.)
        since, until = floor(span.begin - view.lake.reach, width), floor(span.end, width) + (not live) * width
        rows = view.archive.ask("load_steps", **name, since=since, until=until, minutes=minutes)
        if rows is None:
            # (The chart of a moment ago is better than none while the next step is read.)
            rows = view.archive.known("load_steps", **name, since=since - width, until=until - width, minutes=minutes)
        if rows is None:
            return None
        points: list[tuple[datetime, Row]] = [(one["hour"] + one["step"] * width, one) for one in rows]
        if live and row["round_time"] >= until:
            points.append((row["round_time"], row))
        newest = next((r["round_time"] for r in view.ask("rounds") if r["cluster"] == group["cluster"]), view.now)
        heard = Heard(min(newest, view.now), view.lake.reach)

        def drawn(*columns: str) -> list[list[Any]]:
            return held(
                ((time, [one[column] for column in columns]) for time, one in points),
                span,
                heard,
            )

        even = ("load_imbalance", "load_imbalance_optimal_max", "imbalance")
        return {
            "rates": measure_plot(drawn("produced_per_second", "consumed_per_second"), span, rated, unit="/s"),
            "even": measure_plot(drawn(*even), span, ("load imbalance", "could be", "by number")),
        }
    by_hour = span.length <= _BY_HOUR
    since = span.begin.replace(minute=0, second=0, microsecond=0)
    asked = {**name, "since": since, "until": span.end.replace(second=0, microsecond=0)}
    growth = view.archive.ask("load_hours", **asked, step="hour" if by_hour else "day")
    observed = view.archive.ask("group_hours" if by_hour else "group_days", **asked)
    if growth is None or observed is None:
        return None
    rates, even_ones = history_series(growth, observed, "hour" if by_hour else "event_date")
    return {
        "rates": measure_plot(rates, span, rated, unit="/s", points=True),
        "even": measure_plot(even_ones, span, ("by number", "could be by number"), points=True),
    }


BOARD = Board(
    path=("groups", "{group}", "load"),
    template="group_load.html.j2",
    fill=_fill,
    title="Load of {group} · Evenkeel",
    parameters=frozenset({"range", "from", "to", "compare"}),
)
