"""Records of the offsets log as a 4.x broker writes them: offset commits (value v4), group metadata (value v3).

The layouts are in `streaming/offsets_log/codec/schemas`; subscriptions and assignments are those of the consumer
protocol, version 1, which Java clients since 2.4 understand and kafka-python writes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

__all__ = ["commit_key", "commit_value", "group_key", "group_value"]

_TOPIC_ID_TAG = b"\x01\x00\x10"
_SESSION_TIMEOUT_MS = 45_000
_REBALANCE_TIMEOUT_MS = 300_000


def commit_key(group: str, topic: str, partition: int) -> bytes:
    """Key of an offset commit (type 1)."""
    return struct.pack(">h", 1) + _string(group) + _string(topic) + struct.pack(">i", partition)


def commit_value(offset: int, time: int, topic_id: bytes) -> bytes:
    """Value of an offset commit without metadata; time in ms, 16 bytes of topic id."""
    return struct.pack(">hqiBq", 4, offset, 0, 1, time) + _TOPIC_ID_TAG + topic_id


def group_key(group: str) -> bytes:
    """Key of group metadata (type 2)."""
    return struct.pack(">h", 2) + _string(group)


def group_value(
    generation: int,
    strategy: str,
    time: int,
    topics: Sequence[str],
    assigned: Mapping[str, Mapping[str, Sequence[int]]],
) -> bytes:
    """Value of group metadata; all members subscribe to the same topics, and the first is the leader.

    Args:
        generation: Generation.
        strategy: Selected protocol.
        time: Time when the join phase completed, ms.
        topics: Subscription of every member.
        assigned: Partitions by topic, by member id; members in record order.
    """
    subscription = struct.pack(">hi", 1, len(topics)) + b"".join(map(_string, topics)) + struct.pack(">ii", -1, 0)
    value = struct.pack(">h", 3) + _string("consumer") + struct.pack(">i", generation) + _string(strategy)
    value += _string(next(iter(assigned))) + struct.pack(">qi", time, len(assigned))
    for member, partitions in assigned.items():
        value += _string(member) + struct.pack(">h", -1) + _string("bench") + _string("/127.0.0.1")
        value += struct.pack(">ii", _REBALANCE_TIMEOUT_MS, _SESSION_TIMEOUT_MS)
        value += _sized(subscription) + _sized(_assignment(partitions))
    return value


def _assignment(partitions: Mapping[str, Sequence[int]]) -> bytes:
    out = struct.pack(">hi", 1, len(partitions))
    for topic, numbers in partitions.items():
        out += _string(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    return out + struct.pack(">i", -1)


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def _sized(raw: bytes) -> bytes:
    return struct.pack(">i", len(raw)) + raw
