"""One HTTP server over the tables: page, metrics, API, health; and the alerter in a thread."""

from __future__ import annotations

from streaming.serve.app import main

__all__ = ["main"]
