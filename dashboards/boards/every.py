"""All boards, in the order of the navigation; a new one is a module, a template, its queries, and a line here."""

from __future__ import annotations

from typing import Final

from dashboards.boards import decision, group, overview, rebalances
from dashboards.boards.board import Board

__all__ = ["BOARDS"]

BOARDS: Final[tuple[Board, ...]] = (overview.BOARD, group.BOARD, decision.BOARD, rebalances.BOARD)
