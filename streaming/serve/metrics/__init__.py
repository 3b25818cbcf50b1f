"""`/metrics`: our own names, and those of other exporters as modes."""

from __future__ import annotations

from streaming.serve.metrics.exposition import TEXT
from streaming.serve.metrics.modes import OWN
from streaming.serve.metrics.scrapes import Scrapes

__all__ = ["OWN", "TEXT", "Scrapes"]
