"""The state of share groups as brokers keep it in `__share_group_state`: bytes to delivery states, record by record.

Bytes in, values out; nothing here knows a Kafka client.
"""

from __future__ import annotations

from streaming.share_state.records import (
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    STATE_TYPES,
    TOPIC,
    PartitionDeliveries,
    ShareKey,
    ShareStates,
    StateBatch,
    StateRecord,
    combine,
    decode_state,
)

__all__ = [
    "ACKNOWLEDGED",
    "ARCHIVED",
    "AVAILABLE",
    "STATE_TYPES",
    "TOPIC",
    "PartitionDeliveries",
    "ShareKey",
    "ShareStates",
    "StateBatch",
    "StateRecord",
    "combine",
    "decode_state",
]
