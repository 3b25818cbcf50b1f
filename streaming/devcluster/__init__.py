"""A development cluster: one embedded broker that is real, and real consumer groups with stories to tell."""

from __future__ import annotations

__all__ = ["DEMO_OVERRIDES"]

DEMO_OVERRIDES = {
    # Offsets that expire (a story of the demo) are looked for every 5 s instead of every 10 min. Other groups keep
    # theirs: the broker's retention stays at 7 days.
    "offsets.retention.check.interval.ms": "5000",
}
"""Broker settings of the demo beyond those of every embedded broker; pass them to `EmbeddedBroker`."""
