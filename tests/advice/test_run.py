"""`evenkeel advise`: what it prints, and that it is never silent."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from streaming.advice import print_advice
from streaming.tables import DeltaLake, named_to_arrow, table_named

DAY = 20_000
"""2024-10-04, in days since the epoch."""

TOLD = {
    "cluster": "c", "kind": "cooperative", "event_date": DAY, "ended": False, "period_days": 3, "events": 4,
    "saved": 6.0, "unit": "partition-seconds", "advice": "Change it.", "evidence": "4 rebalances\x1b[31m.",
    "cost": "Two restarts.", "details": [("rebalances", "4")],
}  # fmt: skip


def made(root: Path, **tables: list[dict[str, Any]]) -> str:
    lake = DeltaLake(str(root))
    for name, rows in tables.items():
        table = table_named(name)
        lake.create([table])
        lake.append(name, named_to_arrow(table, rows), "made", 1)
    return lake.root


def looked(period_days: int = 3) -> dict[str, Any]:
    return {
        "cluster": "c", "event_date": DAY, "first_day": DAY - period_days + 1, "period_days": period_days, "groups": 2,
    }  # fmt: skip


def round_of(day: int) -> dict[str, Any]:
    return {"cluster": "c", "round": day, "round_time": day * 86_400_000 + 3_600_000, "event_date": day}


def said(lake: str, group: str | None = None, cluster: str | None = None) -> str:
    out = io.StringIO()
    print_advice(lake, Console(file=out, width=300), group, cluster)
    return out.getvalue()


def test_advice_says_what_to_do_why_and_at_what_cost_the_newest_first(tmp_path: Path) -> None:
    rows = [
        {**TOLD, "group_id": "old", "since": DAY - 5},
        {**TOLD, "group_id": "new", "since": DAY},
        {**TOLD, "group_id": "gone-group", "since": DAY - 9, "ended": True},
    ]
    lake = made(tmp_path, advice=rows, advice_days=[looked(7)], rounds=[round_of(DAY + 1)])
    text = said(lake)
    assert text.splitlines()[:6] == [
        "new: cooperative, since 2024-10-04",
        "  do    Change it.",
        "  why   4 rebalances\\x1b[31m.",
        "  cost  Two restarts.",
        "  saves 6 partition-seconds in 3 days",
        "",
    ]
    assert text.index("new: ") < text.index("old: ")
    assert "gone-group" not in text
    assert text.splitlines()[-1] == "c: 2 groups looked at over 7 days, 2024-09-28 to 2024-10-04."
    assert "old: " not in said(lake, "new")


def test_a_lake_that_is_too_young_says_so(tmp_path: Path) -> None:
    young = made(tmp_path / "young", rounds=[round_of(DAY)])
    assert said(young).startswith(f"No day in {young} was looked at yet: the maintenance does so once a day is over")
    few = made(tmp_path / "few", advice_days=[looked(3)], rounds=[round_of(DAY + 1)])
    assert said(few).startswith("No advice holds: no rule found enough events in the days that were looked at.")
    assert "The rules look at 7 days, and figures begin on 2024-10-02" in said(few)


def test_a_maintenance_that_has_stopped_is_no_absence_of_advice(tmp_path: Path) -> None:
    lake = made(tmp_path, advice_days=[looked(7)], rounds=[round_of(DAY + 5)])
    assert "The newest round is of 2024-10-09, so 4 days are missing" in said(lake)


def test_a_group_that_is_not_there_is_named(tmp_path: Path) -> None:
    lake = made(tmp_path, advice_days=[looked(7)], rounds=[round_of(DAY)])
    assert said(lake, "typo").startswith("No advice holds for the group typo, if there is one:")
