"""In which state a group was, and for how long: its coordinator's state, verdict, lag status and findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.parts.past import in_memory, whole_minutes
from dashboards.charts.held import HOLDS, HeldValue, held_in, rolled_up, total
from dashboards.charts.plots import Heard
from dashboards.format import Row
from dashboards.page.board import View
from dashboards.spans import Range
from streaming.terminal import age

__all__ = ["since_of", "states", "states_within"]

_WORDS: Final = {"state": "coordinator state", "verdict": "verdict", "lag_status": "lag status"}

_TONES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("Stable", "identical", "ok"), "fine"),
    **dict.fromkeys(("drifted", "stalled", "stopped", "Dead"), "bad"),
    **dict.fromkeys(("unverified", "unknown"), "unsure"),
    **dict.fromkeys(("Empty", "not_applicable", "no_commit", "pending"), "rest"),
}
"""How values are drawn; all others, such as PreparingRebalance and findings, as `warn`."""

# Changes in the list: a group that rebalances every minute makes as many in half an hour.
_CHANGES: Final = 60


def states_within(view: View, group: Row, span: Range) -> dict[str, list[HeldValue]] | None:
    """What held when in a span; None while its rows are still being read.

    Beyond what is held in memory the roll-ups tell for how long, and not when: it is empty then.
    """
    if not in_memory(view, span):
        return {}
    asked = whole_minutes(span)
    name = {"cluster": group["cluster"], "group_id": group["group_id"]}
    given = {"since": asked.begin - view.lake.reach, "until": asked.end}
    rows = view.archive.ask("states", **name, **given)
    if rows is None:
        # (What was known a minute ago is better than nothing while the newest rows are read.)
        minute = timedelta(minutes=1)
        rows = view.archive.known("states", **name, **{word: time - minute for word, time in given.items()})
    if rows is None:
        return None
    if not rows or rows[-1]["last_time"] < group["round_time"] < span.end:
        # (The group's newest row is in memory before the next question is asked.)
        rows = [*rows, {**group, "ended": False, "last_time": group["round_time"]}]
    newest = next((row["round_time"] for row in view.ask("rounds") if row["cluster"] == group["cluster"]), view.now)
    return held_in(rows, span, Heard(min(newest, view.now), view.lake.reach))


def since_of(held: Mapping[str, Sequence[HeldValue]] | None, measure: str, value: str | None, view: View) -> str:
    """Since when the present value holds: a time, or a time before which it began; "" where that is not known."""
    known = (held or {}).get(measure) or ()
    if not known or known[-1].value != value:
        return ""
    return _begun(known[-1], view)


def _begun(held: HeldValue, view: View) -> str:
    return view.clock.time(held.begin) if held.whole else f"before {view.clock.time(held.begin, exact=False)}"


def states(
    view: View, group: Row, span: Range, held: Mapping[str, Sequence[HeldValue]] | None, history: Sequence[Row]
) -> dict[str, Any]:
    """Values of `states.html.j2`.

    Args:
        view: The rendering.
        group: The row of groups.sql.
        span: What is shown.
        held: By `states_within`.
        history: Rows of group_hours.sql or group_days.sql, where that has nothing.
    """
    times = {name: total(of) for name, of in (held or {}).items()} or rolled_up(history)
    now = {name: group[name] for name in _WORDS} | {
        f"finding {finding['finding']}": HOLDS for finding in group["findings"] or ()
    }
    begun = {f"finding {finding['finding']}": finding["since"] for finding in group["findings"] or ()}
    rows = [
        {
            "word": _WORDS.get(name) or _said(name.removeprefix("finding ")),
            "finding": name not in _WORDS,
            "now": _said(now.get(name) or "") or words.DASH,
            "since": view.clock.time(begun[name]) if name in begun else since_of(held, name, now.get(name), view),
            "strip": _strip((held or {}).get(name) or (), span),
            "times": ", ".join(
                age(time) if value == HOLDS else f"{_said(value)} {age(time)}"
                for value, time in times.get(name, {}).items()
                if time
            ),
        }
        for name in dict.fromkeys((*_WORDS, *now, *times))
    ]
    return {"rows": rows, "drawn": bool(held), "changes": _changes((held or {}).get("state") or (), view)}


def _strip(held: Sequence[HeldValue], span: Range) -> list[dict[str, Any]]:
    """Bars from 0 to 1000 over the span."""

    def at(moment: datetime) -> float:
        return 1000 * ((moment - span.begin) / span.length)

    return [
        {
            "x": f"{at(one.begin):.1f}",
            # (A state of a second is still seen in a day.)
            "width": f"{max(at(one.end) - at(one.begin), 1.5):.1f}",
            "tone": _TONES.get(one.value, "warn"),
        }
        for one in held
    ]


def _changes(held: Sequence[HeldValue], view: View) -> dict[str, Any]:
    """The states as a table, the newest first."""
    return {
        "head": ["Since", "Coordinator state", "For"],
        "rows": [
            [
                f"{'' if one.whole else 'before '}{view.clock.time(one.begin)}",
                _said(one.value),
                age(one.end - one.begin),
            ]
            for one in list(reversed(held))[:_CHANGES]
        ],
    }


def _said(value: str) -> str:
    return words.cut(value.replace("_", " "), 40)
