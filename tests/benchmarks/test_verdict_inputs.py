"""The benchmark of what inputs cost measures decisions that have some."""

from __future__ import annotations

from tests.benchmarks.verdict_inputs import InputsSize, cost_of_inputs


def test_every_decision_of_the_benchmark_has_inputs() -> None:
    cost = cost_of_inputs(InputsSize("cooperative-sticky", 3, 2, 6, decisions=3), 0, rounds=1)
    assert 0 < cost.kept < cost.line
    assert 0 < cost.packing < cost.decision
