"""A board of Grafana, made from our metrics: `evenkeel export` (docs/metrics.md)."""

from __future__ import annotations

from dashboards.export.run import export

__all__ = ["export"]
