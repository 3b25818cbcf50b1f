"""Exact recomputation of the assignors by which the leader of Kafka Connect's workers deals connectors and tasks.

from assignors.connect import CONNECTOR, assign_eagerly

units = [("files", CONNECTOR), ("files", 0), ("files", 1)]
assign_eagerly(units, ["a", "b"])  # {"a": [("files", -1), ("files", 1)], "b": [("files", 0)]}
"""

from __future__ import annotations

from assignors.connect.protocols import (
    CONNECTOR,
    LeaderDecision,
    LeaderMemory,
    Unit,
    assign_eagerly,
    assign_incrementally,
    in_order,
)

__all__ = [
    "CONNECTOR",
    "LeaderDecision",
    "LeaderMemory",
    "Unit",
    "assign_eagerly",
    "assign_incrementally",
    "in_order",
]
