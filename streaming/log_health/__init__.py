"""The health of the log and of the rounds themselves, independent of groups: rounds, quarantine, open transactions."""

from __future__ import annotations

from streaming.log_health.quarantine import UnreadableState, advance_partition
from streaming.log_health.rounds import RoundsState, advance_rounds

__all__ = ["RoundsState", "UnreadableState", "advance_partition", "advance_rounds"]
