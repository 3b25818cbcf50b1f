"""Values of offset commits (key type 1, and key type 0 whose only version is 0).

    int16 version, then:
      offset          int64    0+
      leaderEpoch     int32    3+, -1 = none
      metadata        string   0+, compact in 4
      commitTimestamp int64    0+, ms
      expireTimestamp int64    1 only, ms, -1 = none
      tagged fields            4: tag 0 topicId uuid, omitted when zero

Source: `OffsetCommitValue.json`, `LegacyOffsetCommitValue.json`, Kafka 4.3.1. Which release writes which: v0
by 0.8.2, v1 by 0.9 to 2.0 and by every later one for a commit with an explicit retention, v2 by 2.1, v3 up
to 4.0, v4 from 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from streaming.offsets_log.keys import LEGACY_OFFSET_COMMIT
from streaming.offsets_log.rejected import Rejected, UnknownVersion
from streaming.offsets_log.topic_id import ZERO
from streaming.offsets_log.wire import MalformedError, Reader

__all__ = ["OffsetCommit", "decode_offset_commit"]

_NEWEST = 4
_NEWEST_LEGACY = 0
_FLEXIBLE_FROM = 4
_TAGS = {0: ("topicId", 16)}


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
        key_type: 0 or 1: of the legacy type only version 0 was ever written.
        data: The whole value; trailing bytes are refused.
    """
    reader = Reader(data)
    try:
        version = reader.int16("value version")
        if version > (_NEWEST_LEGACY if key_type == LEGACY_OFFSET_COMMIT else _NEWEST):
            return UnknownVersion(version)
        if version < 0:
            return Rejected(f"value: version {version} is negative")
        reader.flexible = version >= _FLEXIBLE_FROM
        offset = reader.int64("offset")
        leader_epoch = reader.int32("leaderEpoch") if version >= 3 else -1
        metadata = reader.string("metadata")
        commit_timestamp = reader.int64("commitTimestamp")
        expire_timestamp = reader.int64("expireTimestamp") if version == 1 else -1
        topic_id = reader.tagged_fields(_TAGS).get(0, ZERO)
        reader.end("value")
    except MalformedError as error:
        return Rejected(f"value: {error}")
    return OffsetCommit(version, offset, leader_epoch, metadata, commit_timestamp, expire_timestamp, topic_id)
