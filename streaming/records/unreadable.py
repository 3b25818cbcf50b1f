"""Unreadable and missing records of a partition."""

from __future__ import annotations

from typing import Final

import msgspec

KINDS: Final = 32
"""Kinds of unreadable records, each told by its first record, per partition between two rounds.

A broker of the next release writes a handful.
"""


LONGEST_RECORD: Final = 16 * 1024
"""Bytes kept of the key and of the value of a record.

Most real records of the offsets log stay below (a broker accepts 1 MiB by default); larger ones are identified by their
digest, so that junk cannot fill the lake.
"""

LONGEST_REASON: Final = 500
"""Characters of a reason: the names in it can have 32 KB."""


class QuarantinedRecord(msgspec.Struct, frozen=True, array_like=True, tag="q", forbid_unknown_fields=True):
    """One record of the log that could not be decoded.

    Attributes:
        partition: Partition of the offsets log.
        offset: Log offset.
        record_time: Record timestamp, ms.
        key_type: int16 at the beginning of the key; None when the key is null or shorter.
        value_version: int16 at the beginning of the value; None when the value is null or shorter.
        reason: The defect in one sentence, without the bytes.
        key: Key bytes, at most `LONGEST_RECORD` of them; None when null.
        value: Value bytes, at most `LONGEST_RECORD` of them; None when null.
        key_size: Bytes of the whole key; None when null.
        value_size: Bytes of the whole value; None when null.
        sha256: Hex digest of key and value together when either was cut; None otherwise.
        topic: Topic of the record: the offsets log, or one of the probe's topics.
        kind: "undecodable": of a known type; "unknown": of an unknown type or a newer version.
        window: Identifies the range between two rounds' positions in the partition that the record is in: the number of
            the round at one of its ends (always the same end in one topic). -1 before the first.
    """

    partition: int
    offset: int
    record_time: int
    key_type: int | None
    value_version: int | None
    reason: str
    key: bytes | None
    value: bytes | None
    key_size: int | None
    value_size: int | None
    sha256: str | None = None
    topic: str = "__consumer_offsets"
    kind: str = "undecodable"
    window: int = -1


class LogGap(msgspec.Struct, frozen=True, array_like=True, tag="g"):
    """Offsets of one log partition that were deleted before we read them.

    Attributes:
        partition: Partition of the offsets log.
        from_offset: First offset that was requested.
        to_offset: First offset that existed (exclusive end of the gap).
        reason: Cause, as far as known.
        topic: The offsets log, or one of the probe's topics.
        kind: `log`, `truncated` or `recreated`, as in the table `gaps`.
    """

    partition: int
    from_offset: int
    to_offset: int
    reason: str
    topic: str = "__consumer_offsets"
    kind: str = "log"


PartitionInput = QuarantinedRecord | LogGap
