"""The page that `evenkeel serve` shows: one module, one template and its queries per board.

`every.py` lists the boards. Beside them stands what they share: addresses, assets, markup, the site itself. What
several boards show is in `parts/`.
"""

from __future__ import annotations

from dashboards.boards.address import segments
from dashboards.boards.assets import Asset, assets
from dashboards.boards.site import RenderedPage, Site

__all__ = ["Asset", "RenderedPage", "Site", "assets", "segments"]
