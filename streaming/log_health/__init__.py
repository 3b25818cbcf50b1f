"""The health of the log and of the rounds themselves, independent of groups: rounds, quarantine, open transactions."""

from __future__ import annotations

from streaming.log_health.quarantine import PartitionState, advance_partition
from streaming.log_health.rounds import RoundsState, advance_rounds

__all__ = ["PartitionState", "RoundsState", "advance_partition", "advance_rounds"]
