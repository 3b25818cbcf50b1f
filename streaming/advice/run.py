"""`evenkeel advise`: what could be changed in the groups of a lake, and from when on there are figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from rich.console import Console

from streaming.advice.due import PERIOD
from streaming.exceptions import SetupError
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

_ROUNDS = """
SELECT cluster, min(round_time) AS first, max(round_time) AS newest FROM rounds
WHERE round_time IS NOT NULL AND ($cluster IS NULL OR cluster = $cluster)
  AND cluster NOT IN (SELECT cluster FROM advice_days)
GROUP BY cluster ORDER BY cluster
"""

# A day is looked at an hour or so after its end; a silent cluster closes its last day a day later.
_BEHIND = timedelta(days=2)


def print_advice(
    lake: str, console: Console, group: str | None = None, cluster: str | None = None, *, as_json: bool = False
) -> None:
    """Print the advice that holds, the newest first, and what it rests on; where there is none, why.

    Args:
        lake: Folder or URI.
        console: Where to print.
        group: Only this group; None for all.
        cluster: Only this cluster, by its name in the tables; None for all.
        as_json: Print one JSON object: `lake`, `looked_at` by cluster, `advice`, `notes`; days in ISO 8601.

    Raises:
        SetupError: There is no table in the lake.
        LakeUnreadableError: A table cannot be read.
    """
    reader = LakeReader(lake)
    of_cluster = {"cluster": cluster}
    looked, waiting = reader.rows(_LOOKED, of_cluster), reader.rows(_ROUNDS, of_cluster)
    if not looked and not waiting:
        where = "" if cluster is None else f" of the cluster {visible(cluster)}"
        message = f"There are no rounds{where} in {lake}: name the lake with --lake, or start the job."
        raise SetupError(message)
    found = reader.rows(_ADVICE, {"group": group, **of_cluster})
    notes = [*map(_note, looked), *map(_waits, waiting)]
    of_group = {row["cluster"] for row in looked} if group is None else _clusters_of(reader, group, cluster)
    if not of_group and group is not None:
        where = "" if cluster is None else f" of the cluster {visible(cluster)}"
        notes.insert(0, f"The tables have no day of the group {visible(group)}{where} yet: check the name.")
    elif not found and not of_group.isdisjoint(row["cluster"] for row in looked):
        notes.insert(0, "No rule found enough events in these days to advise anything.")
    if as_json:
        document = {"lake": lake, "looked_at": looked, "advice": found, "notes": notes}
        console.out(json.dumps(document, indent=2, default=_iso), highlight=False)
        return
    for row in found:
        _show(row, console, with_cluster=len({one["cluster"] for one in found}) > 1)
    for note in notes:
        say(console, note)


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


def _waits(row: Mapping[str, Any]) -> str:
    return (
        f"{visible(row['cluster'])}: no day looked at yet. Rounds go from {row['first']:%Y-%m-%d %H:%M} to "
        f"{row['newest']:%Y-%m-%d %H:%M} UTC, and the maintenance looks at a day once it is over and has its history."
    )


def _clusters_of(reader: LakeReader, group: str, cluster: str | None) -> set[str]:
    """The clusters that have, or had, a group of this name."""
    sql = (
        "SELECT DISTINCT cluster FROM (SELECT cluster, group_id FROM group_daily UNION ALL SELECT cluster, group_id "
        "FROM group_health_current) WHERE group_id = $group AND ($cluster IS NULL OR cluster = $cluster)"
    )
    return {row["cluster"] for row in reader.rows(sql, {"group": group, "cluster": cluster})}


def _iso(value: object) -> str:
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(type(value).__name__)
