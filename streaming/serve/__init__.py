"""One HTTP server over the tables: metrics, API, health. The page moves here next."""

from __future__ import annotations

from streaming.serve.run import main

__all__ = ["main"]
