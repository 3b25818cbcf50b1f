"""The codec of Kafka's `__consumer_offsets` and of the consumer protocol inside it.

Bytes in, values out; nothing here knows a Kafka client or Spark. What cannot be decoded comes out as a value
too (`Rejected`, and in `Compactor.unread`), never as an exception.
"""

from __future__ import annotations

from streaming.offsets_log.compact import Compactor
from streaming.offsets_log.compaction import CompactedStretches
from streaming.offsets_log.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
)
from streaming.offsets_log.decode_json import decode_line
from streaming.offsets_log.keys import GroupKey, Key, OffsetKey, OtherKey, UnknownKey, decode_key
from streaming.offsets_log.membership import decode_membership
from streaming.offsets_log.modern import decode_modern
from streaming.offsets_log.offset_commit import OffsetCommit, decode_offset_commit
from streaming.offsets_log.partitioner import partition_for
from streaming.offsets_log.record import LogRecord
from streaming.offsets_log.record_types import RECORD_TYPES, RecordValue, decode_record_value
from streaming.offsets_log.rejected import Rejected, UnknownVersion
from streaming.offsets_log.unread import Unread, Windows

__all__ = [
    "RECORD_TYPES",
    "Assignment",
    "CompactedStretches",
    "Compactor",
    "GroupKey",
    "Key",
    "LogRecord",
    "OffsetCommit",
    "OffsetKey",
    "OtherKey",
    "RecordValue",
    "Rejected",
    "Subscription",
    "UnknownKey",
    "UnknownVersion",
    "Unread",
    "Windows",
    "decode_assignment",
    "decode_key",
    "decode_line",
    "decode_membership",
    "decode_modern",
    "decode_offset_commit",
    "decode_record_value",
    "decode_subscription",
    "partition_for",
]
