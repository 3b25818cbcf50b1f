"""The page's boards: a module and a template for each, or for a few that share their rows."""

from __future__ import annotations

from typing import Final

from dashboards.boards import (
    alerts,
    clients,
    cost,
    drift,
    group,
    itself,
    lag_map,
    load,
    overview,
    rebalances,
    topics,
)
from dashboards.page.board import Board

__all__ = ["BOARDS"]

BOARDS: Final[tuple[Board, ...]] = (
    overview.BOARD,
    group.BOARD,
    rebalances.DECISION,
    rebalances.REBALANCES,
    drift.BOARD,
    lag_map.BOARD,
    load.LOAD,
    load.GROUP,
    topics.TOPICS,
    topics.TOPIC,
    alerts.ALERTS,
    alerts.RULE,
    cost.COST,
    cost.ADVICE,
    clients.BOARD,
    itself.CLUSTERS,
    itself.ITSELF,
)
"""All boards, in the order of the navigation."""
