"""One HTTP server over the tables: page, metrics, API, health."""

from __future__ import annotations

from streaming.serve.run import main

__all__ = ["main"]
