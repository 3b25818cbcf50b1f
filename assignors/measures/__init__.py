"""Measures of an assignment: balance, moves, invariants, and the results of other strategies."""

from __future__ import annotations

from assignors.measures.measure import Bounds, Load, Outcome, bounds_of, informed, outcome, settled

__all__ = ["Bounds", "Load", "Outcome", "bounds_of", "informed", "outcome", "settled"]
