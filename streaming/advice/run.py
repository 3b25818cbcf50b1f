"""`evenkeel advise`: what could be changed in the groups of a lake, and from when on there are figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any, Final

from rich.console import Console

from streaming.tables import LakeReader
from streaming.terminal import counted, say, visible

_ADVICE = """
SELECT cluster, group_id, kind, event_date AS day, since, period_days, events, saved, unit, advice, evidence, cost,
details FROM advice_current
WHERE ($group IS NULL OR group_id = $group) AND ($cluster IS NULL OR cluster = $cluster)
ORDER BY since DESC, cluster, group_id, kind
"""

_LOOKED = """
SELECT d.cluster, d.event_date AS day, d.first_day, d.period_days, d.groups, CAST(r.round_time AS DATE) AS
newest_round_day FROM advice_days_current AS d LEFT JOIN rounds_current AS r ON r.cluster = d.cluster
WHERE $cluster IS NULL OR d.cluster = $cluster
ORDER BY d.cluster
"""

# A day is looked at an hour or so after its end; a silent cluster closes its last day a day later.
_BEHIND = timedelta(days=2)


def print_advice(lake: str, console: Console, group: str | None = None, cluster: str | None = None) -> None:
    """Print the advice that holds, the newest first, and what it rests on; where there is none, why.

    Args:
        lake: Folder or URI.
        console: Where to print.
        group: Only this group; None for all.
        cluster: Only this cluster, by its name in the tables; None for all.

    Raises:
        LakeUnreadableError: A table cannot be read.
    """
    reader = LakeReader(lake)
    found = reader.rows(_ADVICE, {"group": group, "cluster": cluster})
    for row in found:
        _show(row, console, with_cluster=len({one["cluster"] for one in found}) > 1)
    looked = reader.rows(_LOOKED, {"cluster": cluster})
    if not looked:
        where = "" if cluster is None else f" of the cluster {visible(cluster)}"
        said = (
            f"No day{where} in {lake} was looked at yet: the maintenance does so once a day is over and has its "
            "history. Another lake is named with --lake."
        )
        say(console, said)
    elif not found:
        where = "" if group is None else f" for the group {visible(group)}, if there is one"
        say(console, f"No advice holds{where}: no rule found enough events in the days that were looked at.")
    for row in looked:
        say(console, _note(row))


def _show(row: Mapping[str, Any], console: Console, *, with_cluster: bool) -> None:
    where = f" ({visible(row['cluster'])})" if with_cluster else ""
    say(console, f"{visible(row['group_id'])}{where}: {row['kind']}, since {row['since']}", "bold")
    days = counted(row["period_days"], "day")
    saved = [] if row["saved"] is None else [("saves", f"{row['saved']:,g} {row['unit']} in {days}")]
    for name, text in (("do", row["advice"]), ("why", row["evidence"]), ("cost", row["cost"]), *saved):
        say(console, f"  {name:<6}{text}")
    console.print()


def _note(row: Mapping[str, Any]) -> str:
    groups, days = counted(row["groups"], "group"), counted(row["period_days"], "day")
    said = f"{visible(row['cluster'])}: {groups} looked at over {days}, {row['first_day']} to {row['day']}."
    if row["period_days"] < PERIOD:
        said += (
            f" The rules look at {PERIOD} days, and figures begin on {row['first_day']}: what needs more events or "
            "days is not found yet."
        )
    newest = row["newest_round_day"]
    if newest is not None and newest - row["day"] > _BEHIND:
        said += (
            f" The newest round is of {newest}, so {(newest - row['day']).days - 1} days are missing: check that the "
            "maintenance runs (`evenkeel maintain`)."
        )
    return said


PERIOD: Final = 7
"""Days that the rules look at: weekends and working days, and what a release of last month did counts no more."""

BACK_DAYS: Final = 14
"""Days back that are looked at: advice is about now."""


def days_due(history: Iterable[date], last: date | None, first: date) -> list[date]:
    """Days of one cluster to be looked at, the oldest first.

    Args:
        history: Its days in `group_daily`.
        last: The last day that was looked at; None for none.
        first: The first day that may be looked at.
    """
    return sorted(day for day in history if day >= first and (last is None or day > last))


def period_of(history: Iterable[date], day: date) -> list[date]:
    """Days of the period that ends with a day and have figures, the oldest first."""
    return sorted(one for one in history if day - timedelta(days=PERIOD) < one <= day)
