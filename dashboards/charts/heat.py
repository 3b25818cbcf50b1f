"""A heat map of partitions over time as values for the browser, with a sentence for who cannot see it. Pure.

What is not known stays None: a partition without rows for longer than a heartbeat, an hour without rounds, a lag that
rows say is not known. Nothing is filled in for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from dashboards import format as words
from dashboards.format import Row
from dashboards.spans import Steps

__all__ = ["LEVELS", "HeatRow", "lines_of_hours", "lines_of_rows", "map_plot", "valued"]


LEVELS: Final[Mapping[str, Sequence[int]]] = {
    "offsets": (1, 10, 100, 1_000, 10_000, 100_000),
    "seconds": (1, 10, 60, 600, 3_600, 86_400),
}
"""The lowest value of each darker colour, by what is shown: the same for every group, so that maps can be compared."""

_READ: Final = frozenset({"nothing_unread", "one_offset"})
"""Reasons for a missing bound that say that nothing waits (one offset may be a transaction marker)."""

_LONGEST_NAME: Final = 26


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One partition.

    Attributes:
        name: Topic and partition.
        values: A value for each column; None where it is not known.
    """

    name: str
    values: Sequence[int | None]


def lines_of_rows(
    rows: Sequence[Row], steps: Steps, minutes: int, reach: timedelta, until: datetime, by: str
) -> list[HeatRow]:
    """Partitions by rows of lag_map.sql, in the order of their first rows.

    A value holds until the next row, for at most `reach`; the time that a record waits grows meanwhile.

    Args:
        rows: The rows, also some from before the first column.
        steps: The columns; each a whole number of the query's steps.
        minutes: Length of the query's steps.
        reach: A partition that lives has another row within this time.
        until: The newest round; nothing is known of later.
        by: offsets or seconds.
    """
    return [
        HeatRow(name, _held(found, steps, minutes, reach, until, _offsets if by == "offsets" else _seconds))
        for name, found in _by_partition(rows)
    ]


def lines_of_hours(rows: Sequence[Row], steps: Steps, hours: int, observed: Collection[int]) -> list[HeatRow]:
    """Partitions by rows of lag_map_hours.sql, in the order of their first rows.

    In a column without a row the lag was 0 if the group was observed, from the first row on: earlier the partition may
    not have been there.

    Args:
        rows: The rows.
        steps: The columns.
        hours: Length of the query's steps.
        observed: Columns in which the group was observed.
    """
    lines = []
    for name, found in _by_partition(rows):
        values: list[int | None] = [None] * steps.number
        seen: dict[int, list[int | None]] = {}
        for row in found:
            seen.setdefault(steps.at(row["day"] + row["step"] * timedelta(hours=hours)), []).append(row["lag_max"])
        first = min(seen)
        for column in range(max(0, first), steps.number):
            if column in seen:
                values[column] = max((value for value in seen[column] if value is not None), default=None)
            elif column in observed:
                values[column] = 0
        lines.append(HeatRow(name, values))
    return lines


def _by_partition(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault((row["topic"], row["broker"], row["partition"]), []).append(row)
    return [
        (f"{topic} {partition}" if broker is None else f"{topic} {broker}/{partition}", of_one)
        for (topic, broker, partition), of_one in found.items()
    ]


def _offsets(highest: int | None, last: Row, at: datetime) -> int | None:
    """The lag of a step, or what holds of it at a later moment."""
    del at
    return highest if highest is not None else last["lag_last"]


def _seconds(highest: timedelta | None, last: Row, at: datetime) -> int | None:
    """For so long at least the oldest unread record had waited."""
    if last["unread_last"] is not None:
        now = at - last["unread_last"]
        return max(0, int(max(now, highest or now).total_seconds()))
    if highest is not None:
        return max(0, int(highest.total_seconds()))
    return 0 if last["reason_last"] in _READ else None


def _held(
    rows: Sequence[Row], steps: Steps, minutes: int, reach: timedelta, until: datetime, value_at: Any
) -> list[int | None]:
    values: list[int | None] = [None] * steps.number

    def put(column: int, value: int | None) -> None:
        if 0 <= column < steps.number and value is not None:
            known = values[column]
            values[column] = value if known is None else max(known, value)

    for row, after in zip(rows, [*rows[1:], None], strict=True):
        begin = row["hour"] + timedelta(minutes=minutes) * row["step"]
        highest = row["lag_max"] if value_at is _offsets else row["behind_max"]
        put(steps.at(begin), value_at(highest, row, row["time_last"]))
        if row["gone"]:
            continue
        following = until if after is None else after["hour"] + timedelta(minutes=minutes) * after["step"]
        end = min(following, row["time_last"] + reach, until)
        for column in range(max(0, steps.at(row["time_last"])), steps.number):
            from_ = max(steps.begin + column * steps.width, row["time_last"])
            if from_ >= end:
                break
            put(column, value_at(None, row, min(end, steps.end(column))))
    return values


def map_plot(lines: Sequence[HeatRow], steps: Steps, by: str, of_all: int, rest: int | None) -> dict[str, Any]:
    """Values for the browser, and the sentence.

    Args:
        lines: The partitions, the worst first.
        steps: The columns.
        by: offsets or seconds.
        of_all: Partitions with those that are left out.
        rest: The highest value of those.
    """
    begin = int(steps.begin.timestamp())
    width = int(steps.width.total_seconds())
    return {
        "kind": "map",
        "x": [begin, begin + width * steps.number],
        "width": width,
        "unit": "s" if by == "seconds" else "",
        "levels": list(LEVELS[by]),
        "names": [words.cut(line.name, _LONGEST_NAME) for line in lines],
        "rows": [list(line.values) for line in lines],
        "told": _told(lines, by, of_all, rest),
    }


def valued(value: int | None, by: str) -> str:
    """A value with its unit."""
    if value is None:
        return "not known"
    if by == "seconds":
        return words.bounds(value, value) if value else "0 s"
    return words.number(value)


def _told(lines: Sequence[HeatRow], by: str, of_all: int, rest: int | None) -> str:
    known = [value for line in lines for value in line.values if value is not None]
    cells = sum(len(line.values) for line in lines)
    if not known:
        return "nothing was measured in this time"
    worst = max(lines, key=lambda line: max((v for v in line.values if v is not None), default=-1))
    name, highest = words.cut(worst.name, 60), valued(max(known), by)
    text = f"{words.counted(of_all, 'partition')}; the worst is {name} with {highest}"
    text += " unread" if by == "offsets" else " or more behind"
    if of_all > len(lines):
        text += f"; the worst {len(lines)} are shown, no other was above {valued(rest, by)}"
    if len(known) < cells:
        text += f"; {max(1, round(100 * (cells - len(known)) / cells))} % of it is not known"
    return text
