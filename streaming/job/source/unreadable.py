"""Records of the probe's topics, and whole record batches, that cannot be read: on their way to `quarantine`."""

from __future__ import annotations

import hashlib

from streaming.groups.quarantine import QuarantinedRecord

__all__ = ["quarantined"]

# As the codec keeps of a record of the offsets log: 64 KiB each of key and value, the rest is told by its digest.
_LARGEST_KEPT = 64 * 1024


def quarantined(
    topic: str, partition: int, offset: int, timestamp: int, key: bytes | None, value: bytes | None, reason: str
) -> QuarantinedRecord:
    """Keep a record with its place and the reason.

    Args:
        topic: Topic that holds it.
        partition: Partition that holds it.
        offset: Its offset.
        timestamp: Its timestamp, ms.
        key: Key bytes; None when null.
        value: Value bytes; None when null.
        reason: What is wrong, in one sentence, without the bytes.
    """
    cut = len(key or b"") > _LARGEST_KEPT or len(value or b"") > _LARGEST_KEPT
    return QuarantinedRecord(
        partition=partition,
        offset=offset,
        record_time=timestamp,
        key_type=None,
        value_version=None,
        reason=reason,
        key=None if key is None else key[:_LARGEST_KEPT],
        value=None if value is None else value[:_LARGEST_KEPT],
        key_size=None if key is None else len(key),
        value_size=None if value is None else len(value),
        sha256=hashlib.sha256((key or b"") + (value or b"")).hexdigest() if cut else None,
        topic=topic,
    )
