"""Verdicts in the rows of decisions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dashboards.boards.parts.decisions import decision_rows
from dashboards.format import DASH
from dashboards.lake import PageLake
from dashboards.page.address import Address
from dashboards.page.archive import Archive
from dashboards.page.board import View

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
        ("became_empty", "not_applicable", "not applicable"),
    ],
)
def test_a_verdict_is_pending_only_where_one_will_come(
    tmp_path: Path, kind: str, verdict: str | None, said: str
) -> None:
    hour = timedelta(hours=1)
    view = View(PageLake(str(tmp_path), hour, hour, hour), Archive(str(tmp_path)), NOON, Address((), {}))
    [row] = decision_rows([DECISION | {"kind": kind, "verdict": verdict}], view, with_group=False)["rows"]
    assert row["verdict"] == said
