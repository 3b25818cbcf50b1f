"""The page: an SQL file per panel (`queries/`), a module and a template per board (`boards/`, `templates/boards/`).

`site.py` renders them, with what `page/` has for every board. `lake.py` holds the rows that the queries read,
`format.py` has numbers, times and names as people read them.
`streaming/serve/` answers the requests; its metrics and API read the same view of the lake.
"""

from __future__ import annotations

from dashboards.lake import PageLake, since
from dashboards.page.address import segments
from dashboards.page.markup import STATIC
from dashboards.query import server_queries
from dashboards.site import RenderedPage, Site

__all__ = ["STATIC", "PageLake", "RenderedPage", "Site", "segments", "server_queries", "since"]
