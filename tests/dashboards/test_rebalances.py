"""Verdicts in the rows of decisions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dashboards.format import DASH, Clock
from dashboards.rebalances import rebalance_rows

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
DECISION = {
    "cluster": "prod",
    "group_id": "tills",
    "decision": 477,
    "record_time": NOON,
    "kind": "rebalance",
    "generation": 3,
    "members": 2,
    "partitions_moved": 0,
    "partitions_moved_optimal": 0,
    "joined": [],
    "left": [],
    "replaced": [],
    "follows": None,
    "strategy": "range",
    "generations_skipped": None,
    "unassigned_partition_seconds_min": None,
    "unassigned_partition_seconds_max": None,
    "verdict": None,
}


@pytest.mark.parametrize(
    ("kind", "verdict", "said"),
    [
        ("rebalance", "identical", "identical"),
        ("rebalance", "drifted", "✕ drifted"),
        ("rebalance", None, "pending"),
        # Nothing was decided, so no verdict follows.
        ("static_replacement", None, DASH),
        ("became_empty", "not_applicable", DASH),
    ],
)
def test_a_verdict_is_pending_only_where_one_will_come(kind: str, verdict: str | None, said: str) -> None:
    [row] = rebalance_rows([DECISION | {"kind": kind, "verdict": verdict}], Clock(NOON, UTC))
    assert row["verdict"] == said
