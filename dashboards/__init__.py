"""The page: one SQL file per panel (`queries/`), and what shows their rows.

`boards/` is the page of `evenkeel serve`; `page.py` is the older one, in Streamlit (`evenkeel dash`), until it goes.
The view of the lake, and the queries, serve metrics and API, too (`streaming/serve/`).
"""

from __future__ import annotations

from dashboards.boards import Answer, Asset, Site, assets, segments
from dashboards.lake import PageLake, since
from dashboards.query import server_queries

__all__ = ["Answer", "Asset", "PageLake", "Site", "assets", "segments", "server_queries", "since"]
