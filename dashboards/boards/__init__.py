"""The page that `evenkeel serve` shows: one module, one template and its queries per board (`every.py` lists them)."""

from __future__ import annotations

from dashboards.boards.address import segments
from dashboards.boards.assets import Asset, assets
from dashboards.boards.site import Answer, Site

__all__ = ["Answer", "Asset", "Site", "assets", "segments"]
