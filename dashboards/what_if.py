"""The what-if panel: other strategies at a group's newest decision, a row for each, and one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboards import format as words
from dashboards.html import render
from dashboards.view import HEALTH

__all__ = ["better", "what_if_html"]

Row = Mapping[str, Any]

# The clients' strategies by age, then all others.
_ORDER = ("range", "roundrobin", "sticky", "cooperative-sticky")


def what_if_html(rows: Sequence[Row], verdict: Row | None, clock: words.Clock) -> str:
    """Render the panel.

    Args:
        rows: Rows of what_if.sql.
        verdict: The row of verdict.sql, if there is one.
        clock: The viewer's clock.
    """
    ordered = sorted(rows, key=lambda row: (_place(row["strategy"]), row["strategy"]))
    remark, sentence, best = "", "", None
    if ordered:
        of = ordered[0]
        remark = f"at the decision of {clock.time(of['record_time'])}, generation {words.number(of['generation'])}"
        # (With any other verdict the group's real assignment is not what its strategy gives.)
        if verdict is not None and (verdict["decision"], verdict["verdict"]) == (of["decision"], "identical"):
            sentence = better(ordered)
        if of["imbalance_optimal"] is not None:
            best = {"partitions_moved": of["partitions_moved_optimal"], "imbalance": of["imbalance_optimal"]}
    return render(
        "what_if.html.j2",
        rows=[_row(row) for row in ordered],
        best=best,
        remark=remark,
        sentence=sentence,
        nothing="No comparison: the group had no members yet, its verdict is pending, or what-if is turned off.",
        health_words=HEALTH,
    )


def better(rows: Sequence[Row]) -> str:
    """One sentence on the strategies that would have been better in moves or balance, and worse in neither.

    Returns:
        "" where the strategy that runs, or every other one, has no figures.
    """
    runs = next((row for row in rows if row["runs"] and _known(row)), None)
    others = [row for row in rows if not row["runs"] and _known(row)]
    if runs is None or not others:
        return ""
    had = _figures(runs)
    ahead = [f for f in map(_figures, others) if f != had and f[0] <= had[0] and f[1] <= had[1]]
    if not ahead:
        if not all(map(_known, rows)):
            return ""
        return "No other strategy would have moved less or balanced better without a cost in the other."
    imbalance, moves = min(ahead)
    names = [words.cut(row["strategy"], 32) for row in others if _figures(row) == (imbalance, moves)]
    said = []
    if moves < had[1]:
        said.append(f"moved {_partitions(moves)} instead of {words.number(had[1])}")
    if imbalance < had[0]:
        said.append(f"left the group more even: imbalance {words.ratio(imbalance)} instead of {words.ratio(had[0])}")
    return f"{' or '.join(names)} would have {' and '.join(said)}."


def _known(row: Row) -> bool:
    return row["partitions_moved"] is not None and row["imbalance"] is not None


def _figures(row: Row) -> tuple[float, int]:
    # (Rounded as they are shown: an invisible difference does not count.)
    return round(row["imbalance"], 2), row["partitions_moved"]


def _partitions(number: int) -> str:
    if not number:
        return "no partition"
    return f"{words.number(number)} partition{'' if number == 1 else 's'}"


def _place(strategy: str) -> int:
    return _ORDER.index(strategy) if strategy in _ORDER else len(_ORDER)


def _row(row: Row) -> dict[str, Any]:
    moves, least = row["partitions_moved"], row["partitions_moved_optimal"]
    return {
        "strategy": row["strategy"],
        "runs": bool(row["runs"]),
        "partitions_moved": moves,
        "wasteful": moves is not None and least is not None and moves > least,
        "imbalance": row["imbalance"],
        "library": row["library"] or "",
        "reason": words.visible(row["reason"] or ""),
    }
