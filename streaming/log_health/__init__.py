"""What belongs to no group: the rounds themselves, quarantine, open transactions, the topics of the cluster."""

from __future__ import annotations

from streaming.log_health.quarantine import UnreadableState, advance_partition
from streaming.log_health.rounds import RoundsState, advance_rounds
from streaming.log_health.topics import ClusterTopicState, advance_topic

__all__ = [
    "ClusterTopicState",
    "RoundsState",
    "UnreadableState",
    "advance_partition",
    "advance_rounds",
    "advance_topic",
]
