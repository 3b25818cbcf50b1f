"""Values of offset commits (key type 1, and key type 0 whose only version is 0), decoded for the fold.

The layouts are `schemas/OffsetCommit.toml` and `schemas/LegacyOffsetCommit.toml`. This is the plain decoder, by the
schema; nearly all commits of a log take the vectorised one (`offset_commits.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from streaming.offsets_log.codec.keys import LEGACY_OFFSET_COMMIT
from streaming.offsets_log.codec.record_types import decode_record_value
from streaming.offsets_log.codec.rejected import Rejected, UnknownVersion
from streaming.offsets_log.codec.topic_id import ZERO

__all__ = ["OffsetCommit", "decode_offset_commit"]


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """One committed offset.

    Attributes:
        version: Version of the value.
        offset: Committed offset, as written: Kafka does not forbid a negative one.
        leader_epoch: Leader epoch; -1 when not recorded.
        metadata: The client's own string.
        commit_timestamp: ms; the coordinator's clock.
        expire_timestamp: ms; -1 when none.
        topic_id: 16 bytes; all zero when not recorded.
    """

    version: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: bytes


def decode_offset_commit(key_type: int, data: bytes) -> OffsetCommit | UnknownVersion | Rejected:
    """Decode the value of an offset commit. Never raises.

    Args:
        key_type: 0 or 1: only version 0 of the legacy type was ever written.
        data: The whole value; trailing bytes are refused.
    """
    value = decode_record_value(key_type, data)
    if isinstance(value, UnknownVersion | Rejected):
        return value
    if key_type == LEGACY_OFFSET_COMMIT:
        offset, metadata, commit_timestamp = value.fields
        return OffsetCommit(value.version, offset, -1, metadata, commit_timestamp, -1, ZERO)
    return OffsetCommit(value.version, *value.fields)
