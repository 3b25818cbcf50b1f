"""Bounds from each group's own past: what would have been quiet, and what it would have cost in pages.

For each measure a group's bound is the value that it exceeded in one row of a thousand, rounded up. It becomes a rule,
with the bounds of all groups in one CASE, and the alerter's own evaluation counts how often that would have fired.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from streaming.alerts import Conditions, Rule, load_rules
from streaming.backtest.past import ClusterPast
from streaming.backtest.replay import replay
from streaming.tables import LakeReader

# Rows of `group_health` come with changes, so this is a thousandth of the moments at which something changed.
_QUANTILE: Final = 0.999

# A group with fewer rows has no past to speak of.
_LEAST_ROWS: Final = 200

# An alert should say that something lasts.
_FOR: Final = "5m"

_MEASURES: Final = {
    "lag": ("lag_total", "records"),
    "time_behind": ("time_behind_seconds_max", "s behind"),
    "imbalance": ("imbalance - imbalance_optimal", "imbalance above the best"),
}


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A bound for one measure of one group.

    Attributes:
        measure: lag, time_behind or imbalance.
        group_id: The group.
        bound: The bound.
        unit: Its unit.
        largest: The largest value in the time.
        rows: Rows that it rests on.
        pages: How often a rule with this bound, and `for: 5m`, would have fired.
    """

    measure: str
    group_id: str
    bound: float
    unit: str
    largest: float
    rows: int
    pages: int


def suggest(
    lake: str, cluster: str, since_ms: int, heartbeat_ms: int, group: str | None = None
) -> tuple[list[Suggestion], str] | None:
    """Propose bounds.

    Returns:
        The suggestions, those with the most pages first; and the rules that they make, as YAML for `alerts.yaml`. None
        where the cluster has no round.
    """
    reader = LakeReader(lake)
    begin = ClusterPast(lake, cluster, (), Conditions(()), since_ms, heartbeat_ms).first()
    if begin is None:
        return None
    found: dict[str, dict[str, Any]] = {}
    for measure, (sql, _) in _MEASURES.items():
        found[measure] = {row["group_id"]: row for row in _past(reader, sql, cluster, begin.rounds[0].number, group)}
    given = {"rules": [_rule(measure, rows) for measure, rows in found.items() if rows]}
    text = yaml.safe_dump(given, sort_keys=False, allow_unicode=True, width=10_000)
    if not given["rules"]:
        return [], text
    pages: dict[tuple[str, str | None], int] = {}
    for occurrence in replay(lake, cluster, _loaded(text), since_ms, heartbeat_ms).occurrences:
        key = occurrence.rule.removeprefix("own_"), occurrence.group_id
        pages[key] = pages.get(key, 0) + 1
    suggestions = [
        Suggestion(
            measure,
            name,
            row["bound"],
            _MEASURES[measure][1],
            row["largest"],
            row["rows"],
            pages.get((measure, name), 0),
        )
        for measure, rows in found.items()
        for name, row in rows.items()
    ]
    return sorted(suggestions, key=lambda one: (-one.pages, one.group_id, one.measure)), text


def _past(reader: LakeReader, sql: str, cluster: str, first: int, group: str | None) -> list[dict[str, Any]]:
    rows = reader.rows(
        f"""
        SELECT group_id, approx_quantile(value, {_QUANTILE}) AS high, max(value) AS largest, count(*) AS rows
        FROM (
          SELECT group_id, ({sql})::DOUBLE AS value FROM group_health
          WHERE cluster = $cluster AND NOT ended AND ($group IS NULL OR group_id = $group)
            AND "round" >= $first
        ) WHERE value IS NOT NULL GROUP BY group_id HAVING count(*) >= {_LEAST_ROWS} ORDER BY group_id
        """,  # noqa: S608 - expressions of our own
        {"cluster": cluster, "first": first, "group": group},
    )
    return [{**row, "bound": rounded_up(row["high"])} for row in rows if row["largest"] is not None]


def rounded_up(value: float) -> float:
    """A bound that people can read: two digits, never below the value, at least a tenth."""
    if value <= 0.1:
        return 0.1
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return round(math.ceil(value / unit - 1e-9) * unit, 6)


def _rule(measure: str, rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    sql, unit = _MEASURES[measure]
    cases = " ".join(f"WHEN {_text(name)} THEN {row['bound']!r}" for name, row in rows.items())
    return {
        "name": f"own_{measure}",
        "view": "group_health_current",
        "when": f"{sql} > CASE group_id {cases} END",
        "for": _FOR,
        "value": sql,
        "severity": "warning",
        "message": f"{{group_id}} has {{value}} {unit}, more than in its own past",
    }


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def _loaded(text: str) -> Sequence[Rule]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "alerts.yaml"
        file.write_text(text, encoding="utf-8")
        return load_rules(file)
