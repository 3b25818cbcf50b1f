"""The page: one SQL file per panel (`queries/`), and the Streamlit code that renders them. Starts at `page.py`.

Its view of the lake, and its queries, serve metrics and API, too (`streaming/serve/`).
"""

from __future__ import annotations

from dashboards.lake import PageLake, since
from dashboards.query import server_queries

__all__ = ["PageLake", "server_queries", "since"]
