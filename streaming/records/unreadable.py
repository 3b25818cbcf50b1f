"""Unreadable and missing records of a partition."""

from __future__ import annotations

from typing import Final

import msgspec

ONE_BY_ONE: Final = 100
"""Undecodable records per partition and day that get their own row.

Enough to find their writer, and few enough for any table, even from 50 partitions of the offsets log at once.
"""


KINDS: Final = 32
"""Unknown types and versions per partition and day that are counted separately; the others share one count.

A broker of the next release writes a handful.
"""


UNDECODABLE: Final = "undecodable"
"""Kind of the undecodable records of known types."""


LONGEST_RECORD: Final = 16 * 1024
"""Bytes kept of the key and of the value of a record.

Most real records of the offsets log stay below (a broker accepts 1 MiB by default); larger ones are identified by their
digest, so that junk cannot fill the lake: the row of a sample is repeated in every window with such records.
"""

LONGEST_REASON: Final = 500
"""Characters of a reason: the names in it can have 32 KB."""


class Window(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The place of a record among the rounds.

    Attributes:
        round: Identifies the range between two rounds' positions in the partition: the number of the round at one of
            its ends (always the same end in one topic). -1 before the first.
        day: Days of rounds that had passed.
        closed: Whether the batch contains the rest of the range, as far as earlier batches did not.
    """

    round: int = -1
    day: int = 0
    closed: bool = True


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
        window: Its place among the rounds.
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
    window: Window = Window()


class CountedRecords(msgspec.Struct, frozen=True, array_like=True, tag="u"):
    """Records of one kind in one window: of an unknown type or newer version, or undecodable beyond `ONE_BY_ONE`.

    Attributes:
        kind: Type and version, separated by a slash; or `UNDECODABLE`. For these, `ONE_BY_ONE` and one more of the same
            partition and day were kept before.
        records: Number of records.
        last_offset: Log offset of the last of them.
        sample: The first of them. Key and value are left out where rows do not need them: for undecodable records, and
            from the `KINDS`th kind of a day on.
        window: Their place among the rounds.
    """

    kind: str
    records: int
    last_offset: int
    sample: QuarantinedRecord
    window: Window = Window()


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


class WindowEnd(msgspec.Struct, frozen=True, array_like=True, tag="e", forbid_unknown_fields=True):
    """The window in which the last batch ended is over. What it has besides is in this batch."""


PartitionInput = QuarantinedRecord | CountedRecords | LogGap | WindowEnd
