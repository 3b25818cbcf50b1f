"""The sentence on other strategies, with hand-written cases."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dashboards.boards.decision import better, strategies

NOW = datetime(2026, 11, 21, 14, 10, tzinfo=UTC)


def row(strategy: str, moves: int | None, imbalance: float | None, *, runs: bool | None = False, **more: Any) -> Any:
    known = {"library": "java:3.7.1", "partitions_moved_optimal": 2, "imbalance_optimal": 0.0, "reason": None}
    load = {"load_imbalance": None}
    of = {"decision": 12, "record_time": NOW, "generation": 7}
    return {
        "strategy": strategy,
        "runs": runs,
        "configured": None,
        "partitions_moved": moves,
        "imbalance": imbalance,
        **known,
        **load,
        **of,
        **more,
    }


def verdict(said: str = "identical", offset: int = 12) -> Any:
    return {"own_verdict": said, "decision": offset}


RANGE = row("range", 41, 0.5, runs=True)


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([row("sticky", 3, 0.5)], "sticky would have moved 3 partitions instead of 41."),
        ([row("sticky", 0, 0.5)], "sticky would have moved no partition instead of 41."),
        (
            [row("sticky", 1, 0.0), row("cooperative-sticky", 1, 0.0), row("roundrobin", 2, 0.0)],
            (
                "sticky or cooperative-sticky would have moved 1 partition instead of 41 and "
                "left the group more even: imbalance 0 instead of 0.50."
            ),
        ),
        ([row("mine", 41, 0.25)], "mine would have left the group more even: imbalance 0.25 instead of 0.50."),
        # Better in one and worse in the other, or better by less than is shown.
        (
            [row("sticky", 3, 0.6), row("roundrobin", 50, 0.0), row("mine", 41, 0.499)],
            "No other strategy would have moved less or balanced better without a cost in the other.",
        ),
        ([row("sticky", 3, 0.6), row("mine", None, None)], ""),
        ([row("sticky", None, None)], ""),
        ([], ""),
    ],
)  # fmt: skip
def test_a_strategy_that_would_have_been_better_is_said_in_one_sentence(others: list[Any], said: str) -> None:
    assert better([RANGE, *others]) == said


def test_nothing_is_said_where_what_runs_is_not_known() -> None:
    assert better([row("uniform", 2, 0.0, runs=None), row("range", 1, 0.0, runs=None)]) == ""
    assert better([row("mine", None, None, runs=True), row("range", 1, 0.0)]) == ""


@pytest.mark.parametrize("of", [None, verdict("drifted"), verdict("unverified"), verdict(offset=11)])
def test_no_comparison_is_made_with_what_was_not_recomputed(of: Any) -> None:
    rows = [RANGE, row("sticky", 3, 0.0)]
    assert "instead of" in strategies(rows, verdict())["sentence"]
    assert strategies(rows, of)["sentence"] == ""


def test_the_balance_by_load_stands_beside_that_by_number_or_the_reason_why_not() -> None:
    known = row("range", 1, 0.0, runs=True, load_imbalance=1.5)
    shown = strategies([known, row("sticky", 3, 0.0)], verdict())
    assert [one["load_imbalance"] for one in shown["rows"]] == [1.5, None]


@pytest.mark.parametrize("protocol", ["share", "streams", "connect"])
def test_where_there_is_nothing_to_compare_with_that_is_the_reason(protocol: str) -> None:
    assert " one " in strategies([], verdict(), protocol)["none"]
    assert "what-if is turned off" in strategies([], verdict(), "consumer")["none"]
