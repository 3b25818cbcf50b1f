"""The strategies that group leaders run in Kafka's clients."""

from __future__ import annotations

from assignors.clients.assign_order import as_listed
from assignors.clients.other_clients import ROUND_ROBIN_ASSIGNER
from assignors.clients.range import RANGE
from assignors.clients.roundrobin import ROUNDROBIN

__all__ = ["RANGE", "ROUNDROBIN", "ROUND_ROBIN_ASSIGNER", "as_listed"]
