"""All boards, in the order of the navigation; a new one is a module, a template, its queries, and a line here."""

from __future__ import annotations

from typing import Final

from dashboards.boards import (
    advising,
    alerting,
    clients,
    clusters,
    cost,
    decision,
    drift_history,
    group,
    group_load,
    itself,
    lag_map,
    load,
    overview,
    rebalances,
    topic,
    topics,
)
from dashboards.page.board import Board

__all__ = ["BOARDS"]

BOARDS: Final[tuple[Board, ...]] = (
    overview.BOARD,
    group.BOARD,
    decision.BOARD,
    rebalances.BOARD,
    drift_history.BOARD,
    # lag by partition
    lag_map.BOARD,
    # load, topics
    load.BOARD,
    group_load.BOARD,
    topics.BOARD,
    topic.BOARD,
    # alerts, cost, advice, clients, clusters, Evenkeel itself
    alerting.ALERTS,
    alerting.RULE,
    cost.BOARD,
    advising.BOARD,
    clients.BOARD,
    clusters.BOARD,
    itself.BOARD,
)
