"""Other strategies at a decision, with hand-written rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from dashboards.boards.decision import strategies

NOW = datetime(2026, 11, 21, 14, 10, tzinfo=UTC)


def row(strategy: str, **more: Any) -> dict[str, Any]:
    return {"strategy": strategy, "record_time": NOW, "generation": 7, "load_imbalance": None,
            "load_reason": "no_window", **more}  # fmt: skip


def test_the_clients_own_strategies_come_by_age_before_all_others_with_balance_by_load_or_why_not() -> None:
    known = row("range", load_imbalance=1.5, load_reason=None)
    shown = strategies([row("mine"), row("cooperative-sticky"), row("sticky"), known])
    assert [(one["strategy"], one["load_imbalance"], one["load_reason"]) for one in shown["rows"]] == [
        ("range", 1.5, None), ("sticky", None, "no_window"), ("cooperative-sticky", None, "no_window"),
        ("mine", None, "no_window"),
    ]  # fmt: skip
    assert shown["remark"].endswith("generation 7")
    assert strategies([]) == {"rows": [], "remark": ""}
