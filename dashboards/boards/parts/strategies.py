"""Other strategies at a decision: a row for each, and one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dashboards import format as words
from dashboards.format import Clock, Row

__all__ = ["better", "strategies"]

# The clients' strategies by age, then all others.
_ORDER: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")


def strategies(rows: Sequence[Row], verdict: Row | None, clock: Clock) -> dict[str, Any]:
    """Values of `strategies.html.j2`.

    Args:
        rows: Rows of what_if.sql.
        verdict: The row of verdict.sql, if there is one.
        clock: The clock of the rendering.
    """
    ordered = sorted(rows, key=lambda row: (_place(row["strategy"]), row["strategy"]))
    remark, sentence, best = "", "", None
    if ordered:
        of = ordered[0]
        remark = f"at the decision of {clock.time(of['record_time'])}"
        if of["generation"] is not None:
            remark += f", generation {words.number(of['generation'])}"
        # (With any other verdict the group's real assignment is not what its strategy gives.)
        if verdict is not None and (verdict["decision"], verdict["own_verdict"]) == (of["decision"], "identical"):
            sentence = better(ordered)
        if of["imbalance_optimal"] is not None:
            best = {
                "moves": of["partitions_moved_optimal"],
                "imbalance": of["imbalance_optimal"],
                "load": of["load_imbalance_optimal_max"],
            }
    return {"rows": [_row(row) for row in ordered], "best": best, "remark": remark, "sentence": sentence}


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
        moved = words.counted(moves, "partition") if moves else "no partition"
        said.append(f"moved {moved} instead of {words.number(had[1])}")
    if imbalance < had[0]:
        said.append(f"left the group more even: imbalance {words.ratio(imbalance)} instead of {words.ratio(had[0])}")
    return f"{' or '.join(names)} would have {' and '.join(said)}."


def _known(row: Row) -> bool:
    return row["partitions_moved"] is not None and row["imbalance"] is not None


def _figures(row: Row) -> tuple[float, int]:
    # (Rounded as they are shown: an invisible difference does not count.)
    return round(row["imbalance"], 2), row["partitions_moved"]


def _place(strategy: str) -> int:
    return _ORDER.index(strategy) if strategy in _ORDER else len(_ORDER)


def _row(row: Row) -> dict[str, Any]:
    moves, least = row["partitions_moved"], row["partitions_moved_optimal"]
    return {
        "strategy": row["strategy"],
        "runs": bool(row["runs"]),
        "configured": bool(row["configured"]),
        "moves": moves,
        "wasteful": moves is not None and least is not None and moves > least,
        "imbalance": row["imbalance"],
        "load": row["load_imbalance"],
        "load_reason": (row["load_reason"] or "").replace("_", " "),
        "library": row["library"] or "",
        "reason": row["reason"] or "",
    }
