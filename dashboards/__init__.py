"""The page: an SQL file per panel (`queries/`), a module and a template per board (`boards/`, `templates/boards/`).

`lake.py` holds the rows that the queries read, `format.py` has numbers, times and names as people read them.
`streaming/serve/` answers the requests; its metrics and API read the same view of the lake.
"""

from __future__ import annotations

from dashboards.boards import Asset, RenderedPage, Site, assets, segments
from dashboards.lake import PageLake, since
from dashboards.query import server_queries

__all__ = ["Asset", "PageLake", "RenderedPage", "Site", "assets", "segments", "server_queries", "since"]
