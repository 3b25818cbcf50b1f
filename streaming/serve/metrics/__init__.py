"""`/metrics`: our own names, and those of other exporters as modes."""

from __future__ import annotations

from streaming.serve.metrics.exposition import OPEN_METRICS, TEXT
from streaming.serve.metrics.modes import MODES, OWN
from streaming.serve.metrics.scrapes import NoRoundsError, Scrapes, StartingError, WhichClusterError

__all__ = [
    "MODES",
    "OPEN_METRICS",
    "OWN",
    "TEXT",
    "NoRoundsError",
    "Scrapes",
    "StartingError",
    "WhichClusterError",
]
