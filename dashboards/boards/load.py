"""Load: what is produced and consumed, and whether it lies evenly on the members; of all groups, and of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow.compute as pc

from dashboards import format as words
from dashboards.boards.group import history_of, named_group
from dashboards.charts import Heard, held, measure_plot, moment_of
from dashboards.format import Row
from dashboards.page.board import TIMES, Board, NotThereError, View, grouped, key, name_of, total
from dashboards.spans import HOUR, LIVE, RANGES, Range, floor

# An imbalance that another assignment would lower by less is not worth a rebalance. A tenth of a member's share is also
# what the table takes for a hot partition.
_WORTH: Final = 0.1

# Partitions that are named in a sentence.
_NAMED: Final = 2

# Rows of a group's tables; the busiest are what people look for, the rest is counted.
_SHOWN: Final = 60

# Points of a chart: as many as a screen has room for.
_MOST_STEPS: Final = 300

HOT: Final = ("member", "partition", "even", "unknown")
"""Values of `hot`: a member carries more than its share, and another assignment would even it out; a partition carries
more than a member's share by itself; as even as an assignment can make it; not known."""

_SORTS: Final[Mapping[str, tuple[str, bool]]] = {
    "avoidable": ("avoidable", True),
    "produced": ("produced_per_second", True),
    "consumed": ("consumed_per_second", True),
    "imbalance": ("load_imbalance", True),
    "members": ("members", True),
    "group": ("group_id", False),
}
"""Column of load.sql, and whether the largest comes first, by the value of `sort`."""


def judged(row: Row) -> frozenset[str]:
    """The words of HOT that hold for a row of load.sql; more than one where a member and a partition are hot."""
    if row["load_imbalance"] is None:
        return frozenset({"unknown"})
    found = set()
    if row["avoidable"] is not None and row["avoidable"] > _WORTH:
        found.add("member")
    if row["hot_partitions"]:
        found.add("partition")
    return frozenset(found or {"unknown" if row["avoidable"] is None else "even"})


def hot(row: Row) -> list[str]:
    """What is to be said about how evenly the load lies, a sentence for each thing; never empty."""
    kinds = judged(row)
    said = []
    if "member" in kinds:
        said.append(
            f"hot member: imbalance {words.ratio(row['load_imbalance'])}, another assignment would reach "
            f"{words.ratio(row['load_imbalance_optimal_max'])}"
        )
    if "partition" in kinds:
        listed = [
            f"{words.cut(item['topic'] or '', 40)} {item['partition']} ({_part(item['per_second'], row)})"
            for item in row["hot_partitions"]
        ]
        many, named = "s" if len(listed) > 1 else "", words.names(listed, _NAMED)
        said.append(f"hot partition{many}: {named}; no assignment can even it out")
    if "even" in kinds:
        return ["even" if row["load_imbalance"] <= _WORTH else "as even as an assignment can make it"]
    return said or [_why_unknown(row)]


def _part(per_second: float | None, row: Row) -> str:
    if per_second is None or not row["produced_per_second"]:
        return f"{words.rate(per_second)}/s"
    return f"{words.percent(per_second / row['produced_per_second'])} of what is produced"


def _why_unknown(row: Row) -> str:
    reasons = (
        (row["produced_per_second"] is None, "no rate is known yet: the first window takes a heartbeat"),
        (not row["members"], "no members"),
        (not row["produced_per_second"], "nothing is produced"),
        (row["load_imbalance"] is None, "the rate of an assigned partition is not known"),
        (True, "how even it could be is not known: a subscription is not known, or the group is too large"),
    )
    return next(reason for holds, reason in reasons if holds)


def _load(view: View) -> Mapping[str, Any]:
    kind, text = view.address.one_of("hot", HOT), view.address.text("name").strip().lower()
    everyone = view.rows("load")
    named = [row for row in everyone if text in row["group_id"].lower()]
    owned = view.owned(named)
    shown = view.ordered([row for row in owned if not kind or kind in judged(row)], _SORTS)
    past, before = _past(view)
    return {
        "owners": view.owner_chips(row["group_id"] for row in named),
        "kinds": view.chips("hot", HOT, Counter(word for row in owned for word in judged(row))),
        "of_time": past is not None,
        "produced": total(shown, "produced_per_second"),
        "consumed": total(shown, "consumed_per_second"),
        "rated": sum(row["produced_per_second"] is not None for row in shown),
        "rows": shown[: view.most],
        "judged": judged,
        "hot": hot,
        "told": {key(row): row["high_watermark_growth"] for row in _within(view, "load_groups", past)},
        "before": {key(row): row["high_watermark_growth"] for row in _within(view, "load_groups", before)},
        "number": len(shown),
        "of": len(everyone),
    }


def _past(view: View) -> tuple[Range | None, Range | None]:
    """The whole hours of the time that is asked for, and of the time before; None for what is not asked for."""
    hours = view.span.whole(HOUR) if view.span.name != LIVE else None
    return hours, hours.before if hours is not None and view.compared else None


def _within(view: View, query: str, span: Range | None, **name: Any) -> Sequence[Row]:
    """Rows of a query of roll-ups; none where no time is asked for."""
    if span is None:
        return []
    return view.rows(query, **name, since=span.begin, until=span.end)


_BY_TOPIC: Final = """
SELECT topic, sum(here)::BIGINT AS partitions, count(*) FILTER (here = 1 AND produced_per_second IS NULL) AS unknown,
  sum(produced_per_second) AS produced_per_second, sum(consumed_per_second) AS consumed_per_second,
  sum(lag)::BIGINT AS lag, sum(records)::BIGINT AS records, sum(records_before)::BIGINT AS records_before
FROM found GROUP BY topic
ORDER BY coalesce(sum(produced_per_second), 0) DESC, coalesce(sum(records), 0) DESC, topic
"""


def by_topic(now: Sequence[Row], told: Iterable[Row], before: Iterable[Row]) -> list[dict[str, Any]]:
    """Sums over the partitions of each topic, the busiest first.

    Args:
        now: Rows of load_partitions.sql.
        told: Rows of load_topics.sql of a time; they may have partitions that are gone.
        before: Those of the time before.
    """
    empty = dict.fromkeys(("produced_per_second", "consumed_per_second", "lag", "records", "records_before"))
    rows = [
        *({**empty, **row, "here": 1} for row in now),
        *({**empty, "topic": row["topic"], "records": row["high_watermark_growth"], "here": 0} for row in told),
        *(
            {**empty, "topic": row["topic"], "records_before": row["high_watermark_growth"], "here": 0}
            for row in before
        ),
    ]
    return grouped(rows, _BY_TOPIC)


def by_member(now: Sequence[Row], told: Iterable[Row]) -> list[dict[str, Any]]:
    """Members, those that carry most now first; then those that a time had and that are gone.

    Args:
        now: Rows of load_members.sql.
        told: Rows of load_shares.sql of a time.
    """
    past = {row["member_id"]: row for row in told}
    rows = [
        {
            **row,
            "gone": False,
            "of_fair": None if row["share"] is None else row["share"] * len(now),
            "past": past.pop(row["member_id"], None),
        }
        for row in now
    ]
    empty = dict.fromkeys(("partitions", "produced_per_second", "consumed_per_second", "share", "of_fair"))
    return [*rows, *({**row, **empty, "gone": True, "past": row} for row in past.values())]


def history_series(growth: Iterable[Row], observed: Sequence[Row]) -> tuple[list[Any], list[Any]]:
    """Rates and imbalances of hours or days.

    Args:
        growth: Rows of load_hours.sql.
        observed: Rows of `history_of`: a step without one is a gap, a step with one in which nothing grew has a rate
            of 0.

    Returns:
        Series of measure_plot: produced and consumed per second; imbalance by number and the least possible.
    """
    grown = {moment_of(row["time"]): row for row in growth}
    nothing = {"high_watermark_growth": 0, "committed_offset_growth": 0}

    def rate(row: Row, column: str) -> float | None:
        value, seconds = grown.get(row["time"], nothing)[column], row["observed_seconds"]
        if value is None or not seconds:
            return None
        return float(value / seconds)

    times = [int(row["time"].timestamp()) for row in observed]
    rates = [[rate(row, column) for row in observed] for column in nothing]
    even = [[row[column] for row in observed] for column in ("imbalance_mean", "imbalance_optimal_mean")]
    return [times, *rates], [times, *even]


def _group(view: View) -> Mapping[str, Any]:
    group = named_group(view)
    name = name_of(group)
    everyone = view.columns("load", cluster=group["cluster"])
    row = next(iter(everyone.filter(pc.equal(everyone["group_id"], group["group_id"])).to_pylist()), None)
    if row is None:  # It has ended since the line before.
        message = f"The group {words.cut(group['group_id'], 120)} has just ended."
        raise NotThereError(message)
    past, earlier = _past(view)
    told, before = _within(view, "load_topics", past, **name), _within(view, "load_topics", earlier, **name)
    partitions, members = view.rows("load_partitions", **name), view.rows("load_members", **name)
    return {
        "row": row,
        "says": hot(row),
        "kinds": judged(row),
        "of_time": past is not None,
        "compared": earlier is not None,
        "plots": _plots(view, group),
        "topics": by_topic(partitions, told, before),
        "members": by_member(members, _within(view, "load_shares", past, **name)),
        "number_of_members": len(members),
        "partitions": partitions,
        "total": total(partitions, "produced_per_second"),
        "hot": {(item["topic"], item["partition"]) for item in row["hot_partitions"] or ()},
        "records": _by_partition(told),
        "records_before": _by_partition(before),
        "window": members[0]["round_time"] if members else None,
        "shown": _SHOWN,
    }


def _by_partition(rows: Iterable[Row]) -> dict[tuple[Any, ...], Any]:
    return {(one["topic"], one["broker"], one["partition"]): one["high_watermark_growth"] for one in rows}


def _plots(view: View, group: Row) -> dict[str, Any]:
    """The two charts."""
    span, name = view.span, name_of(group)
    points = not view.in_memory(span)
    if points:
        growth = view.rows(
            "load_hours",
            **name,
            since=span.begin.replace(minute=0, second=0, microsecond=0),
            until=span.end.replace(second=0, microsecond=0),
            step="hour" if span.length <= RANGES["30d"] else "day",
        )
        rates, even = history_series(growth, history_of(view, group, span))
    else:
        rates, even = _series(view, name, span)
    names = ("imbalance by number", "could be by number") if points else ("load imbalance", "could be", "by number")
    return {
        "rates": measure_plot(rates, span, ("produced", "consumed"), unit="/s", points=points),
        "even": measure_plot(even, span, names, points=points),
    }


def _series(view: View, name: Mapping[str, str], span: Range) -> tuple[list[list[Any]], list[list[Any]]]:
    """Rates, and imbalances, of a span that is held in memory."""
    minutes = next((m for m in (1, 2, 5, 10) if span.length <= m * timedelta(minutes=_MOST_STEPS)), 10)
    width = timedelta(minutes=minutes)
    # Whole steps, so that the same question is asked for as long as a step; the last one goes on.
    since, until = floor(span.begin - view.lake.reach, width), floor(span.end, width) + width
    rows = view.newest("load_steps", width, **name, since=since, until=until, minutes=minutes)
    points: list[tuple[datetime, Row]] = [(one["hour"] + one["step"] * width, one) for one in rows]
    heard = Heard(view.newest_round(name["cluster"]), view.lake.reach)

    def drawn(*columns: str) -> list[list[Any]]:
        return held(((time, [one[column] for column in columns]) for time, one in points), span, heard)

    return (
        drawn("produced_per_second", "consumed_per_second"),
        drawn("load_imbalance", "load_imbalance_optimal_max", "imbalance"),
    )


LOAD = Board(
    path=("load",),
    template="load.html.j2",
    fill=_load,
    title="Load · Evenkeel",
    word="Load",
    parameters=TIMES | {"compare", "hot", "owner", "name", "sort", "most"},
)

GROUP = Board(
    path=("groups", "{group}", "load"),
    template="group_load.html.j2",
    fill=_group,
    title="Load of {group} · Evenkeel",
    parameters=TIMES | {"compare"},
)
