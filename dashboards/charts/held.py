"""For how long values held: the time between changes of a group's state, verdict, lag status and findings. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from dashboards.charts.plots import Heard
from dashboards.format import Row
from dashboards.spans import Range

__all__ = ["HOLDS", "MEASURES", "HeldValue", "held_in", "rolled_up", "total"]

MEASURES: Final = ("state", "verdict", "lag_status")
"""Columns of which a group always has one value."""

HOLDS: Final = "holds"
"""The only value of a finding."""


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
    found: dict[str, list[HeldValue]] = {name: [] for name in MEASURES}
    following = [*(row["round_time"] for row in rows[1:]), heard.until]
    for place, (row, after) in enumerate(zip(rows, following, strict=False)):  # (none follows where there is no row)
        begin, end = max(row["round_time"], span.begin), min(after, row["last_time"] + heard.reach, span.end)
        if row["ended"] or end <= begin:
            continue
        values = {name: row[name] for name in MEASURES if row[name] is not None}
        values |= {f"finding {finding['finding']}": HOLDS for finding in row["findings"] or ()}
        whole = place > 0 and row["round_time"] >= span.begin
        for name, value in values.items():
            _put(found.setdefault(name, []), HeldValue(value, begin, end, whole))
    return found


def _put(known: list[HeldValue], held: HeldValue) -> None:
    last = known[-1] if known else None
    if last is not None and last.value == held.value and last.end == held.begin:
        known[-1] = HeldValue(last.value, last.begin, held.end, last.whole)
    else:
        known.append(held)


def total(held: Sequence[HeldValue]) -> dict[str, timedelta]:
    """The time of each value, the longest first."""
    found: dict[str, timedelta] = {}
    for one in held:
        found[one.value] = found.get(one.value, timedelta(0)) + (one.end - one.begin)
    return _longest_first(found)


def rolled_up(rows: Sequence[Row]) -> dict[str, dict[str, timedelta]]:
    """The time of each value by measure, the longest first, from rows of group_hours.sql or group_days.sql."""
    found: dict[str, dict[str, timedelta]] = {name: {} for name in MEASURES}
    for row in rows:
        for name in (*MEASURES, "finding"):
            for item in row[f"{name}_seconds"] or ():
                measure, value = (name, item["name"]) if name != "finding" else (f"finding {item['name']}", HOLDS)
                of = found.setdefault(measure, {})
                of[value] = of.get(value, timedelta(0)) + timedelta(seconds=item["seconds"])
    return {name: _longest_first(of) for name, of in found.items()}


def _longest_first(found: Mapping[str, timedelta]) -> dict[str, timedelta]:
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
