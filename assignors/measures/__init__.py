"""Measures of an assignment: balance, moves, invariants, and the results of other strategies."""

from __future__ import annotations

from assignors.measures.measure import Load, Outcome, bounds_of, informed, outcome, what_if

__all__ = ["Load", "Outcome", "bounds_of", "informed", "outcome", "what_if"]
