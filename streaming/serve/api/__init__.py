"""`/api/v1`: what the tables say, as JSON."""

from __future__ import annotations

from streaming.serve.api.routes import MARKS, PREFIX, routes

__all__ = ["MARKS", "PREFIX", "routes"]
