"""Drift over time: verdicts, groups that drifted, other strategies than configured, what was not recomputed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow.compute as pc

from dashboards import format as words
from dashboards.charts import count_plot
from dashboards.format import Row
from dashboards.page.board import TIMES, Board, View, by_group, grouped, key, rows_of
from dashboards.spans import step_of

# Verdicts that are read for the list; those that an owner's filter leaves of them are shown.
_MOST: Final = 2_000

# Rows of a table; the newest and the worst are what people look for, the rest is counted.
_SHOWN: Final = 100

# Bars of the chart.
_MOST_BARS: Final = 400

_WORDS: Final[Mapping[str, str]] = {
    "drifted": "drifted",
    "unverified": "not recomputed",
    "identical": "as expected",
    "not_applicable": "not applicable",
}


def _counts(rows: Iterable[Row]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row["verdict"]] += row["verdicts"]
    return counts


# Rows of verdict_groups.sql to groups with a drifted decision, those with most of them first: `verdicts` are of all
# kinds but not_applicable, `last` is the row of the newest that drifted.
DRIFTED: Final = """
SELECT cluster, group_id, (sum(verdicts) FILTER (verdict = 'drifted'))::BIGINT AS drifted,
  (sum(verdicts) FILTER (verdict <> 'not_applicable'))::BIGINT AS verdicts,
  coalesce(max(drifted_most) FILTER (verdict = 'drifted'), 0) AS drifted_most,
  min(first_time) FILTER (verdict = 'drifted') AS first_time,
  arg_max(found, last_time) FILTER (verdict = 'drifted') AS last,
  list(DISTINCT strategy ORDER BY strategy) FILTER (verdict = 'drifted' AND strategy IS NOT NULL) AS strategies
FROM found GROUP BY cluster, group_id HAVING drifted > 0 ORDER BY drifted DESC, drifted_most DESC, group_id
"""

# Groups that ran another strategy than the configured one, those that did so last first.
MISMATCHES: Final = """
SELECT cluster, group_id, strategy, expected_strategy, sum(mismatches)::BIGINT AS mismatches,
  min(first_time) AS first_time, arg_max(found, last_time) AS last
FROM found WHERE mismatches > 0 GROUP BY ALL ORDER BY max(last_time) DESC, cluster, group_id
"""

# Why decisions had a verdict: for each reason how many, in how many groups, and the last of them.
REASONS: Final = """
SELECT coalesce(found.reason, '') AS reason, sum(verdicts)::BIGINT AS verdicts,
  count(DISTINCT (cluster, group_id)) AS groups, arg_max(found, last_time) AS last
FROM found WHERE verdict = $verdict GROUP BY ALL ORDER BY verdicts DESC, reason
"""

# As what assignments were recomputed: for each client library, or broker, how many and in how many groups.
LIBRARIES: Final = """
SELECT matching_library, sum(verdicts)::BIGINT AS verdicts, count(DISTINCT (cluster, group_id)) AS groups,
  coalesce(max(candidates_most), 0) AS candidates
FROM found WHERE verdict = 'identical' GROUP BY ALL ORDER BY verdicts DESC, matching_library NULLS FIRST
"""


def _fill(view: View) -> Mapping[str, Any]:
    span, verdict = view.span, view.address.one_of("verdict", _WORDS)
    step = step_of(span, _MOST_BARS)
    everyone = view.rows("verdict_groups", span)
    rows = view.owned(everyone)
    before = None
    if view.compared:
        # Without a row it is not known whether nothing was decided, or nothing was kept.
        rows_before = view.owned(view.rows("verdict_groups", span.before))
        before = _figures(rows_before) if rows_before else {}
    each = "yes" if view.address.text("owner") else "no"
    steps = view.owned(view.rows("verdict_steps", span, step=step, each=each))
    read = view.rows("verdicts", span, verdict=verdict or "drifted", most=_MOST)
    listed, drifted, wrong = view.owned(read), grouped(rows, DRIFTED), grouped(rows, MISMATCHES)
    return {
        "owners": view.owner_chips({row["group_id"] for row in everyone}),
        "verdicts": view.chips("verdict", _WORDS, _counts(rows)),
        "says": _WORDS,
        "sums": _figures(rows),
        "before": before,
        "plot": count_plot(steps, span, step, _WORDS, "verdict"),
        "step": step,
        "groups": drifted[:_SHOWN],
        "number_of_groups": len(drifted),
        "state_of": _states(view),
        "mismatches": wrong,
        "reasons": [
            ("Why not recomputed", grouped(rows, REASONS, verdict="unverified"),
             "Every decision of this time that could be judged was recomputed."),
            ("Why not applicable", grouped(rows, REASONS, verdict="not_applicable"),
             "There is no such decision in this time."),
        ],
        "libraries": grouped(rows, LIBRARIES),
        "list_word": _WORDS[verdict or "drifted"],
        "list": [(row, _says(row)) for row in listed[:_SHOWN]],
        "older": len(listed) - _SHOWN,
        "not_before": read[-1]["record_time"] if len(read) >= _MOST else None,
    }  # fmt: skip


def _figures(rows: Sequence[Row]) -> dict[str, int]:
    """The sums above the board, by their words."""
    verdicts = _counts(rows)
    return {
        "judged": sum(verdicts[word] for word in _WORDS),
        "drifted": verdicts["drifted"],
        "groups that drifted": len(by_group(row for row in rows if row["verdict"] == "drifted")),
        "not recomputed": verdicts["unverified"],
        "as expected": verdicts["identical"],
        "other strategy": sum(row["mismatches"] for row in rows),
    }


def _states(view: View) -> Any:
    """What holds now of a group by its row: whether it is still drifted, and a sentence; None if it is gone."""
    groups, since = view.columns("groups"), by_group(view.rows("since"))
    now = by_group(rows_of(groups, "cluster", "group_id", "verdict"))
    drifted = groups.filter(pc.equal(groups["verdict"], "drifted"))
    decided = by_group(rows_of(drifted, "cluster", "group_id", "last_decision_time"))

    def state(row: Row) -> tuple[bool, str] | None:
        present = now.get(key(row))
        if present is None:
            return None
        if present["verdict"] != "drifted":
            return False, _WORDS.get(present["verdict"], "pending")
        began = since.get(key(row), {}).get("drifted_since") or decided[key(row)]["last_decision_time"]
        return True, f"drifted{view.clock.since(began)}"

    return state


def _says(row: Row) -> str:
    """What a verdict rests on."""
    if row["verdict"] == "identical":
        return f"recomputed as {row['matching_library'] or 'an unknown library'}"
    said = f"{row['basis']}: {row['reason']}" if row["basis"] else str(row["reason"] or "")
    if row["basis"] == "configured" and row["own_verdict"] != "identical":
        said += f" (by {words.cut(row['strategy'], 30)} it is {row['own_verdict']})"
    if row["nearest_library"] and not row["basis"]:
        differing = words.counted(row["nearest_differing"], words.unit(row))
        said += f"; {row['nearest_library']} differs in {differing}"
    return said


BOARD = Board(
    path=("drift",),
    template="drift.html.j2",
    fill=_fill,
    title="Drift · Evenkeel",
    word="Drift",
    parameters=TIMES | {"verdict", "owner", "compare"},
    span="24h",
)
