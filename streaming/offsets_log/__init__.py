"""The codec of Kafka's `__consumer_offsets` and of the consumer protocol inside it.

Bytes in, values out; nothing here knows a Kafka client or Spark. Undecodable bytes become a value too (`Rejected`, and
in `Compactor.unreadable`), never an exception.
"""

from __future__ import annotations

from streaming.offsets_log.codec.decode_json import decode_line
from streaming.offsets_log.codec.layouts import record_schemas
from streaming.offsets_log.codec.membership import (
    MemberAssignment,
    MemberSubscription,
    decode_assignment,
    decode_membership,
    decode_subscription,
    seen_member,
)
from streaming.offsets_log.codec.modern import decode_modern
from streaming.offsets_log.codec.placement import partition_for
from streaming.offsets_log.codec.record_columns import PADDING, Bytes, Ints, LeaderEpochs, RecordColumns, rows_at
from streaming.offsets_log.codec.record_types import (
    RECORD_TYPES,
    DecodedRecord,
    GroupKey,
    LogRecord,
    OffsetKey,
    OtherKey,
    Rejected,
    UnknownKey,
    UnknownVersion,
    decode_key,
    decode_record,
    decode_record_value,
)
from streaming.offsets_log.codec.wire import printed
from streaming.offsets_log.fold.partition import Compactor
from streaming.offsets_log.fold.unreadable import UnreadableRecords, Windows, unknown_type
from streaming.offsets_log.log_cleaning import CompactedStretches, StretchEnd

__all__ = [
    "PADDING",
    "RECORD_TYPES",
    "Bytes",
    "CompactedStretches",
    "Compactor",
    "DecodedRecord",
    "GroupKey",
    "Ints",
    "LeaderEpochs",
    "LogRecord",
    "MemberAssignment",
    "MemberSubscription",
    "OffsetKey",
    "OtherKey",
    "RecordColumns",
    "Rejected",
    "StretchEnd",
    "UnknownKey",
    "UnknownVersion",
    "UnreadableRecords",
    "Windows",
    "decode_assignment",
    "decode_key",
    "decode_line",
    "decode_membership",
    "decode_modern",
    "decode_record",
    "decode_record_value",
    "decode_subscription",
    "partition_for",
    "printed",
    "record_schemas",
    "rows_at",
    "seen_member",
    "unknown_type",
]
