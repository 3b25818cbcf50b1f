"""Boards of other tools, made from our metrics and from the page's SQL files: `evenkeel export` (docs/metrics.md)."""

from __future__ import annotations

from dashboards.export.run import export

__all__ = ["export"]
